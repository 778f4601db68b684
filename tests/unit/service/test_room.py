"""Connections without a call make room, the one that is idle for longest first."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from reconciler.service.transport.limits import Limits
from reconciler.service.transport.room import Room


@dataclass(eq=False)
class Clock:
    """A clock that a test sets."""

    time: float = 0.0

    def now(self) -> float:
        return self.time


@dataclass(eq=False)
class Spliced:
    """A connection over HTTP/2."""

    last_seen: float
    is_busy: bool = False
    ended: list[float] = field(default_factory=list)

    def abort(self) -> None:
        self.ended.append(self.last_seen)


def test_the_connection_that_is_idle_for_longest_makes_room() -> None:
    """One that carries out a call does not, nor one that was idle for a moment only."""
    clock = Clock()
    connections = {"first", "second", "third"}
    room = Room(connections, Limits(connections=3, silent_seconds=1), clock.now)
    ended: list[str] = []
    for name in ("first", "second", "third"):
        room.set_idle(name, partial(ended.append, name))
    clock.time = 0.9
    room.make_room()
    assert ended == []

    room.set_busy("first")
    room.set_idle("first", partial(ended.append, "first"))  # it was answered
    room.set_busy("second")
    clock.time = 1.5
    room.make_room()
    room.make_room()
    assert ended == ["third"]

    clock.time = 2.0
    room.make_room()
    assert ended == ["third", "first"]


def test_a_connection_over_http_2_that_is_idle_makes_room() -> None:
    """Not one that waits for its answer: then the new one is refused."""
    clock = Clock(time=10.0)
    room = Room(set(), Limits(http2_connections=2, silent_seconds=1), clock.now)
    busy, idle = Spliced(last_seen=1.0, is_busy=True), Spliced(last_seen=5.0)
    new = Spliced(last_seen=10.0)
    assert room.splice(busy)
    assert room.splice(idle)
    assert room.splice(new)
    assert (busy.ended, idle.ended) == ([], [5.0])
    assert not room.splice(Spliced(last_seen=10.0))
