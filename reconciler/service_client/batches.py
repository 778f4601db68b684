"""Writes packed into batches: many orders in one request, where the service has that operation.

Every order has an idempotency key. So a batch whose answer was lost is asked for again whole, and
what the service answers then is what became of each order: nothing is carried out twice.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from reconciler.resources.call import ORDER_KEYS, WRITE_BATCH, Call, Code, JsonObject
from reconciler.service_client.wire import (
    Answer,
    Reply,
    Wire,
    WireRefusal,
    lost,
    pause,
    refusal_in,
    unsent,
)

MOST_ORDERS = 500  # of one batch; the lease is renewed and signals are handled between batches
MAX_BYTES = 1_000_000  # of a request; our service takes 1 MiB
RETRY_SECONDS = 60.0
AT_ONCE = 2  # batches in flight: one is carried out while the next is sent
_FOR_NOW = frozenset({Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE})  # HTTP statuses 429 and 503
# The whole request was refused before any order of it was tried. A gateway that lets no batch
# through, or a service of another make, answers that it does not know the address.
_NOT_UNDERSTOOD = frozenset({Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.UNIMPLEMENTED})


class _OrderReply(NamedTuple):
    """The reply to one order, and whether the service gave it to this order alone.

    Otherwise it is the reply to the request that the order was sent in.
    """

    reply: Reply
    is_own: bool

    @property
    def is_for_now(self) -> bool:
        """Return whether the same order may be answered otherwise a little later."""
        refusal = self.reply
        return self.is_own and isinstance(refusal, WireRefusal) and refusal.code in _FOR_NOW


class BatchingWire:
    """A wire for independent writes that sends them in batches over another wire."""

    def __init__(
        self,
        wire: Wire,
        most: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Send at most so many orders in a batch."""
        self._wire = wire
        self._most = most
        self._clock = clock
        self._sleep = sleep
        self._chance = random.SystemRandom().random
        self._is_understood = True

    def send(self, calls: Sequence[Call]) -> Sequence[Reply]:
        """Carry out independent writes and return what each gave, in their order.

        Orders that are refused for now, in a batch that is answered, are sent again for up to a
        minute. A batch that is not answered has been tried again by the wire beneath.

        Raises:
            ServiceError: the wire beneath failed.
        """
        replies = list(self._sent(calls))
        deadline, tries = self._clock() + RETRY_SECONDS, 0
        # Only orders that were refused for now are sent again, under the keys they had before: one
        # that was carried out after all gives its first answer.
        while again := [index for index, each in enumerate(replies) if each.is_for_now]:
            tries += 1
            wait = pause(tries, self._chance(), 0.0)
            if self._clock() + wait >= deadline:
                break
            self._sleep(wait)
            for index, later in zip(again, self._sent([calls[at] for at in again]), strict=True):
                replies[index] = _later(replies[index], later)
        return [each.reply for each in replies]

    def _sent(self, calls: Sequence[Call]) -> Iterator[_OrderReply]:
        """Send calls in batches; yield the reply to each, in their order."""
        # One order alone is a request of its own: a batch would only make it longer.
        if len(calls) < 2 or not self._is_understood:
            yield from (_OrderReply(reply, is_own=False) for reply in self._wire.send(calls))
            return
        batches = _packed(calls, self._most)
        while some := list(islice(batches, AT_ONCE)):
            requests = [Call(WRITE_BATCH, {"orders": orders}) for _, orders in some]
            for (members, _), reply in zip(some, self._wire.send(requests), strict=True):
                yield from self._replies_to(members, reply)

    def _replies_to(self, calls: Sequence[Call], reply: Reply) -> Iterable[_OrderReply]:
        """Return the reply to each order of a batch, from the reply to the batch."""
        if isinstance(reply, Answer):
            return [_OrderReply(each, is_own=True) for each in _replies(reply.fields, len(calls))]
        if reply.code in _NOT_UNDERSTOOD and not reply.unsure:
            # Nothing was tried: send these orders, and all later ones, as requests of their own.
            self._is_understood = False
            return self._sent(calls)
        return [_OrderReply(reply, is_own=False) for _ in calls]


def _packed(
    calls: Iterable[Call], most: int
) -> Iterator[tuple[Sequence[Call], Sequence[JsonObject]]]:
    """Yield calls, and the orders that they are: so many at most, with room in one request."""
    members: list[Call] = []
    orders: list[JsonObject] = []
    size = 0
    for call in calls:
        order = _order(call)
        # One more byte for the comma between two orders.
        length = len(json.dumps(order, separators=(",", ":"))) + 1
        if members and (len(members) == most or size + length > MAX_BYTES):
            yield members, orders
            members, orders, size = [], [], 0
        members.append(call)
        orders.append(order)
        size += length
    if members:
        yield members, orders


def _order(call: Call) -> JsonObject:
    """Return a call as an order of a batch; what is not said is left out."""
    # The context is the object itself, and not its text as in a header.
    values = {key: getattr(call, name) for name, key in ORDER_KEYS.items()}
    if call.expected_sequence is not None:
        values[ORDER_KEYS["expected_sequence"]] = str(call.expected_sequence)
    given: dict[str, object] = {key: value for key, value in values.items() if value}
    if call.context:
        given[ORDER_KEYS["context"]] = json.loads(call.context)
    return {"operation": call.operation, "fields": call.fields, **given}


def _replies(answered: JsonObject, count: int) -> Sequence[Reply]:
    """Return the reply to each order of a batch, from the answer to the batch."""
    answers = answered.get("answers")
    if not isinstance(answers, list) or len(answers) != count:
        return [lost("the service did not answer each order of a batch")] * count
    return [_reply(each) for each in answers]


def _reply(answered: object) -> Reply:
    match answered:
        case {"answer": dict() as fields}:
            return Answer(fields)
        case {"error": dict() as fields}:
            return refusal_in(fields)
        case {"notTried": int()}:
            return unsent("an order that this one needs was not carried out")
        case _:
            return lost("the service's answer to an order of a batch cannot be read")


def _later(before: _OrderReply, now: _OrderReply) -> _OrderReply:
    """Return the reply to an order that was sent again.

    A reply to the order itself always counts. A request that failed as a whole proves nothing: an
    order that may have been carried out before may still have been.
    """
    was_unsure = isinstance(before.reply, WireRefusal) and before.reply.unsure
    if now.is_own or not was_unsure or isinstance(now.reply, Answer):
        return now
    return now._replace(reply=replace(now.reply, unsure=True))
