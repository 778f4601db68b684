"""Durations: decimal seconds with ``s``, the JSON form of protobuf durations.

Every wire and every manifest goes through this one parser. It is stricter than the parsers
of the protobuf runtimes, which disagree about signs, bare points and a tenth decimal
(wire facts 2.9).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

NANOSECONDS = 1_000_000_000


class DurationRange(NamedTuple):
    """Durations from 0 to a limit.

    Attributes:
        longest: The limit, in nanoseconds.
        pattern: The same range for a schema; a test holds it to ``parse_duration``.
    """

    longest: int
    pattern: str


CLOCK_SKEW = DurationRange(5 * NANOSECONDS, r"^(?:[0-4](?:\.[0-9]{1,9})?|5(?:\.0{1,9})?)s$")
ACTION_TIMEOUT = DurationRange(20 * NANOSECONDS, r"^(?:1?[0-9](?:\.[0-9]{1,9})?|20(?:\.0{1,9})?)s$")

_WRITTEN = re.compile(r"(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,9}))?s", re.ASCII)


def parse_duration(text: str) -> int:
    """Return the nanoseconds in a text such as ``5s`` or ``1.5s``.

    Raises:
        ValueError: the text is not a duration in this form.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError("write decimal seconds followed by s, such as 5s or 1.5s")
    seconds, decimals = found.groups()
    return int(seconds) * NANOSECONDS + int((decimals or "").ljust(9, "0"))


def format_duration(nanoseconds: int) -> str:
    """Return the shortest text for a duration, so that equal durations are equal texts."""
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    decimals = f"{rest:09d}".rstrip("0")
    return f"{seconds}.{decimals}s" if decimals else f"{seconds}s"


@lru_cache(maxsize=256)  # a tree has few different durations
def normal_duration(text: str) -> str:
    """Return the shortest text for a duration already known to be valid."""
    return format_duration(parse_duration(text))
