"""Connections without a call make room; the first bytes of one tell its protocol."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvloop

from reconciler.service.transport.connections import (
    PREFACE,
    Acceptor,
    Certificate,
    FirstBytes,
    ListenError,
    Place,
    Room,
    bind,
    tls_context,
)
from reconciler.service.transport.limits import LINGERING, Limits
from reconciler.service.transport.observer import Metrics, Observer
from tests.acceptance.test_serve import make_certificate


@dataclass(eq=False)
class Clock:
    """A clock that a test sets."""

    time: float = 0.0

    def now(self) -> float:
        return self.time


class Guests:
    """Connections of a room by their names; those that had to end are noted."""

    def __init__(self, limits: Limits) -> None:
        self.clock = Clock()
        self.room = Room(limits, self.clock.now)
        self.ended: list[str] = []
        self.places: dict[str, Place] = {}

    def enter(self, name: str, address: str = "1", *, is_known: bool = False) -> Place:
        """Ask for a place for a connection that is idle from now on."""
        place = self.room.enter(address, partial(self.ended.append, name))
        place.is_known = is_known
        self.places[name] = place
        return place


FULL = Limits(connections=3, silent_seconds=1)
Entered = tuple[str, str, bool]  # name, address, whether it has a valid token


@pytest.mark.parametrize(
    ("entered", "ended"),
    [
        pytest.param([("a", "1", False), ("b", "1", False), ("c", "1", False)], "abc", id="age"),
        pytest.param([("a", "1", True), ("b", "1", False), ("c", "1", False)], "bca", id="tokens"),
        pytest.param([("a", "1", False), ("b", "2", False), ("c", "2", False)], "bac", id="most"),
    ],
)
def test_an_idle_connection_makes_room(entered: list[Entered], ended: str) -> None:
    """A stranger first, of the address with most of them, and then the one idle for longest."""
    guests = Guests(FULL)
    for name, address, is_known in entered:
        guests.enter(name, address, is_known=is_known)
    guests.clock.time = FULL.silent_seconds
    for number in range(3):
        guests.enter(f"new {number}").set_busy()

    assert "".join(guests.ended) == ended
    assert guests.room.count == 3
    assert guests.enter("one too many").is_refused


@pytest.mark.parametrize(
    ("is_known", "idle_seconds", "is_refused"),
    [
        pytest.param(False, 0.0, False, id="a stranger at once"),
        pytest.param(True, 0.9, True, id="a token, idle for a moment"),
        pytest.param(True, 1.0, False, id="a token, idle for longer"),
    ],
)
def test_a_caller_with_a_token_keeps_its_connection_for_a_moment(
    *, is_known: bool, idle_seconds: float, is_refused: bool
) -> None:
    """It may be about to ask again."""
    guests = Guests(FULL)
    for name in "abc":
        guests.enter(name, is_known=is_known)
    guests.clock.time = idle_seconds

    assert guests.enter("new").is_refused == is_refused
    assert guests.ended == ([] if is_refused else ["a"])


def test_a_connection_that_carries_out_a_call_keeps_its_place() -> None:
    """After its answer it is the last to make room."""
    guests = Guests(FULL)
    for name in "abc":
        guests.enter(name)
        guests.places[name].set_busy()
    assert guests.enter("refused").is_refused
    guests.places["b"].set_idle()
    guests.places["a"].set_idle()
    assert not guests.enter("d").is_refused

    assert guests.ended == ["b"]
    guests.places["b"].set_idle()  # it has not heard yet that it lost its place
    guests.places["refused"].set_idle()
    guests.enter("e")
    assert guests.ended == ["b", "a"]
    assert guests.room.count == 3


def test_a_connection_that_is_refused_or_lingers_holds_no_place() -> None:
    """It may stay until its caller has read why; of too many, the oldest ends."""
    guests = Guests(FULL)
    for number in range(2 * LINGERING):
        name = str(number)
        guests.enter(name).set_busy()
        assert not guests.places[name].is_refused
        guests.places[name].linger()
        assert guests.room.count == 0
    assert guests.ended == [str(number) for number in range(LINGERING)]
    assert not guests.room.can_refuse

    guests.places[str(2 * LINGERING - 1)].leave()
    assert guests.room.can_refuse


@pytest.mark.parametrize("address", ["1", "2"])
def test_a_place_that_is_left_is_free(address: str) -> None:
    guests = Guests(FULL)
    for name in "abc":
        guests.enter(name).set_busy()
    guests.places["b"].leave()
    guests.places["b"].leave()

    assert guests.room.count == 2
    assert not guests.enter("new", address).is_refused
    assert guests.ended == []


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

    def __init__(self, place: Place) -> None:
        self._place = place

    def connection_made(self, transport: Any) -> None:
        self._place.end = transport.abort
        transport.write(b"hello")

    def connection_lost(self, exc: Exception | None) -> None:
        self._place.leave()


def says_hello(place: Place) -> FirstBytes:
    """Return what reads a connection until its first bytes came; then it says hello."""
    make = partial(Hello, place)
    return FirstBytes(make, make, place, set())


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
    room = Room(limits, asyncio.get_running_loop().time)
    with bind("127.0.0.1", 0) as listening:
        acceptor = Acceptor(listening, says_hello, Certificate(*certificate), room, observer)
        acceptor.start()
        house = House(listening.getsockname()[1], room, observer.metrics)
        yield house
        acceptor.close()
        for writer in house.silent:
            writer.close()
        await asyncio.sleep(0.01)


def test_an_encrypted_key_is_refused_and_no_password_asked_for(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    """A server that reads its key again must not wait at a terminal."""
    chain, key = certificate
    encrypted = tmp_path / "encrypted.pem"
    words = ["openssl", "pkey", "-in", str(key), "-aes256", "-passout", "pass:word"]
    subprocess.run([*words, "-out", str(encrypted)], check=True)

    with pytest.raises(ListenError, match="cannot use the certificate"):
        Certificate(chain, encrypted)


def test_a_key_may_come_from_a_pipe_that_the_shell_opened(certificate: tuple[Path, Path]) -> None:
    """As from ``--tls-key <(...)``; one that has a name is not waited for."""
    chain, key = certificate
    reader, writer = os.pipe()
    os.write(writer, key.read_bytes())
    os.close(writer)

    assert tls_context(chain, Path(f"/dev/fd/{reader}")).get_ca_certs() == []
    os.close(reader)


async def greeting(house: House, certificate: tuple[Path, Path]) -> bytes:
    """Connect as a decent client does, and return what is said."""
    context = ssl.create_default_context(cafile=str(certificate[0]))
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", house.port, ssl=context, server_hostname="localhost"
    )
    writer.write(b"GET")
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
                house.room.enter("192.0.2.7", print).set_busy()
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


async def left_in(sent: bytes, turns: int) -> int:
    """Stop to listen some turns after a caller came; return how many connections are counted."""
    room = Room(Limits(), asyncio.get_running_loop().time)
    with bind("127.0.0.1", 0) as listening, socket.socket() as caller:
        acceptor = Acceptor(listening, says_hello, None, room, Observer())
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
@pytest.mark.parametrize("sent", [b"", b"GET"])
def test_a_connection_that_is_made_while_listening_ends_is_forgotten(
    run: Run, sent: bytes, turns: int
) -> None:
    """A server that ends waits for every connection it knows of, and would wait for this one.

    The first bytes can come in the same turn as the connection, and choose its protocol.
    """

    async def main() -> None:
        assert await left_in(sent, turns) == 0

    run(main())


# The first bytes.


class Line(asyncio.Transport):
    """A connection in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[str] = []
        self.protocol: Any = None

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def close(self) -> None:
        self.ends.append("closed")

    def abort(self) -> None:
        self.ends.append("aborted")


