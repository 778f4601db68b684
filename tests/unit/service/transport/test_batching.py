"""The batcher: calls are handed to threads, and nobody is left to wait for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Event
from typing import Any

import pytest

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore.errors import StoreUnreachableError, StoreUnusableError
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.engine import Engine
from reconciler.service.operations.request import Request
from reconciler.service.transport.batching import THREADS, Batcher, StoreCheck
from reconciler.service.transport.limits import READERS
from tests.memory_store import MemoryEventStore, open_memory
from tests.running import furnish
from tests.unit.service.transport.batches import (
    ACTION,
    answers_of,
    by_two,
    count,
    failing_once,
    orders,
    refusal_of,
)


def no_thread(batcher: Batcher, patch: pytest.MonkeyPatch) -> None:
    submit: Callable[..., Future[Any]] = batcher._threads.submit
    failure = RuntimeError("can't start new thread")
    patch.setattr(batcher._threads, "submit", failing_once(failure, submit))


def no_memory(_: Batcher, patch: pytest.MonkeyPatch) -> None:
    really = MemoryEventStore.transaction
    patch.setattr(MemoryEventStore, "transaction", failing_once(MemoryError(), really))


def no_file(_: Batcher, patch: pytest.MonkeyPatch) -> None:
    really = MemoryEventStore.transaction
    failure = OSError(24, "Too many open files")
    patch.setattr(MemoryEventStore, "transaction", failing_once(failure, really))


@pytest.mark.parametrize("spoil", [no_thread, no_memory, no_file])
def test_who_asks_while_the_machine_gives_out_is_told_and_the_next_is_served(
    spoil: Callable[[Batcher, pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue whose task had ended would keep every later write waiting."""
    first, second = answers_of(2, spoil, monkeypatch)

    assert isinstance(first.answer, Refusal)
    assert (first.answer.code, first.answer.reason) == (Code.UNAVAILABLE, "service.exhausted")
    assert not isinstance(second.answer, Refusal)


def test_every_thread_has_begun_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later there may be no memory for one."""
    begun: list[int] = []

    answers_of(1, lambda batcher, _: begun.append(len(batcher._threads._threads)), monkeypatch)

    assert begun == [THREADS]


def test_reads_that_wait_together_share_a_view_and_each_gets_its_own_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread and a view for each would make many connections slower than one."""
    service = open_memory()
    bearer = {"authorization": [f"Bearer {furnish(service).tokens['viewer']}"]}
    views: list[int] = []

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        calls = [
            Incoming("GetServiceInfo" if number % 3 else "ListOrgs", {}, bearer if number else {})
            for number in range(60)
        ]
        count(monkeypatch, "snapshot", views)
        try:
            return await asyncio.gather(*map(batcher.answer, calls))
        finally:
            await batcher.close()

    first, *others = asyncio.run(ask())

    assert isinstance(first.answer, Refusal)
    assert first.answer.code == Code.UNAUTHENTICATED
    for number, received in enumerate(others, 1):
        assert not isinstance(received.answer, Refusal)
        assert ("instance" in received.answer) == bool(number % 3)
        assert ("result" in received.answer) == (not number % 3)
    assert 0 < len(views) <= 2 * READERS


