"""Connections are counted from accept, also while TLS is agreed on, which has an end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvloop

from reconciler.service.transport.acceptor import Acceptor
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.listener import bind, tls_context
from reconciler.service.transport.metrics import Metrics
from reconciler.service.transport.observer import Observer
from reconciler.service.transport.room import Room
from tests.acceptance.test_serve import make_certificate

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
    metrics = Metrics()
    room = Room(set(), limits, asyncio.get_running_loop().time)
    with bind("127.0.0.1", 0) as listening:
        acceptor = Acceptor(
            listening, lambda: Hello(room), tls_context(*certificate), room, Observer(metrics)
        )
        acceptor.start()
        house = House(listening.getsockname()[1], room, metrics)
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
