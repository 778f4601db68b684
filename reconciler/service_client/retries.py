"""Retries: the calls that may be sent again, and the pauses before that."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from reconciler.resources.call import WRITE_BATCH, Call
from reconciler.service_client.wire import is_read

FIRST_PAUSE = 0.1  # seconds; it doubles with each try
LONGEST_PAUSE = 5.0
LONGEST_ASKED = 60.0  # of what a service may ask for
_SECONDS = re.compile(r"[0-9]{1,10}", re.ASCII)


# Writes that are safe to repeat without a key of their own: a repeated claim only adds one more
# event, and each order of a batch has a key.
_REPEATABLE = frozenset(
    {"RenewLease", "ReleaseLease", "ClaimSecrets", "AcknowledgeSecrets", WRITE_BATCH}
)


def may_repeat(call: Call) -> bool:
    """Return whether a call may be sent again when its first result is unknown.

    A read may. A write may where the service keeps a second one from counting: by its
    idempotency key, or because it expects a sequence that the first one moved on.
    """
    return bool(
        is_read(call)
        or call.idempotency_key
        or call.expected_sequence is not None
        or call.operation in _REPEATABLE
    )


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
