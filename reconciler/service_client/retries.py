"""Pauses before a service is asked again: growing, each of them random."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
LONGEST_ASKED = 60.0
_SECONDS = re.compile(r"[0-9]{1,10}", re.ASCII)


def pause(tries: int, chance: float, asked: float) -> float:
    """Return the seconds to wait after so many tries.

    ``chance`` is a random number from 0 to 1, so that many clients do not come back at once.
    ``asked`` is what the service asked for; it is never undercut.
    """
    longest: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(tries - 1, 10))
    return max(asked, chance * longest)


def asked_pause(retry_after: str, now: datetime) -> float:
    """Return the seconds that a ``Retry-After`` asks for, at most a minute; 0 for nonsense."""
    text = retry_after.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), LONGEST_ASKED)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), LONGEST_ASKED)
