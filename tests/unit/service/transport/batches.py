"""Calls of a batcher, and what they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.batch import Orders
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.engine import Engine
from reconciler.service.transport.batching import Batcher
from tests.memory_store import MemoryEventStore, open_memory
from tests.running import furnish

ACTION = {"name": "greet", "script": "function greet() {}"}


def answers_of(
    calls: int, spoil: Callable[[Batcher, pytest.MonkeyPatch], None], patch: pytest.MonkeyPatch
) -> Sequence[Received]:
    """Return the answers to calls, one after the other, once something is spoilt."""
    service = open_memory()
    bearer = {"authorization": [f"Bearer {furnish(service).tokens['editor']}"]}

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        spoil(batcher, patch)
        call = Incoming("CreateAction", ACTION, bearer)
        try:
            return [await asyncio.wait_for(batcher.answer(call), 10) for _ in range(calls)]
        finally:
            await batcher.close()

    return asyncio.run(ask())


def refusal_of(received: Received) -> Refusal:
    assert isinstance(received.answer, Refusal)
    return received.answer


def failing_once(failure: BaseException, really: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that fails, and does what another does from then on."""
    left = [failure]

    def once(*given: Any, **named: Any) -> Any:
        if left:
            raise left.pop()
        return really(*given, **named)

    return once


def count(patch: pytest.MonkeyPatch, method: str, calls: list[int]) -> None:
    """Add to a list whenever a method of the store is called from now on."""
    really = getattr(MemoryEventStore, method)

    def counted(store: MemoryEventStore) -> Any:
        calls.append(1)
        return really(store)

    patch.setattr(MemoryEventStore, method, counted)


def orders(count: int, start: int = 0) -> dict[str, Any]:
    """Return the fields of a batch."""
    return {
        "orders": [
            {"operation": "CreateAction", "fields": {**ACTION, "name": f"n{start + number}"}}
            for number in range(count)
        ]
    }


def by_two(patch: pytest.MonkeyPatch, commits: list[int]) -> Event:
    """Let two orders share a commit, and count the orders of each; set what comes back then."""
    really, committed = Engine.write_orders, Event()

    def write(engine: Engine, taken: Orders) -> None:
        before = len(taken.answer()["answers"])
        taken._at_once = 2
        really(engine, taken)
        commits.append(len(taken.answer()["answers"]) - before)
        committed.set()

    patch.setattr(Engine, "write_orders", write)
    return committed


def bearer(token: str) -> dict[str, list[str]]:
    """Return the headers of a caller."""
    return {"authorization": [f"Bearer {token}"]}
