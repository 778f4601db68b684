"""Connections without a call make room, the one that is idle for longest first."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop

from reconciler.service.transport.connections import Acceptor, Room, bind, tls_context
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.observer import Metrics, Observer
from tests.acceptance.test_serve import make_certificate


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


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Run on each kind of event loop."""

    def run_it(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(asyncio.wait_for(main, 20))

    return run_it


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a certificate and its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


class Hello(asyncio.Protocol):
    """Says one word, and stays for as long as the caller does."""

    def __init__(self, room: Room) -> None:
        self._room = room

    def connection_made(self, transport: Any) -> None:
        self._room.connections.add(self)
        transport.write(b"hello")

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.connections.discard(self)


class HandsOver(Hello):
    """Hands its connection over to another protocol at the first bytes."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        super().connection_lost(None)
        other = Hello(self._room)
        self._transport.set_protocol(other)
        other.connection_made(self._transport)


@dataclass
class House:
    """A port, and who is in."""

    port: int
    room: Room
    metrics: Metrics
    silent: list[asyncio.StreamWriter] = field(default_factory=list)

    async def call(self) -> asyncio.StreamReader:
        """Connect, and say nothing."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.silent.append(writer)
        return reader

    async def counts(self, count: int) -> bool:
        """Wait a little for so many connections, and return whether they are there."""
        for _ in range(200):
            if self.room.count == count:
                return True
            await asyncio.sleep(0.005)
        return False


@asynccontextmanager
async def a_house(certificate: tuple[Path, Path], limits: Limits) -> AsyncIterator[House]:
    """Open a port that speaks TLS."""
    observer = Observer()
    room = Room(set(), limits, asyncio.get_running_loop().time)
    with bind("127.0.0.1", 0) as listening:
        acceptor = Acceptor(
            listening, lambda: Hello(room), tls_context(*certificate), room, observer
        )
        acceptor.start()
        house = House(listening.getsockname()[1], room, observer.metrics)
        yield house
        acceptor.close()
        for writer in house.silent:
            writer.close()
        await asyncio.sleep(0.01)


async def greeting(house: House, certificate: tuple[Path, Path]) -> bytes:
    """Connect as a decent client does, and return what is said."""
    context = ssl.create_default_context(cafile=str(certificate[0]))
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", house.port, ssl=context, server_hostname="localhost"
    )
    said = await reader.readexactly(5)
    writer.close()
    return said


def test_a_silent_handshake_is_counted_and_ended(run: Run, certificate: tuple[Path, Path]) -> None:
    """Nobody holds a place without a word for longer than a head may take."""

    async def main() -> None:
        async with a_house(certificate, Limits(head_seconds=0.3)) as house:
            silent = [await house.call() for _ in range(3)]
            assert await house.counts(3)
            assert await greeting(house, certificate) == b"hello"
            for reader in silent:
                assert await reader.read() == b""
            assert await house.counts(0)

    run(main())


def test_one_too_many_is_closed_and_counted(run: Run, certificate: tuple[Path, Path]) -> None:
    """There are no words for it before TLS is agreed on."""

    async def main() -> None:
        async with a_house(certificate, Limits(connections=2)) as house:
            for _ in range(2):
                await house.call()
            assert await house.counts(2)
            assert await (await house.call()).read() == b""
            assert house.metrics.connections_refused == 1
            assert house.room.count == 2

    run(main())


def test_a_silent_handshake_makes_room(run: Run, certificate: tuple[Path, Path]) -> None:
    """The oldest goes, and a decent client comes in."""

    async def main() -> None:
        async with a_house(certificate, Limits(connections=2, silent_seconds=0)) as house:
            oldest, _ = [await house.call() for _ in range(2)]
            assert await house.counts(2)
            assert await greeting(house, certificate) == b"hello"
            assert await oldest.read() == b""

    run(main())


async def left_in(protocol: Callable[[Room], asyncio.Protocol], sent: bytes, turns: int) -> int:
    """Stop to listen some turns after a caller came; return how many connections are counted."""
    room = Room(set(), Limits(), asyncio.get_running_loop().time)
    with bind("127.0.0.1", 0) as listening, socket.socket() as caller:
        acceptor = Acceptor(listening, lambda: protocol(room), None, room, Observer())
        caller.connect(listening.getsockname())
        caller.sendall(sent)
        acceptor.start()
        for _ in range(turns):
            await asyncio.sleep(0)
        acceptor.close()
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)
    return room.count


@pytest.mark.parametrize("turns", range(6))
def test_a_connection_that_is_made_while_listening_ends_is_forgotten(run: Run, turns: int) -> None:
    """A server that ends waits for every connection it knows of, and would wait for this one."""

    async def main() -> None:
        assert await left_in(Hello, b"", turns) == 0

    run(main())


@pytest.mark.parametrize("turns", range(6))
def test_a_protocol_that_was_handed_a_connection_meanwhile_is_told(run: Run, turns: int) -> None:
    """The first bytes can come in the same turn as the connection, and choose its protocol."""

    async def main() -> None:
        assert await left_in(HandsOver, b"GET", turns) == 0

    run(main())
