"""Calls that wait for a thread: what is kept of them, and how many one caller may have."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from threading import Event, Semaphore
from typing import Any
from weakref import WeakValueDictionary

import pytest

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport.batching import Batcher
from reconciler.service.transport.limits import READERS, WAITING, WAITING_OF_ONE
from reconciler.service.transport.reading import BATCH
from tests.memory_store import open_memory
from tests.unit.service.transport.batches import bearer, refusal_of


class Body(dict[str, Any]):
    """Fields whose end can be seen."""


class Slow:
    """A dispatcher whose calls take until it is told to end."""

    def __init__(self) -> None:
        self.begun, self.may_end = Semaphore(0), Event()

    def load(self) -> None:
        pass

    def can_read(self) -> bool:
        return True

    def receive(self, calls: Sequence[Incoming], _: float) -> list[Received]:
        self.begun.release()
        self.may_end.wait(10)
        return [Received("", {})] * len(calls)


def slowly(
    queue: str,
    main: Callable[[Batcher, Slow, Callable[..., asyncio.Task[Received]]], Awaitable[None]],
) -> None:
    """Run something with a batcher whose threads are slow, and a way to ask it."""

    async def running() -> None:
        slow: Any = Slow()
        batcher = Batcher(slow, lambda _: queue)

        def ask(operation: str, token: str, fields: dict[str, Any] | None = None) -> Any:
            call = Incoming(operation, {} if fields is None else fields, bearer(token))
            return asyncio.ensure_future(batcher.answer(call))

        try:
            async with asyncio.timeout(10):
                await main(batcher, slow, ask)
        finally:
            slow.may_end.set()
            await batcher.close()

    asyncio.run(running())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "queue", "threads", "most"),
    [
        ("CreateAction", "all", 1, 0),
        ("CreateAction", "", READERS, 4 * BATCH),
        ("GetAction", "all", READERS, 0),
    ],
)
def test_nothing_is_kept_of_a_call_whose_caller_left(
    operation: str, queue: str, threads: int, most: int
) -> None:
    """But of those that threads are at: calls can be sent and cancelled faster than that."""
    alive: WeakValueDictionary[int, Body] = WeakValueDictionary()

    async def main(_: Batcher, slow: Slow, ask: Callable[..., asyncio.Task[Received]]) -> None:
        first = [ask(operation, f"first{at}") for at in range(READERS)]
        for _thread in range(threads):
            await asyncio.to_thread(slow.begun.acquire, timeout=10)
        for _round in range(3):
            left = [ask(operation, f"left{at % 4}", body(alive)) for at in range(1000)]
            await settled()
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            del left, task
            await settled()
            gc.collect()
            assert len(alive) <= most
        slow.may_end.set()
        await asyncio.gather(*first)

    slowly(queue, main)


def body(alive: WeakValueDictionary[int, Body]) -> Body:
    """Return the fields of a call, and see how long they last."""
    made = Body()
    alive[id(made)] = made
    return made


async def settled() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("operation", ["CreateAction", "GetAction"])
def test_calls_of_one_caller_that_wait_keep_no_other_from_calling(operation: str) -> None:
    async def main(_: Batcher, slow: Slow, ask: Callable[..., asyncio.Task[Received]]) -> None:
        many = [ask(operation, "greedy") for _ in range(WAITING + 1)]
        await asyncio.to_thread(slow.begun.acquire, timeout=10)
        await settled()
        others = [ask(asked, "other") for asked in ("CreateAction", "GetAction")]
        await settled()
        slow.may_end.set()

        for answered in await asyncio.gather(*others):
            assert answered.answer == {}
        refused = [each.answer for each in await asyncio.gather(*many)]
        told = {each.reason for each in refused if isinstance(each, Refusal)}
        assert told == {"service.busy"}
        assert refused.count({}) == WAITING_OF_ONE

    slowly("all", main)


def test_a_call_that_has_no_token_takes_no_turn_to_be_refused() -> None:
    """Its message was not read; it must not stand between the writes of callers."""
    service = open_memory()
    unread = Refusal(Code.ABORTED, "the message was not taken in", "message.unread")

    async def ask() -> Received:
        def queue_of(_: Incoming) -> str:
            raise AssertionError("it was put in a queue")

        batcher = Batcher(service.dispatcher, queue_of)
        try:
            return await asyncio.wait_for(batcher.answer(Incoming("CreateAction", unread, {})), 10)
        finally:
            await batcher.close()

    assert refusal_of(asyncio.run(ask())).reason == "token.invalid"
