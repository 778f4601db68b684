"""The batcher: calls are handed to threads, in turns, and nobody is left to wait for ever."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from threading import Event, Semaphore
from time import sleep
from typing import Any
from weakref import WeakValueDictionary

import pytest

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore.errors import StoreUnreachableError, StoreUnusableError
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.operations.batch import Orders
from reconciler.service.operations.callers import token_hash
from reconciler.service.operations.commit import Commit
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.engine import Engine
from reconciler.service.operations.request import Request
from reconciler.service.scheduling import batching
from reconciler.service.scheduling.batching import THREADS, Batcher, StoreCheck
from reconciler.service.scheduling.reading import BATCH, Job
from reconciler.service.scheduling.shares import (
    READERS,
)
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

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return really(*arguments)

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


def test_a_batch_lets_other_writers_in_after_each_of_its_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many batches wait, another write waits for one commit of one of them at most."""
    service = open_memory()
    tokens = furnish(service).tokens
    commits: list[int] = []
    waited: list[int] = []
    committed = by_two(monkeypatch, commits)

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        batches = [
            asyncio.ensure_future(
                batcher.answer(Incoming("WriteBatch", orders(20, 20 * number), bearer(tokens[by])))
            )
            for number, by in enumerate(("editor", "stranger", "editor", "stranger"))
        ]
        try:
            await asyncio.to_thread(committed.wait, 10)
            for number in range(5):
                before = len(commits)
                fields = {**ACTION, "name": f"single{number}"}
                call = Incoming("CreateAction", fields, bearer(tokens["editor"]))
                assert not isinstance((await batcher.answer(call)).answer, Refusal)
                waited.append(len(commits) - before)
            return await asyncio.gather(*batches)
        finally:
            await batcher.close()

    answered = asyncio.run(ask())

    assert max(waited) <= 2  # the one under way, and perhaps one that began meanwhile
    assert commits == [2] * 40
    for received in answered:
        assert isinstance(received.answer, dict)
        assert all("answer" in each for each in received.answer["answers"])


def test_batches_of_a_caller_come_in_turn_and_those_of_two_callers_alternate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first is answered while the next is carried out, and no caller waits for another's."""
    service = open_memory()
    tokens = furnish(service).tokens
    done: list[str] = []
    committed = by_two(monkeypatch, [])

    async def ask() -> None:
        batcher = Batcher(service.dispatcher, lambda _: "all")

        async def batch(name: str, by: str, count: int, start: int) -> None:
            call = Incoming("WriteBatch", orders(count, start), bearer(tokens[by]))
            assert isinstance((await batcher.answer(call)).answer, dict)
            done.append(name)

        try:
            first = asyncio.ensure_future(batch("first", "editor", 200, 0))
            await asyncio.to_thread(committed.wait, 10)
            await asyncio.gather(
                first, batch("second", "editor", 4, 200), batch("other", "stranger", 4, 0)
            )
        finally:
            await batcher.close()

    asyncio.run(ask())

    assert done == ["other", "first", "second"]


def test_no_organization_that_an_order_names_makes_a_batch_wait_for_itself() -> None:
    """Turns of callers, of batches and of writes are kept apart, however an id is spelt."""
    service = open_memory()
    token = furnish(service).tokens["admin"]
    account = token_hash(token).hex()
    names = (f"batches by {account}", "batches of x", account, "x")

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, service.dispatcher.organization_of)
        batches = [[{**orders(1)["orders"][0], "organizationId": name}] for name in names]
        calls = [Incoming("WriteBatch", {"orders": batch}, bearer(token)) for batch in batches]
        try:
            return [await asyncio.wait_for(batcher.answer(call), 3) for call in calls]
        finally:
            await batcher.close()

    for received in asyncio.run(ask()):
        assert isinstance(received.answer, dict)
        assert received.answer["answers"][0]["error"]["code"] in {3, 5}


def test_a_batch_takes_no_turn_of_an_organization_that_its_caller_does_not_see() -> None:
    """Else it would keep the writes of others waiting, and be refused only then."""
    service = open_memory()
    known = furnish(service)
    named = {"organizationId": known.other_organization}
    fields = {"orders": [{**orders(1)["orders"][0], **named}]}

    taken = {
        by: service.dispatcher.take_batch(Incoming("WriteBatch", fields, bearer(known.tokens[by])))
        for by in ("editor", "stranger", "admin")
    }

    queues = {by: found.organization for by, found in taken.items() if isinstance(found, Orders)}
    assert queues == {
        "editor": "",
        "stranger": known.other_organization,
        "admin": known.other_organization,
    }


