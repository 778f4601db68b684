"""Bodies that take much memory for their length: they need room as long ones do."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport.admission import Budget
from reconciler.service.transport.bodies import Bodies
from reconciler.service.transport.json_bodies import read_body
from reconciler.service.transport.limits import SMALL_BODY, Limits
from reconciler.service.transport.memory import JSON_FACTOR

HEADERS = {"authorization": ["Bearer t"]}


def filled(part: str) -> bytes:
    """Return a small body that is full of one kind of value."""
    count = (SMALL_BODY - 10) // (len(part) + 1)
    return f'{{"a":[{",".join([part] * count)}]}}'.encode()


def objects_size(body: bytes) -> int:
    """Return how many bytes a body takes once it is read."""
    tracemalloc.start()
    held = read_body(body)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held
    return size


def room_of(body: bytes) -> int:
    """Return the room that is held while a call with a body is carried out."""

    async def answer(call: Incoming) -> Received:
        assert isinstance(call.fields, Refusal)
        return Received("", call.fields)

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def held(_: bytes | None) -> int:
        return budget.held

    budget = Budget.of(Limits())
    return asyncio.run(Bodies(answer, budget).take(HEADERS, receive, 1 << 20, held))


@pytest.mark.parametrize("part", ["[]", "{}", '{"a":1}', '"ab"', "1000", "[[[[]]]]"])
def test_a_small_body_takes_what_the_sum_says_or_has_room_for_more(part: str) -> None:
    """Lists and objects take most: up to thirty times their text."""
    body = filled(part)

    assert objects_size(body) <= (SMALL_BODY + room_of(body)) * JSON_FACTOR


def test_a_usual_small_body_needs_no_room() -> None:
    """A batch of short orders, as many as are small together."""
    order = {"operation": "DeleteAction", "fields": {"id": "1" * 15}, "idempotencyKey": "k" * 32}

    assert room_of(filled(json.dumps(order))) == 0
