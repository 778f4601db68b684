"""Asking a ZITADEL until there is an answer: pauses, and calls that are asked again.

Steps are generators: they yield calls and pauses, and are sent the reply of each call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from reconciler.errors import PreconditionFailedError, ServiceError, ServiceUnavailableError
from reconciler.resources.call import Call, Code
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import Written
from reconciler.service_client.wire import AGAIN, NO_ANSWER, UNKNOWN, Answer, Reply, WireRefusal

TRIES = 8  # of one call
FAILED = frozenset({UNKNOWN, Code.INTERNAL})
# Another writer was quicker. ZITADEL's own retries are over by then, and it answers what its
# database said, as an unknown error.
_CONFLICT = re.compile(r"events2_pkey|\b40001\b|\bCR000\b")


class Pause(NamedTuple):
    """Wait, in settling times, until lists have caught up with what was written."""

    settlings: float


CATCH_UP, ONCE_MORE = Pause(1.0), Pause(0.25)  # by experience with its lists

Steps: TypeAlias = Generator[Call | Pause, Reply, Written | ServiceError]


def repeated(call: Call) -> Generator[Call | Pause, Reply, Reply]:
    """Ask for something that is the same when it is done twice, until there is an answer.

    A conflict with another writer is an answer: what to do about it, the caller decides.
    """
    was_unsure = False
    reply: Reply = WireRefusal(NO_ANSWER, "no answer came", unsure=True)
    for _ in range(TRIES):
        reply = yield call
        if isinstance(reply, Answer) or is_conflict(reply):
            return reply
        if not reply.unsure:
            return replace(reply, unsure=was_unsure and reply.code == Code.NOT_FOUND)
        was_unsure = True
        yield ONCE_MORE
    return reply


def despite_conflicts(
    call: Call,
    look: Callable[[], Generator[Call | Pause, Reply, ServiceError | None]] | None = None,
) -> Generator[Call | Pause, Reply, Reply | ServiceError]:
    """Ask like ``repeated``, and again while other writers are at the same project.

    After a conflict ``look`` tells whether the other writer changed the object itself: then its
    error is returned, and nothing is written over that change.
    """
    why = ""
    for _ in range(TRIES):
        reply = yield from repeated(call)
        if isinstance(reply, Answer) or not is_conflict(reply):
            return reply
        why = reply.message
        yield ONCE_MORE
        if look is not None:
            moved = yield from look()
            if moved is not None:
                return moved
    return WireRefusal(Code.ABORTED, f"another writer was quicker {TRIES} times in a row: {why}")


def is_conflict(refusal: WireRefusal) -> bool:
    """Return whether a write was not made because another writer was quicker."""
    is_told = refusal.code in FAILED and bool(_CONFLICT.search(refusal.message))
    return is_told or (refusal.code == Code.ABORTED and not refusal.unsure)


def lost(message: str) -> ServiceUnavailableError:
    """Return the error of a write of which it is not known whether it was made."""
    return ServiceUnavailableError(message, remedy=AGAIN)


def changed_since(ref: ResourceRef) -> PreconditionFailedError:
    """Return the error of a write to an object that somebody else has changed."""
    return PreconditionFailedError(
        f"{ref} has changed since it was planned", remedy="Run `reconciler plan` again and review."
    )
