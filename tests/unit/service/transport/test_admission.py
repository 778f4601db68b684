"""Callers are admitted by their headers alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.callers import token_hash
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport.admission import FRESH_SECONDS, Admission, Budget
from tests.rows import each_row
from tests.running import prepare


def test_a_caller_is_admitted_and_nobody_else(tmp_path: Path) -> None:
    """By a token that the store knows; the caller is what stands for the token."""
    known = prepare(tmp_path / "identity.db")
    with closing(open_sqlite(tmp_path / "identity.db")) as service:

        async def answer(call: Incoming) -> Received:
            return service.dispatcher.receive([call])[0]

        def ask(values: Sequence[str]) -> bytes | str:
            try:
                return asyncio.run(Admission(answer).caller({"authorization": values}))
            except Refusal as refusal:
                return refusal.message

        token = known.tokens["viewer"]
        assert ask([f"Bearer {token}"]) == token_hash(token)
        assert ask([f"Bearer {token}x"]) == "the token is not known to this service"
        assert ask(["Basic x"]) == "the authorization header must be one bearer token"
        assert ask([]) == "a bearer token is needed: Authorization: Bearer TOKEN"


def test_a_store_that_fails_admits_nobody() -> None:
    """The caller is told what the service says of its store."""
    away = Refusal(Code.UNAVAILABLE, "the store cannot be used", "store.unavailable")

    async def answer(_: Incoming) -> Received:
        return Received("", away)

    with pytest.raises(Refusal) as refused:
        asyncio.run(Admission(answer).caller({"authorization": ["Bearer x"]}))
    assert (refused.value.code, refused.value.reason) == (away.code, away.reason)


def test_a_caller_is_looked_up_once_in_two_seconds() -> None:
    """Whatever transport asks: many large requests share one look at the store."""
    looks: list[Incoming] = []
    now = [0.0]

    async def answer(call: Incoming) -> Received:
        looks.append(call)
        assert isinstance(call.fields, Refusal)
        return Received("", call.fields)

    admission = Admission(answer, lambda: now[0])
    for now[0] in (0.0, FRESH_SECONDS - 0.1, FRESH_SECONDS + 0.1):
        key = asyncio.run(admission.caller({"authorization": ["Bearer x"]}))

    assert (len(looks), key) == (2, token_hash("x"))


A, B, C = b"a", b"b", b"c"


class Asking:
    """Requests in the order in which they come; each holds its place until it is ended."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}
        self.inside: list[str] = []

    async def come(self, name: str, caller: bytes, size: int) -> None:
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._hold(name, caller, size))
        await settled()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await settled()

    async def ended(self, name: str) -> None:
        """Wait for the end of a request, and raise what it was refused with."""
        await self._tasks[name]

    async def leave(self, name: str) -> None:
        """Go away, as a caller that hangs up does."""
        self._tasks[name].cancel()
        await asyncio.gather(self._tasks[name], return_exceptions=True)
        await settled()

    async def _hold(self, name: str, caller: bytes, size: int) -> None:
        async with self._budget.place(caller, size):
            self.inside.append(name)
            await self._ends[name].wait()
            self.inside.remove(name)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@each_row(
    ("coming", "inside"),
    [
        pytest.param([("a1", A, 40), ("b1", B, 40)], ["a1", "b1"], id="there is room"),
        pytest.param([("a1", A, 30), ("a2", A, 30)], ["a1"], id="one caller has a share"),
        pytest.param(
            [("a1", A, 40), ("a2", A, 40), ("b1", B, 40)],
            ["a1", "b1"],
            id="whose share is used is passed by others",
        ),
        pytest.param(
            [("a1", A, 40), ("b1", B, 40), ("c1", C, 40), ("c2", C, 10)],
            ["a1", "b1"],
            id="nobody passes a large one for which there is no room",
        ),
        pytest.param([("a1", A, 1000)], ["a1"], id="more than a share gets its turn"),
        pytest.param([("a1", A, 1000), ("a2", A, 1)], ["a1"], id="and counts as a whole one"),
    ],
)
def test_room_is_shared(coming: Sequence[tuple[str, bytes, int]], inside: list[str]) -> None:
    """Of 100 bytes one caller gets 50."""

    async def ask() -> None:
        budget = Budget(100, 50, 5)
        asking = Asking(budget)
        for name, caller, size in coming:
            await asking.come(name, caller, size)
        assert asking.inside == inside
        assert len(budget._queue) == len(coming) - len(inside)
        for name, _, _ in coming:
            await asking.end(name)
        assert (budget.held, len(budget._queue)) == (0, 0)

    asyncio.run(ask())


