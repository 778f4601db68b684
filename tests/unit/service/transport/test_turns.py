"""Turns of connections: addresses one after the other, and between rounds all other work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.service.transport import turns
from reconciler.service.transport.turns import OF_KNOWN, OF_STRANGER, Turns


@dataclass(eq=False)
class Reader:
    """A connection with so many turns to read; each is noted."""

    name: str
    address: str
    left: int
    log: list[str] = field(repr=False)
    is_known: bool = True
    turns: int = 0

    def read_frames(self) -> bool:
        self.left -= 1
        self.turns += 1
        self.log.append(self.name)
        return self.left > 0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return a clock that stands still: a round is over when a test says so."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(turns, "time", clock)
    return clock


def order(*readers: tuple[str, str, int]) -> list[str]:
    """Return the order in which readers (name, address, turns) are read."""
    log: list[str] = []

    async def main() -> None:
        waiting = Turns(asyncio.get_running_loop())
        for name, address, left in readers:
            waiting.add(Reader(name, address, left, log))
        assert log == [], "nothing is read before the loop has gone on"
        await asyncio.sleep(0.01)

    asyncio.run(main())
    return log


@pytest.mark.parametrize(
    ("readers", "expected"),
    [
        pytest.param([("a", "1", 3)], "aaa", id="alone"),
        pytest.param([("a", "1", 2), ("b", "2", 2)], "abab", id="two addresses"),
        pytest.param([("a", "1", 2), ("b", "1", 2)], "abab", id="two of one address"),
        pytest.param(
            [("a", "1", 2), ("b", "1", 2), ("c", "1", 2), ("d", "2", 3)],
            "adbdcdabc",
            id="many of one address have the turns of one",
        ),
    ],
)
def test_addresses_take_turns_and_so_do_the_connections_of_one(
    readers: list[tuple[str, str, int]], expected: str
) -> None:
    assert "".join(order(*readers)) == expected


def test_after_a_round_the_loop_does_its_other_work(clock: SimpleNamespace) -> None:
    """However much there is to read."""
    log: list[str] = []

    class Slow(Reader):
        def read_frames(self) -> bool:
            clock.now += 2 * OF_KNOWN.seconds
            return super().read_frames()

    async def main() -> None:
        waiting = Turns(asyncio.get_running_loop())
        waiting.add(Slow("a", "1", 3, log))
        for _ in range(4):
            await asyncio.sleep(0)
            log.append("-")

    asyncio.run(main())

    assert "".join(log) == "a-a-a--"


def test_a_connection_that_is_gone_has_no_turn() -> None:
    """Also one that was never there."""
    log: list[str] = []

    async def main() -> None:
        waiting = Turns(asyncio.get_running_loop())
        gone, stays = Reader("a", "1", 1, log), Reader("b", "1", 1, log)
        waiting.remove(gone)
        waiting.add(gone)
        waiting.add(stays)
        waiting.remove(gone)
        await asyncio.sleep(0.01)

    asyncio.run(main())

    assert log == ["b"]


def test_a_connection_that_is_added_twice_waits_once() -> None:
    log: list[str] = []

    async def main() -> None:
        waiting = Turns(asyncio.get_running_loop())
        reader = Reader("a", "1", 1, log)
        waiting.add(reader)
        waiting.add(reader)
        await asyncio.sleep(0.01)
        waiting.add(reader)
        await asyncio.sleep(0.01)

    asyncio.run(main())

    assert log == ["a", "a"]


def test_a_stranger_has_the_shorter_turn() -> None:
    assert OF_STRANGER.frames < OF_KNOWN.frames
    assert OF_STRANGER.seconds < OF_KNOWN.seconds


def rounds(*readers: Reader, count: int) -> list[str]:
    """Return who has a turn in each of the first rounds."""
    log = readers[0].log

    async def main() -> None:
        waiting = Turns(asyncio.get_running_loop())
        for reader in readers:
            waiting.add(reader)
        for _ in range(count):
            await asyncio.sleep(0)
            log.append("|")

    asyncio.run(main())
    return "".join(log).split("|")[:count]


def test_new_strangers_have_few_turns_in_a_round_however_many_they_are() -> None:
    """Callers with a token come first, and have more."""
    log: list[str] = []
    strangers = [Reader("s", str(number), 2, log, is_known=False) for number in range(20)]
    known = [Reader("k", "0", turns.KNOWN_A_ROUND, log) for _ in range(2)]

    first, second, third = rounds(*strangers, *known, count=3)

    assert first == second == "k" * turns.KNOWN_A_ROUND + "s" * turns.NEW_A_ROUND
    assert third == "s" * turns.NEW_A_ROUND


def test_strangers_that_had_their_first_turns_have_one_together_in_each_pace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes them time to have many; new ones do not wait for them."""
    paces: list[float] = []
    log: list[str] = []
    old = [
        Reader(name, name, 3, log, is_known=False, turns=turns.FIRST_TURNS + 1) for name in "abc"
    ]
    new = Reader("n", "d", 2, log, is_known=False)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        waiting = Turns(loop)

        def call_later(seconds: float, call: Callable[[], None]) -> None:
            paces.append(seconds)
            loop.call_soon(call)

        monkeypatch.setattr(
            waiting, "_loop", SimpleNamespace(call_soon=loop.call_soon, call_later=call_later)
        )
        for reader in [*old, new]:
            waiting.add(reader)
        await asyncio.sleep(0.01)

    asyncio.run(main())

    assert "".join(each for each in log if each != "n") == "abc" * 3
    assert log.count("n") == 2
    assert paces == [0, *[turns.PACE_SECONDS] * 8]


@pytest.mark.parametrize(
    ("is_known", "had"), [(True, 0), (False, 0), (False, turns.FIRST_TURNS + 1)]
)
def test_a_connection_that_fails_keeps_no_other_from_its_turn(*, is_known: bool, had: int) -> None:
    """The loop logs the defect; all others go on, and those that come later."""

    class Failing(Reader):
        def read_frames(self) -> bool:
            super().read_frames()
            raise ZeroDivisionError

    log: list[str] = []
    failures: list[Any] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
        waiting = Turns(loop)
        waiting.add(Failing("a", "1", 1, log, is_known, had))
        waiting.add(Reader("b", "2", 2, log, is_known, had))
        await asyncio.sleep(0.05)
        waiting.add(Reader("c", "3", 1, log, is_known, had))
        await asyncio.sleep(0.05)

    asyncio.run(main())

    assert "".join(log) == "abbc"
    assert [type(each) for each in failures] == [ZeroDivisionError]
