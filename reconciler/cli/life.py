"""Lengths of time as people type them on the command line."""

from __future__ import annotations

import re

from reconciler.errors import UsageError
from reconciler.report.visible import visible

_LIFE = re.compile(r"([1-9][0-9]{0,4})([dhm])", re.ASCII)
_UNITS = {"d": 86_400, "h": 3_600, "m": 60}


def life_in_seconds(text: str, example: str = "--expires 90d") -> int:
    """Return the seconds in a text such as ``90d``, ``24h`` or ``30m``.

    Raises:
        UsageError: it is no such text.
    """
    found = _LIFE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"invalid duration {visible(text)!r}",
            remedy=f"Write a number and d, h or m, such as 2d, 24h or 30m: {example}.",
        )
    return int(found.group(1)) * _UNITS[found.group(2)]


def age_in_words(seconds: int) -> str:
    """Return about how long that is, in its largest whole unit."""
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        count = seconds // unit
        if count:
            return f"{count} {name}{'' if count == 1 else 's'}"
    return "less than a minute"


def time_in_words(seconds: int) -> str:
    """Return a time since the epoch as RFC 3339 in UTC, to the second."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "an invalid time"