def test_a_batch_ends_when_its_caller_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for again, and would be carried out twice side by side."""
    service = open_memory()
    headers = bearer(furnish(service).tokens["editor"])
    commits: list[int] = []
    by_two(monkeypatch, commits)
    call = Incoming("WriteBatch", orders(20), headers, has_left=lambda: len(commits) == 3)

    async def ask() -> Received:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        try:
            return await asyncio.wait_for(batcher.answer(call), 10)
        finally:
            await batcher.close()

    answer = asyncio.run(ask()).answer

    assert isinstance(answer, dict)
    assert commits == [2, 2, 2]
    assert [each.get("error", {}).get("code", 0) for each in answer["answers"]] == [0] * 6 + [
        14
    ] * 14


@pytest.mark.parametrize(
    ("failure", "codes"),
    [
        (ValueError("a damaged row"), {13}),
        (MemoryError(), {14}),
        (StoreUnreachableError("away", "wait"), {14}),
    ],
)
def test_a_batch_under_which_something_fails_is_answered(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, codes: set[int]
) -> None:
    """Each of its orders is, and the next batch is carried out."""
    service = open_memory()
    bearer = {"authorization": [f"Bearer {furnish(service).tokens['editor']}"]}
    really = Commit.carry_out

    def fragile(commit: Commit, request: Request) -> Any:
        if request.fields["name"] == "n2":
            raise failure
        return really(commit, request)

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, lambda _: "all")
        monkeypatch.setattr(Commit, "carry_out", fragile)
        calls = [Incoming("WriteBatch", orders(4, start), bearer) for start in (0, 4)]
        try:
            return [await asyncio.wait_for(batcher.answer(call), 10) for call in calls]
        finally:
            await batcher.close()

    first, second = [received.answer for received in asyncio.run(ask())]

    assert isinstance(first, dict)
    assert isinstance(second, dict)
    told = [each.get("error", {}).get("code", 0) for each in first["answers"]]
    assert told[2] in codes
    assert set(told) <= {0, *codes}
    if codes == {13}:
        assert told == [0, 0, 13, 0]
    assert all("answer" in each for each in second["answers"])


@pytest.mark.parametrize("commits_made", [1, 2])
def test_queues_that_share_commits_make_one_of_what_comes_together(
    commits_made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight organizations would make eight small commits at a time."""
    service = open_memory()
    known = furnish(service)
    commits: list[int] = []

    def queue_of(call: Incoming) -> str:
        return "even" if "two" in str(call.fields) or "four" in str(call.fields) else "odd"

    async def ask() -> Sequence[Received]:
        batcher = Batcher(service.dispatcher, queue_of, queues_share=commits_made == 1)
        count(monkeypatch, "transaction", commits)
        calls = [
            Incoming("CreateAction", {**ACTION, "name": name}, bearer(known.tokens["editor"]))
            for name in ("one", "two", "three", "four")
        ]
        try:
            return await asyncio.gather(*map(batcher.answer, calls))
        finally:
            await batcher.close()

    assert not any(isinstance(received.answer, Refusal) for received in asyncio.run(ask()))
    assert len(commits) == commits_made