def test_the_caller_that_holds_least_is_next() -> None:
    """A caller with many requests in the queue does not keep another one waiting."""

    async def ask() -> None:
        asking = Asking(Budget(100, 100, 5))
        for name in ("a1", "a2", "a3", "a4"):
            await asking.come(name, A, 40)
        await asking.come("b1", B, 40)
        assert asking.inside == ["a1", "a2"]

        await asking.end("a1")
        assert asking.inside == ["a2", "b1"]
        await asking.end("a2")
        assert asking.inside == ["b1", "a3"]

    asyncio.run(ask())


def test_who_waits_too_long_is_refused_and_forgotten() -> None:
    """With the code that says: ask again."""

    async def ask() -> None:
        budget = Budget(100, 50, wait_seconds=0.01)
        async with AsyncExitStack() as places:
            await places.enter_async_context(budget.place(A, 50))
            with pytest.raises(Refusal) as refused:
                await places.enter_async_context(budget.place(A, 10))
        assert refused.value.code is Code.RESOURCE_EXHAUSTED
        assert (budget.held, len(budget._queue)) == (0, 0)

    asyncio.run(ask())


def test_a_caller_whose_requests_come_to_an_end_waits_as_long_as_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several runs with one token send batches, of which each takes some seconds."""
    passed = 0.0

    async def ask() -> None:
        nonlocal passed
        loop = asyncio.get_running_loop()
        really = loop.time
        monkeypatch.setattr(loop, "time", lambda: really() + passed)
        asking = Asking(Budget(100, 50, wait_seconds=10))
        names = [f"a{number}" for number in range(6)]
        for name in names:
            await asking.come(name, A, 50)
        for name in names[:-1]:
            assert asking.inside == [name]
            passed += 9
            await settled()
            await asking.end(name)
        assert asking.inside == names[-1:]
        await asking.come("late", A, 50)
        passed += 11
        with pytest.raises(Refusal):
            await asking.ended("late")

    asyncio.run(ask())


@pytest.mark.parametrize("gone", ["a1", "a2"])
def test_who_goes_away_leaves_room(gone: str) -> None:
    """Whether it had its place already, or waited for it."""

    async def ask() -> None:
        budget = Budget(100, 50, 5)
        asking = Asking(budget)
        await asking.come("a1", A, 50)
        await asking.come("a2", A, 50)
        await asking.leave(gone)
        assert (budget.held, len(budget._queue)) == (50, 0)

    asyncio.run(ask())


def test_a_place_granted_while_its_caller_leaves_is_given_back() -> None:
    """Both happen in one turn of the loop."""

    async def ask() -> None:
        budget = Budget(100, 50, 5)
        first, second = budget.place(A, 50), budget.place(A, 50)
        await first.__aenter__()
        waiting = asyncio.ensure_future(second.__aenter__())
        await settled()
        await first.__aexit__(None, None, None)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert (budget.held, len(budget._queue)) == (0, 0)

    asyncio.run(ask())


def test_who_leave_together_leave_room() -> None:
    """The one that gives back its place grants it to none that is about to go."""

    async def ask() -> None:
        budget = Budget(100, 50, 5)

        async def hold() -> None:
            async with budget.place(A, 50):
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(hold()) for _ in range(4)]
        await settled()
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(end) for end in ends] == [asyncio.CancelledError] * 4
        assert (budget.held, len(budget._queue)) == (0, 0)

    asyncio.run(ask())