class Named(asyncio.Protocol):
    """A protocol that notes what comes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.came = b""
        self.is_made = False

    def connection_made(self, transport: Any) -> None:
        self.is_made = True

    def data_received(self, data: bytes) -> None:
        assert self.is_made
        self.came += data


def first_bytes(place: Place) -> tuple[FirstBytes, Line, set[Any]]:
    """Return what reads the first bytes of a connection that is just made."""
    line, connections = Line(), set[Any]()
    first = FirstBytes(lambda: Named("1.1"), lambda: Named("2"), place, connections)
    first.connection_made(line)
    return first, line, connections


@pytest.mark.parametrize(
    ("pieces", "name", "came"),
    [
        pytest.param([b"G"], "1.1", b"G", id="a byte that no preface begins with"),
        pytest.param([b"P", b"O"], "1.1", b"PO", id="POST, which begins as a preface does"),
        pytest.param([PREFACE[:-1], b"x"], "1.1", PREFACE[:-1] + b"x", id="nearly a preface"),
        pytest.param([PREFACE + b"more"], "2", b"more", id="a preface and more"),
        pytest.param([bytes([each]) for each in PREFACE], "2", b"", id="byte by byte"),
        pytest.param([PREFACE[:9]], None, b"", id="half a preface"),
    ],
)
def test_the_first_bytes_tell_the_protocol(pieces: list[bytes], name: str, came: bytes) -> None:
    """It gets them all, but for the preface, by which it was chosen."""

    async def main() -> None:
        guests = Guests(FULL)
        first, line, connections = first_bytes(guests.enter("a"))
        for piece in pieces:
            first.data_received(piece)
        assert (first in connections) == (name is None)
        if name is not None:
            assert (line.protocol.name, line.protocol.came) == (name, came)
        assert line.ends == []

    asyncio.run(main())


def test_a_connection_that_says_nothing_is_closed() -> None:
    async def main() -> None:
        guests = Guests(Limits(head_seconds=0.01))
        first, line, connections = first_bytes(guests.enter("a"))
        await asyncio.sleep(0.05)
        assert line.ends == ["closed"]
        first.connection_lost(None)
        assert (guests.room.count, connections) == (0, set())

    asyncio.run(main())


def test_a_connection_that_says_nothing_makes_room_and_ends_with_the_server() -> None:
    async def main() -> None:
        guests = Guests(Limits(connections=1))
        first, line, connections = first_bytes(guests.enter("a"))
        first.shutdown()
        guests.enter("b")
        assert line.ends == ["closed", "aborted"]
        first.connection_lost(None)
        assert connections == set()

    asyncio.run(main())


def test_a_connection_without_a_place_is_told_so_at_once() -> None:
    """By HTTP/1.1, whose words most clients understand; nothing is waited for."""

    async def main() -> None:
        guests = Guests(Limits(connections=1))
        guests.enter("a").set_busy()
        _, line, connections = first_bytes(guests.enter("b"))
        assert line.protocol.name == "1.1"
        assert line.protocol.is_made
        assert connections == set()

    asyncio.run(main())