def test_a_queue_with_many_writes_is_not_before_those_of_others() -> None:
    """Where all fit into one commit, they keep the order in which they came."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        names = ["greedy"] * 5 + ["other", "greedy", "other"]
        waiting = {Job(Incoming("", {}, {}), loop.create_future()): name for name in names}
        places = {job: at for at, job in enumerate(waiting)}

        def taken(most: int) -> list[int]:
            return [places[job] for job in batching.in_turns(waiting, most)]

        assert taken(8) == list(range(8))
        assert taken(4) == [0, 5, 1, 7]

    asyncio.run(main())


def tried_as(
    patch: pytest.MonkeyPatch, queue_of: Callable[[Incoming], str], commits: int
) -> Sequence[tuple[bool, int]]:
    """Return of each commit whether it was shared, and its calls.

    The first one is held up. Another call comes while each of them is made.
    """
    service = open_memory()
    tried: list[tuple[bool, int]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        batcher = Batcher(service.dispatcher, queue_of, queues_share=True)
        asked: list[asyncio.Task[Received]] = []
        is_done = asyncio.Event()

        def ask() -> None:
            call = Incoming("CreateAction", ACTION, {})
            asked.append(loop.create_task(batcher.answer(call)))

        def receive(calls: Sequence[Incoming], _: float, *, is_shared: bool) -> list[Received]:
            tried.append((is_shared, len(calls)))
            loop.call_soon_threadsafe(ask if len(tried) < commits else is_done.set)
            sleep(0.02)
            return [] if len(tried) == 1 else [Received("", {})] * len(calls)

        patch.setattr(service.dispatcher, "receive", receive)
        try:
            ask()
            await is_done.wait()
            await asyncio.gather(*asked)
        finally:
            await batcher.close()

    asyncio.run(asyncio.wait_for(main(), 20))
    return tried


def test_a_queue_that_is_never_empty_shares_commits_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise one short wait for a lock would end sharing for as long as there is much to do."""
    tried = tried_as(monkeypatch, lambda _: "busy", 8)

    assert tried[0] == (True, 1)
    assert not tried[1][0]
    assert any(is_shared for is_shared, _ in tried[2:])


@pytest.mark.parametrize(("count", "length"), [(1, 500_000), (20, 10_000)])
def test_a_queue_with_much_to_write_is_not_waited_for_by_others(
    count: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large write takes a tenth of a second, which no other organization should notice."""
    service = open_memory()
    tried: list[tuple[bool, list[str]]] = []

    def queue_of(call: Incoming) -> str:
        return "large" if call.operation == "AddOIDCApp" else call.operation

    def receive(calls: Sequence[Incoming], _: float, *, is_shared: bool) -> list[Received]:
        tried.append((is_shared, sorted(set(map(queue_of, calls)))))
        return [Received("", {})] * len(calls)

    async def main() -> None:
        batcher = Batcher(service.dispatcher, queue_of, queues_share=True)
        monkeypatch.setattr(service.dispatcher, "receive", receive)
        large = {"name": "shop", "redirectUris": ["u" * 100] * (length // 100)}
        calls = [Incoming("AddOIDCApp", large, {})] * count
        calls += [Incoming(name, ACTION, {}) for name in ("AddProject", "CreateAction")]
        try:
            await asyncio.gather(*map(batcher.answer, calls))
        finally:
            await batcher.close()

    asyncio.run(main())

    assert sorted(tried) == [(False, ["large"]), (True, ["AddProject", "CreateAction"])]


def test_a_write_keeps_its_queue_while_callers_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise writes of several organizations would wait together for the lock of one."""
    asked: list[Incoming] = []

    def queue_of(call: Incoming) -> str:
        """Return a name for a call once only."""
        is_known = not any(call is each for each in asked)
        asked.append(call)
        return f"o{len(asked)}" if is_known else ""

    tried = tried_as(monkeypatch, queue_of, 3)

    assert [count for _, count in tried[:3]] == [1, 1, 1]
    assert len(asked) == len({id(call) for call in asked})


class Body(dict[str, Any]):
    """Fields whose end can be seen."""


class Slow:
    """A dispatcher whose calls take until it is told to end."""

    def __init__(self) -> None:
        self.begun, self.may_end = Semaphore(0), Event()

    def load(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    def receive(self, calls: Sequence[Incoming], _: float, **named: bool) -> list[Received]:
        self.begun.release()
        self.may_end.wait(60)
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
            async with asyncio.timeout(60):
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
            await asyncio.to_thread(slow.begun.acquire, timeout=60)
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
def test_calls_of_one_caller_that_wait_keep_no_other_from_calling(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "WAITING", 40)
    monkeypatch.setattr(batching, "WAITING_OF_ONE", 10)

    async def main(_: Batcher, slow: Slow, ask: Callable[..., asyncio.Task[Received]]) -> None:
        many = [ask(operation, "greedy") for _ in range(41)]
        await asyncio.to_thread(slow.begun.acquire, timeout=60)
        await settled()
        others = [ask(asked, "other") for asked in ("CreateAction", "GetAction")]
        await settled()
        slow.may_end.set()

        for answered in await asyncio.gather(*others):
            assert answered.answer == {}
        refused = [each.answer for each in await asyncio.gather(*many)]
        told = {each.reason for each in refused if isinstance(each, Refusal)}
        assert told == {"service.busy"}
        assert refused.count({}) == 10

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