def test_writes_that_come_one_after_the_other_share_a_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is committed as long as every turn of the loop brings one more."""
    service = open_memory()
    bearer = {"authorization": [f"Bearer {furnish(service).tokens['editor']}"]}
    commits: list[int] = []

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        count(monkeypatch, "transaction", commits)
        asked = []
        for number in range(60):
            call = Incoming("CreateAction", {**ACTION, "name": f"greet{number}"}, bearer)
            asked.append(asyncio.ensure_future(batcher.answer(call)))
            await asyncio.sleep(0)
        try:
            return await asyncio.gather(*asked)
        finally:
            await batcher.close()

    assert not any(isinstance(received.answer, Refusal) for received in asyncio.run(ask()))
    assert len(commits) == 1


def test_a_long_read_is_in_the_way_of_none_that_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = open_memory()
    bearer = {"authorization": [f"Bearer {furnish(service).tokens['viewer']}"]}
    call = Incoming("GetServiceInfo", {}, bearer)
    begun, may_end = Event(), Event()
    really = MemoryEventStore.snapshot

    def long(store: MemoryEventStore) -> Any:
        monkeypatch.setattr(MemoryEventStore, "snapshot", really)
        begun.set()
        may_end.wait(10)
        return really(store)

    async def ask() -> None:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        monkeypatch.setattr(MemoryEventStore, "snapshot", long)
        first = asyncio.ensure_future(batcher.answer(call))
        try:
            await asyncio.to_thread(begun.wait, 10)
            for _ in range(20):
                received = await asyncio.wait_for(batcher.answer(call), 10)
                assert not isinstance(received.answer, Refusal)
            assert not first.done()
            may_end.set()
            assert not isinstance((await first).answer, Refusal)
        finally:
            may_end.set()
            await batcher.close()

    asyncio.run(ask())


def reads_beside_a_bad_one(patch: pytest.MonkeyPatch, failure: Exception) -> Sequence[Received]:
    """Return the answers to reads that came together, of which the first fails."""
    service = open_memory()
    bearer = {"authorization": [f"Bearer {furnish(service).tokens['viewer']}"]}
    really = Engine.read

    def fragile(engine: Engine, view: Snapshot, requests: Sequence[Request]) -> Any:
        if any(request.fields["id"] == "0" for request in requests):
            raise failure
        return really(engine, view, requests)

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        patch.setattr(Engine, "read", fragile)
        calls = [Incoming("GetAction", {"id": str(number)}, bearer) for number in range(30)]
        try:
            return await asyncio.gather(*map(batcher.answer, calls))
        finally:
            await batcher.close()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (ValueError("a damaged row"), "service.failed"),
        (MemoryError(), "service.exhausted"),
        (StoreUnusableError("a damaged page", "restore"), "store.unavailable"),
    ],
)
def test_a_read_that_fails_fails_alone(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, reason: str
) -> None:
    first, *others = reads_beside_a_bad_one(monkeypatch, failure)

    assert refusal_of(first).reason == reason
    assert {refusal_of(received).code for received in others} == {Code.NOT_FOUND}


def test_where_the_store_is_away_nobody_asks_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would wait for it in turn."""
    answers = reads_beside_a_bad_one(monkeypatch, StoreUnreachableError("away", "wait"))

    assert {refusal_of(received).reason for received in answers} == {"store.unavailable"}


def test_a_server_that_stops_answers_what_was_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest may be asked for again."""
    service = open_memory()
    bearer = {"authorization": [f"Bearer {furnish(service).tokens['editor']}"]}
    commits: list[int] = []
    committed = by_two(monkeypatch, commits)

    async def ask() -> Received:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        batch = asyncio.ensure_future(batcher.answer(Incoming("WriteBatch", orders(500), bearer)))
        try:
            await asyncio.to_thread(committed.wait, 10)
            batcher.end_waiting()
            return await asyncio.wait_for(batch, 10)
        finally:
            await batcher.close()

    answer = asyncio.run(ask()).answer

    assert isinstance(answer, dict)
    done = sum(commits)
    assert [("answer" in each) for each in answer["answers"]] == [
        number < done for number in range(500)
    ]
    assert {each["error"]["code"] for each in answer["answers"][done:]} == {14}
    assert done < 500


class PanicError(BaseException):
    """What a library may raise in a thread."""


def test_whatever_a_thread_ends_with_the_next_read_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A carrier that was counted for ever would be missing for ever."""
    service = open_memory()
    call = Incoming("Healthz", {}, {})

    async def ask() -> None:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        really = batcher._threads.submit
        try:
            for _ in range(READERS + 1):
                monkeypatch.setattr(batcher._threads, "submit", failing_once(PanicError(), really))
                lost = await asyncio.wait_for(batcher.answer(call), 10)
                assert isinstance(lost.answer, Refusal)
            answered = await asyncio.wait_for(batcher.answer(call), 10)
            assert not isinstance(answered.answer, Refusal)
        finally:
            await batcher.close()

    asyncio.run(ask())


def test_all_who_ask_at_once_share_one_answer() -> None:
    """However many look at a page, one thread asks."""
    asked: list[int] = []
    go = Event()

    def ask() -> bool:
        asked.append(1)
        return go.wait(5)

    async def many() -> list[bool | None]:
        question = StoreCheck(ask, 5)
        waiting = [asyncio.ensure_future(question.answer()) for _ in range(20)]
        await asyncio.sleep(0)
        go.set()
        told = await asyncio.gather(*waiting)
        question.close()
        return told

    assert asyncio.run(many()) == [True] * 20
    assert len(asked) == 1


def test_a_silent_store_gives_no_answer_and_is_not_asked_again_meanwhile() -> None:
    """The answer that comes in the end is that of the next who asks."""
    asked: list[int] = []
    go = Event()

    def ask() -> bool:
        asked.append(1)
        return go.wait(5)

    async def twice() -> list[bool | None]:
        question = StoreCheck(ask, 0.01)
        told = [await question.answer(), await question.answer()]
        go.set()
        question.close()
        return told

    assert asyncio.run(twice()) == [None, None]
    assert len(asked) == 1


def test_a_failure_is_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    """It stands in the log, and never on a page."""

    def ask() -> bool:
        raise ValueError("a defect")

    async def once() -> bool | None:
        return await StoreCheck(ask, 5).answer()

    assert asyncio.run(once()) is None
    assert "a question to the store failed" in caplog.text
