"""Asking a ZITADEL until there is an answer: pauses, and calls that are asked again.

Steps are generators: they yield calls and pauses, and are sent the reply of each call.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from reconciler.errors import ServiceError, ServiceUnavailableError
from reconciler.resources.call import Call, Code
from reconciler.service_client.port import Written
from reconciler.service_client.refusals import AGAIN
from reconciler.service_client.wire import NO_ANSWER, Answer, Reply, WireRefusal

TRIES = 8  # of one call


class Pause(NamedTuple):
    """Wait, in settling times, until lists have caught up with what was written."""

    settlings: float


CATCH_UP, ONCE_MORE = Pause(1.0), Pause(0.25)  # by experience with its lists

Steps: TypeAlias = Generator[Call | Pause, Reply, Written | ServiceError]


def repeated(call: Call) -> Generator[Call | Pause, Reply, Reply]:
    """Ask for something that is the same when it is done twice, until there is an answer."""
    was_unsure = False
    reply: Reply = WireRefusal(NO_ANSWER, "no answer came", unsure=True)
    for _ in range(TRIES):
        reply = yield from unless_conflict(call)
        if isinstance(reply, Answer):
            return reply
        if not reply.unsure:
            return replace(reply, unsure=was_unsure and reply.code == Code.NOT_FOUND)
        was_unsure = True
        yield ONCE_MORE
    return reply


def unless_conflict(call: Call) -> Generator[Call | Pause, Reply, Reply]:
    """Ask again while another writer is at the same project or organization."""
    reply = yield call
    for _ in range(TRIES):
        if isinstance(reply, Answer) or reply.code != Code.ABORTED:
            break
        yield ONCE_MORE
        reply = yield call
    return reply


def lost(message: str) -> ServiceUnavailableError:
    """Return the error of a write of which it is not known whether it was made."""
    return ServiceUnavailableError(message, remedy=AGAIN)
