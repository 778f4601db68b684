"""Words for a duration that a schema refuses: what was probably meant, never put in silently."""

from __future__ import annotations

import re
from decimal import Decimal

from reconciler.resources.duration import NANOSECONDS, format_duration, parse_duration
from reconciler.validation.problem import Problem, cut, wrong

CODE = "SCHEMA-DURATION"
_SECONDS = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    **dict.fromkeys(("ms", "msec", "millis", "millisecond", "milliseconds"), Decimal("1e-3")),
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), Decimal(1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), Decimal(60)),
    **dict.fromkeys(("h", "hr", "hour", "hours"), Decimal(3600)),
    **dict.fromkeys(("d", "day", "days"), Decimal(86_400)),
}
_MEASURED = re.compile(r"\+?([0-9]{1,12}(?:\.[0-9]{1,9})?|\.[0-9]{1,9}) ?([a-zµ]*)")


def duration_problem(field: str, written: str | float, longest: int) -> Problem:
    """Return why a value is no duration of a field, and what to write.

    Args:
        field: Name of the field, for the sentence.
        written: The value: a text, or a number without a unit.
        longest: The limit, in nanoseconds.
    """
    limit = format_duration(longest)
    meant = _nanoseconds(str(written))
    if meant is not None and meant > longest:
        exact = format_duration(meant)
        shown = f"{cut(written)} is {exact}" if exact != written else exact
        return wrong(CODE, f"{field} is too long: {shown}", f"Write at most {limit}.")
    summary = f"{field} is not a duration: {cut(written)}"
    if meant is None:
        return wrong(CODE, summary, f"Write seconds followed by s, from 0s to {limit}: 5s or 1.5s.")
    return wrong(CODE, summary, f"Write {format_duration(meant)}.")


def _nanoseconds(text: str) -> int | None:
    """Return the nanoseconds that a text means to a person, or None; a bare number is seconds."""
    try:
        return parse_duration(text)
    except ValueError:
        found = _MEASURED.fullmatch(text.strip().lower())
    if found is None or found[2] not in _SECONDS:
        return None
    exact = Decimal(found[1]) * _SECONDS[found[2]] * NANOSECONDS
    return int(exact) if exact == int(exact) else None
