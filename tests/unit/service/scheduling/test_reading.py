"""Reads in turn: no caller keeps the threads from the others, and no call is left waiting."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from itertools import product

import pytest

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.request import bearer_token
from reconciler.service.scheduling import reading
from reconciler.service.scheduling.reading import (
    MOST_BUSY,
    PATIENCE_SECONDS,
    READERS_OF_ONE,
    READERS_OF_SLOW,
    SEVERAL,
    SLOW_FOR_SECONDS,
    SLOW_SECONDS,
    Job,
    Readers,
    Spent,
    Unread,
)
from reconciler.service.scheduling.shares import (
    READERS,
    UNCOUNTED,
    UNREAD,
)

QUICK, HEAVY = Spent(1, 0.001, 0.001), Spent(1, SLOW_SECONDS * 2, 1)

UNKNOWN = "unknown"
ENDING = Received("", Refusal(Code.UNAVAILABLE, "stops", "service.ending"))


class Threads:
    """Threads that take one call a turn, and are told when to be done with it."""

    def __init__(self, pause: float = 0.0) -> None:
        self.now = 0.0
        self.readers = Readers(self._carry_out, lambda: self.now, pause)
        self.answered: list[str] = []
        self.at_work: list[tuple[str, asyncio.Future[Spent]]] = []
        self.is_at_work = asyncio.Event()
        self.answer = Received("", {})

    async def _carry_out(self, batch: Sequence[Job]) -> Spent:
        (caller,) = {_caller_of(job) for job in batch}
        turn: asyncio.Future[Spent] = asyncio.get_running_loop().create_future()
        self.at_work.append((caller, turn))
        self.is_at_work.set()
        spent = await turn
        for job in batch[: spent.answered]:
            self.answered.append(job.call.operation)
            job.done.set_result(self.answer)
        return spent

    def ask(self, caller: str, *operations: str, delivery: ExitStack | None = None) -> list[Job]:
        return self.ask_with([f"Bearer {caller}"], *operations, delivery=delivery)

    def ask_with(
        self, authorization: list[str], *operations: str, delivery: ExitStack | None = None
    ) -> list[Job]:
        done = asyncio.get_running_loop().create_future
        jobs = [
            Job(
                Incoming(operation, {}, {"authorization": authorization}, delivery=delivery), done()
            )
            for operation in operations
        ]
        for job in jobs:
            assert self.readers.add(job)
        return jobs

    def working_for(self) -> Counter[str]:
        return Counter(caller for caller, _ in self.at_work)

    async def finish(self, caller: str, spent: Spent) -> None:
        """End the turns of a caller that are under way."""
        ended = [turn for name, turn in self.at_work if name == caller]
        self.at_work = [each for each in self.at_work if each[0] != caller]
        for turn in ended:
            turn.set_result(spent)
        await settled()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_calls_that_come_one_after_the_other_share_a_look_at_the_store() -> None:
    """A few turns of the loop between them, as over gRPC, are no reason for a look each."""

    async def main() -> None:
        threads = Threads(pause=0.1)
        jobs: list[Job] = []
        for number in range(4):
            jobs += threads.ask("a", f"{number}a", f"{number}b")
            await settled()
        assert threads.at_work == []
        await asyncio.wait_for(threads.is_at_work.wait(), 5)
        await threads.finish("a", Spent(len(jobs), 0.001, 0.001))

        assert [job.call.operation for job in jobs] == threads.answered

    asyncio.run(main())


def test_the_first_call_of_a_caller_that_has_just_had_several_waits_for_the_next() -> None:
    """One at a time they would cost a look at the store each. A caller with few never waits."""

    async def main() -> None:
        threads = Threads(pause=0.1)
        threads.ask("a", *many(SEVERAL))
        await asyncio.wait_for(threads.is_at_work.wait(), 5)
        await threads.finish("a", Spent(SEVERAL, 0.001, 0.001))
        threads.ask("a", "one")
        threads.ask("b", "alone")
        await settled()
        assert threads.working_for() == {"b": 1}
        threads.ask("a", "more")
        threads.is_at_work.clear()
        await asyncio.wait_for(threads.is_at_work.wait(), 5)
        await threads.finish("a", Spent(2, 0.001, 0.001))
        assert threads.answered[-2:] == ["one", "more"]
        threads.ask("a", "quick")
        await settled()
        assert threads.working_for()["a"] == 1
        for caller in "ab":
            await threads.finish(caller, QUICK)

    asyncio.run(main())


def test_as_many_calls_as_were_just_answered_wait_for_no_more() -> None:
    """They are all that a caller with so many connections has: to wait would be idle time."""

    async def main() -> None:
        threads = Threads(pause=0.01)
        threads.ask("a", *many(SEVERAL))
        await asyncio.wait_for(threads.is_at_work.wait(), 5)
        await threads.finish("a", Spent(SEVERAL, 0.001, 0.001))
        threads.readers._pause = 3600
        threads.ask("a", *many(SEVERAL))
        await settled()
        assert threads.working_for() == {"a": 1}
        await threads.finish("a", QUICK)

    asyncio.run(main())


def test_only_the_latest_callers_are_known_to_be_busy() -> None:
    async def scene(threads: Threads) -> None:
        for number in range(MOST_BUSY + 9):
            threads.ask(str(number), *many(SEVERAL))
            await settled()
            await threads.finish(str(number), Spent(SEVERAL, 0.001, 0.001))
        assert len(threads.readers._busy) == MOST_BUSY

    played(scene)


def played(scene: Callable[[Threads], Awaitable[None]]) -> None:
    async def play() -> None:
        threads = Threads()
        await scene(threads)
        await settled()
        while threads.at_work:
            await threads.finish(threads.at_work[0][0], QUICK)
        await asyncio.wait_for(threads.readers.close(), 5)
        assert not threads.readers._queues

    asyncio.run(play())


def _caller_of(job: Job) -> str:
    try:
        return bearer_token(job.call.headers)
    except Refusal:
        return UNKNOWN


def many(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def test_a_caller_whose_calls_take_long_leaves_threads_to_others() -> None:
    """Two such callers, too; and a third one who asks for little never waits for them."""

    async def scene(threads: Threads) -> None:
        for caller in ("a", "b"):
            for _ in range(READERS_OF_ONE + 1):
                threads.ask(caller, *many(20))
                await settled()
        assert threads.working_for() == {"a": READERS_OF_ONE, "b": READERS - READERS_OF_ONE}
        for _ in range(3):
            for caller in ("a", "b"):
                await threads.finish(caller, HEAVY)
            assert sum(threads.working_for().values()) == READERS_OF_SLOW
        threads.ask("c", "quick")
        await settled()
        assert threads.working_for()["c"] == 1
        await threads.finish("c", QUICK)
        assert threads.answered[-1] == "quick"

    played(scene)


def test_callers_whose_calls_take_long_take_turns() -> None:
    async def scene(threads: Threads) -> None:
        for caller in "abc":
            threads.ask(caller, *many(20))
            await settled()
            await threads.finish(caller, HEAVY)
        turns: Counter[str] = Counter()
        for _ in range(12):
            caller = threads.at_work[0][0]
            turns[caller] += threads.working_for()[caller]
            await threads.finish(caller, HEAVY)
        assert max(turns.values()) - min(turns[caller] for caller in "abc") <= READERS_OF_SLOW

    played(scene)


def test_who_was_slow_is_so_for_a_while_even_with_nothing_waiting() -> None:
    async def scene(threads: Threads) -> None:
        threads.ask("a", "first")
        await settled()
        await threads.finish("a", HEAVY)
        threads.ask("a", *many(9))
        await settled()
        assert threads.working_for() == {"a": 1}  # its other calls wait in the same batch
        await threads.finish("a", Spent(1, 0, 0))
        assert threads.working_for()["a"] <= READERS_OF_SLOW
        threads.now += SLOW_FOR_SECONDS
        for _ in range(READERS_OF_ONE):
            threads.ask("a", "quick")
            await settled()
        assert threads.working_for() == {"a": READERS_OF_ONE}

    played(scene)


def test_what_is_left_of_a_turn_is_answered_first_in_the_next() -> None:
    async def scene(threads: Threads) -> None:
        threads.ask("a", *many(5))
        await settled()
        await threads.finish("a", Spent(3, 0, 0))
        assert threads.answered == ["0", "1", "2"]
        await threads.finish("a", Spent(2, 0, 0))
        assert threads.answered == many(5)

    played(scene)


def test_nobody_works_for_callers_that_went_away() -> None:
    async def scene(threads: Threads) -> None:
        gone, stays, also = threads.ask("a", "gone", "stays", "also")
        gone.done.cancel()
        await settled()
        await threads.finish("a", Spent(2, 0, 0))
        assert threads.answered == ["stays", "also"]
        assert [each.done.done() for each in (stays, also)] == [True, True]

    played(scene)


def test_one_caller_may_not_have_every_place_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WAITING_OF_ONE", 10)

    async def scene(threads: Threads) -> None:
        threads.ask("a", *many(10))
        job = Job(
            Incoming("one more", {}, {"authorization": ["Bearer a"]}),
            asyncio.get_running_loop().create_future(),
        )
        assert not threads.readers.add(job)
        threads.ask("b", "first")

    played(scene)


def test_a_database_that_stalls_makes_no_caller_slow() -> None:
    """Whoever asked meanwhile waited as long; callers that came late in the stall less."""

    async def scene(threads: Threads) -> None:
        for caller, at in (("a", 0.0), ("b", 0.1), ("c", 1.9)):
            threads.now = at
            threads.ask(caller, *many(20))
            await settled()
        threads.now = 2.0
        for caller, clock in (("c", 0.1), ("b", 1.9), ("a", 2.0)):
            await threads.finish(caller, Spent(1, 0.001, clock))
            threads.now += 0.01
        await no_caller_is_slow(threads)

    played(scene)


def test_a_database_that_is_slow_for_all_makes_no_caller_slow() -> None:
    """If every caller were slow, all would share the threads of the slow."""

    async def scene(threads: Threads) -> None:
        for caller in "abc":
            threads.ask(caller, *many(20))
            await settled()
            threads.now += 0.3
        for _ in range(3):
            for caller in "abc":
                await threads.finish(caller, Spent(1, 0.001, 0.9))
                threads.now += 0.3
        await no_caller_is_slow(threads)

    played(scene)


def test_a_caller_that_keeps_the_database_while_others_are_answered_is_slow() -> None:
    async def scene(threads: Threads) -> None:
        threads.ask("long", *many(20))
        await settled()
        for _ in range(9):
            threads.ask("quick", "call")
            await settled()
            threads.now += 0.1
            await threads.finish("quick", Spent(1, 0.001, 0.1))
        await threads.finish("long", Spent(1, 0.001, 0.9))
        for _ in range(READERS_OF_ONE):
            threads.ask("long", "call")
            await settled()
        assert threads.working_for() == {"long": READERS_OF_SLOW}

    played(scene)


async def no_caller_is_slow(threads: Threads) -> None:
    """Check that one caller has as many threads as any caller may have."""
    for caller in "abc":
        while threads.working_for()[caller]:
            await threads.finish(caller, Spent(20, 0.001, 0.001))
        for _ in range(READERS_OF_ONE):
            threads.ask(caller, "call")
            await settled()
        assert threads.working_for()[caller] == READERS_OF_ONE
        await threads.finish(caller, QUICK)


def test_short_calls_before_a_long_one_do_not_hide_it() -> None:
    """They are answered in the same turn."""

    async def scene(threads: Threads) -> None:
        threads.ask("a", *many(60))
        await settled()
        await threads.finish("a", Spent(50, SLOW_SECONDS * 2, 1))
        threads.ask("a", "call")
        await settled()
        threads.ask("a", "call")
        await settled()
        threads.ask("a", "call")
        await settled()
        assert threads.working_for() == {"a": READERS_OF_SLOW}

    played(scene)


def test_a_token_is_one_caller_however_it_is_written() -> None:
    """The scheme has 64 spellings, and blanks around it count for nothing."""
    spellings = [
        "".join(letters) + " a" for letters in product(*zip("bearer", "BEARER", strict=True))
    ]

    async def scene(threads: Threads) -> None:
        for spelling in (*spellings, *(f"\t{each} " for each in spellings)):
            threads.ask_with([spelling], "list")
            await settled()
        assert threads.working_for() == {"a": READERS_OF_ONE}

    played(scene)


def test_all_calls_without_a_token_are_one_caller_s() -> None:
    async def scene(threads: Threads) -> None:
        for values in ([], ["Basic eDp5"], ["Bearer a", "Bearer b"], ["Bearer ü"], [""]):
            threads.ask_with(values, "list")
            await settled()
        assert threads.working_for() == {UNKNOWN: READERS_OF_ONE}

    played(scene)


def test_a_caller_that_never_comes_back_is_forgotten() -> None:
    async def scene(threads: Threads) -> None:
        for number in range(100):
            threads.ask(str(number), "long")
            await settled()
            await threads.finish(str(number), HEAVY)
            threads.now += SLOW_FOR_SECONDS / 10
        assert len(threads.readers._slow) <= 10

    played(scene)


def test_what_waits_behind_long_calls_is_refused_when_the_server_stops() -> None:
    """Each would take a while, and the time that is left is for others."""

    async def scene(threads: Threads) -> None:
        known = threads.ask("known", *many(9))
        later, quick = threads.ask("later", *many(9)), threads.ask("quick", *many(2))
        await settled()
        await threads.finish("known", HEAVY)
        threads.readers.end(ENDING)
        assert [job.done.done() for job in known] == [True] + [False] * 8
        await threads.finish("known", HEAVY)
        await threads.finish("later", HEAVY)
        await threads.finish("quick", Spent(2, 0, 0))
        for jobs, answered in ((known, 2), (later, 1), (quick, 2)):
            told = [job.done.result() is ENDING for job in jobs]
            assert told == [False] * answered + [True] * (len(jobs) - answered)

    played(scene)


@pytest.mark.parametrize("workers", [1, READERS])
def test_a_turn_that_ends_in_an_error_ends_no_other(workers: int) -> None:
    async def scene(threads: Threads) -> None:
        for number in range(workers):
            threads.ask(str(number), *many(1))
            await settled()
        threads.ask("later", "call")
        await settled()
        for _, turn in threads.at_work:
            turn.set_exception(MemoryError())
        threads.at_work = []
        await settled()
        threads.ask("last", "call")
        await settled()
        assert threads.working_for()["last"] == 1

    played(scene)


def test_a_caller_that_takes_no_answers_gets_no_more_of_them_made() -> None:
    """Another one does, and so does the caller once it has taken some, or went away."""

    async def scene(threads: Threads) -> None:
        delivery = ExitStack()
        threads.answer = Received("", {}, bytes(UNREAD))
        threads.ask("a", "long", delivery=delivery)
        await settled()
        await threads.finish("a", QUICK)
        threads.answer = Received("", {})
        threads.ask("a", "waits")
        await settled()
        assert threads.at_work == []
        delivery.close()
        await settled()
        assert threads.working_for() == {"a": 1}

    played(scene)


def test_a_call_that_cannot_be_read_waits_for_no_answer_to_be_taken() -> None:
    """Nor behind other reads: over HTTP/2 what takes answers may come behind what it is asked for.

    It is how the token of a call is judged, and until then no more of its connection is read.
    """

    async def scene(threads: Threads) -> None:
        threads.answer = Received("", {}, body=bytes(UNREAD))
        with ExitStack() as delivery:
            threads.ask("a", "first", delivery=delivery)
            await settled()
            await threads.finish("a", QUICK)
            threads.ask("a", "second")
            refusal = Refusal(Code.INTERNAL, "not read", "request.unread")
            call = Incoming("", refusal, {"authorization": ["Bearer a"]})
            job = Job(call, asyncio.get_running_loop().create_future())
            threads.readers.add(job)
            await settled()
            await threads.finish("a", QUICK)

            assert job.done.done()
            assert threads.answered == ["first", ""]
        await settled()
        await threads.finish("a", QUICK)

    played(scene)


A, B, C = b"a", b"b", b"c"
LONG = 10 * UNCOUNTED


def nothing() -> None:
    """End no delivery: the answers are taken."""


def test_a_caller_leaves_as_much_as_it_has() -> None:
    """However many callers take all they can, the next one still gets an answer."""
    unread = Unread(lambda: None, 12 * LONG)
    with ExitStack() as delivery:
        counts = []
        for caller in (A, B, C):
            count = 0
            while unread.has_room(caller):
                unread.count(caller, LONG, delivery, nothing)
                count += 1
            counts.append(count)

        assert counts == [6, 3, 2]


def test_answers_that_are_taken_make_room_again() -> None:
    """And what waits for that is told."""
    told: list[bool] = []
    unread = Unread(lambda: told.append(unread.has_room(A)), LONG)
    with ExitStack() as delivery:
        unread.count(A, LONG, delivery, nothing)
        assert not unread.has_room(A)
        assert not unread.has_room(B)

    assert told == [True]
    assert not unread._held._of  # nothing is kept of a caller


def test_short_answers_are_not_counted() -> None:
    """There are as many of them as connections and calls, at most."""
    unread = Unread(lambda: None, LONG)
    with ExitStack() as delivery:
        for _ in range(100):
            unread.count(A, UNCOUNTED, delivery, nothing)

        assert unread.has_room(A)


def test_answers_that_one_caller_does_not_take_are_dropped_for_others() -> None:
    """Several are made at once, so that one caller may go beyond the bound for all."""
    clock = [0.0]
    deliveries = {number: ExitStack() for number in range(4)}
    unread = Unread(lambda: None, 3 * LONG, lambda: clock[0])
    for number, caller in enumerate((A, A, A, B)):
        clock[0] = float(number == 2)  # the third one is young
        delivery = deliveries[number]
        unread.count(caller, LONG, delivery, delivery.close)
    assert not unread.has_room(C)
    assert unread.holds(A)

    clock[0] = PATIENCE_SECONDS
    unread.make_room()
    assert unread.has_room(C)
    unread.make_room()  # there is room: nothing more is dropped

    left = unread._answers
    assert {caller: len(answers) for caller, answers in left.items()} == {A: 1, B: 1}


def test_who_takes_no_answers_keeps_nobody_waiting_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A caller that has taken all of its own is answered a moment later."""
    monkeypatch.setattr(reading, "PATIENCE_SECONDS", 0.01)

    async def main() -> None:
        async def carry_out(batch: Sequence[Job]) -> Spent:
            for job in batch:
                job.done.set_result(Received("", {}, bytes(UNREAD)))
            return Spent(len(batch), 0, 0)

        readers = Readers(carry_out)
        loop = asyncio.get_running_loop()

        def asked(token: str) -> Job:
            delivery = ExitStack()
            headers = {"authorization": [f"Bearer {token}"]}
            call = Incoming("GetAction", {}, headers, delivery=delivery, drop=delivery.close)
            job = Job(call, loop.create_future())
            readers.add(job)
            return job

        async with asyncio.timeout(5):
            await asked("hostile").done
            await asked("honest").done

    asyncio.run(main())
