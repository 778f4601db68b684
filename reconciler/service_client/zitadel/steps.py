"""Steps of orders to a ZITADEL: calls that are asked again, and pauses until its lists catch up.

The steps of an order are a generator: it yields calls and pauses, and is sent the reply of each
call. The steps of many orders run side by side.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from reconciler.errors import PreconditionFailedError, ServiceError, ServiceUnavailableError
from reconciler.resources.call import Call, Code
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import Written
from reconciler.service_client.wire import (
    AGAIN,
    NO_ANSWER,
    UNKNOWN,
    Answer,
    Reply,
    Wire,
    WireRefusal,
    error_id,
)

TRIES = 8  # of one call
_NO_SUCH_ADDRESS = frozenset({Code.NOT_FOUND, Code.UNIMPLEMENTED})
FAILED = frozenset({UNKNOWN, Code.INTERNAL})
# Another writer was quicker. ZITADEL's own retries are over by then, and it answers what its
# database said, as an unknown error.
_CONFLICT = re.compile(r"events2_pkey|\b40001\b|\bCR000\b")


class Pause(NamedTuple):
    """Wait, in settling times, until lists have caught up with what was written."""

    settlings: float


CATCH_UP, ONCE_MORE = Pause(1.0), Pause(0.25)  # by experience with its lists

Step: TypeAlias = Call | Pause
Steps: TypeAlias = Generator[Step, Reply, Written | ServiceError]
Look: TypeAlias = Callable[[], Generator[Step, Reply, ServiceError | None]]
"""Reads an object just before it is written to; gives the reason why that must not be."""


class OrderSteps(NamedTuple):
    """An order under way.

    Attributes:
        serial_key: Orders with the same key are never under way at the same time.
    """

    serial_key: str
    steps: Steps


def run(
    wire: Wire, orders: Sequence[OrderSteps], wait: Callable[[Pause], None]
) -> list[Written | ServiceError]:
    """Take every order to its end; return what each gave, in their order."""
    results: dict[int, Written | ServiceError] = {}
    waiting = [*range(len(orders))]
    while waiting:
        paused: dict[int, Pause] = {}
        _run_to_pauses(wire, {index: orders[index] for index in waiting}, paused, results)
        if paused:
            # All that wait do so together, for as long as the longest of them needs.
            wait(max(paused.values()))
        waiting = [*paused]
    return [results[index] for index in range(len(orders))]


def _run_to_pauses(
    wire: Wire,
    orders: dict[int, OrderSteps],
    paused: dict[int, Pause],
    results: dict[int, Written | ServiceError],
) -> None:
    """Take orders, by number, as far as they go without a pause: one of each key at a time."""
    queues: dict[str, deque[int]] = {}
    for index, order in orders.items():
        queues.setdefault(order.serial_key, deque()).append(index)
    # Replies by key: at most one call of a key is under way, that of the first order in its queue.
    replies: dict[str, Reply] = {}
    while queues:
        calls: dict[str, Call] = {}
        for key, queue in queues.items():
            reply = replies.get(key)
            # An order that ends or pauses lets the next one of its key begin.
            while queue and key not in calls:
                step = _next_step(orders[queue[0]].steps, reply)
                if isinstance(step, Call):
                    calls[key] = step
                    continue
                index, reply = queue.popleft(), None
                if isinstance(step, Pause):
                    paused[index] = step
                else:
                    results[index] = step
        queues = {key: queues[key] for key in calls}
        replies = dict(zip(calls, wire.send([*calls.values()]), strict=True)) if calls else {}


def _next_step(steps: Steps, reply: Reply | None) -> Step | Written | ServiceError:
    try:
        return next(steps) if reply is None else steps.send(reply)
    except StopIteration as end:
        result: Written | ServiceError = end.value
        return result
    except ServiceError as failure:
        return failure


def repeated(call: Call) -> Generator[Step, Reply, Reply]:
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
            # After a lost answer, "not found" may be about what that try has removed.
            return replace(reply, unsure=was_unsure and reply.code == Code.NOT_FOUND)
        was_unsure = True
        yield ONCE_MORE
    return reply


def despite_conflicts(
    call: Call, look: Look | None = None
) -> Generator[Step, Reply, Reply | ServiceError]:
    """Ask like ``repeated``, and again while other writers are at the same project.

    After a conflict ``look`` shows whether the other writer changed the object itself: then its
    error is returned, and nothing is written over that change.
    """
    why = ""
    for _ in range(TRIES):
        reply = yield from repeated(call)
        if isinstance(reply, Answer) or not is_conflict(reply):
            return reply
        why = reply.message
        # Other writers of the project go on meanwhile; this object may be one of theirs.
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


def is_unknown_address(refusal: WireRefusal) -> bool:
    """Return whether the gateway of a ZITADEL has no such address.

    It says so in a body with a code and without an id; a missing object and a missing membership
    have an id. A proxy answers without a code of gRPC.
    """
    is_sure = refusal.is_code_told and not refusal.unsure
    return is_sure and refusal.code in _NO_SUCH_ADDRESS and not error_id(refusal)


def unknown_result(message: str) -> ServiceUnavailableError:
    """Return the error of a write whose outcome is unknown."""
    return ServiceUnavailableError(message, remedy=AGAIN)


def changed_since(ref: ResourceRef) -> PreconditionFailedError:
    """Return the error of a write to an object that another writer has changed."""
    return PreconditionFailedError(
        f"{ref} has changed since it was planned", remedy="Run `reconciler plan` again and review."
    )
