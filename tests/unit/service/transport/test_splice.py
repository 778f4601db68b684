"""The first bytes of a connection decide; after them nothing is lost, doubled or left open."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from reconciler.service.transport import splice as splice_module
from reconciler.service.transport.admission import Budget
from reconciler.service.transport.connections import Room
from reconciler.service.transport.frames import PREFACE
from reconciler.service.transport.grpc_intake import Inside, NewCalls, NewCallsOfOne, connected
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.splice import FirstBytes, Splice
from reconciler.service.transport.stream_messages import NO_ROOM
from tests import h2
from tests.wires import frame as message

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Http(asyncio.Protocol):
    """Answers what it is sent, with a word before it."""

    def __init__(self, opened: set[Http]) -> None:
        self._opened = opened

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._opened.add(self)

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"http:" + data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._opened.discard(self)


class EveryCall(NewCalls):
    """Lets every call begin: what is inside here tells nothing of calls that it has begun."""

    def _has_place(self, connection: NewCallsOfOne) -> bool:
        return True


@dataclass
class House:
    """A port, and what is behind it."""

    port: int
    budget: Budget
    connections: set[Any] = field(default_factory=set)
    turned_away: list[str] = field(default_factory=list)
    callers: list[asyncio.StreamWriter] = field(default_factory=list)
    over_http: set[Http] = field(default_factory=set)

    async def call(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.callers.append(writer)
        return reader, writer

    async def is_empty(self) -> bool:
        """Wait a little for every connection to be gone, and say whether they are."""
        return await comes(lambda: not self.connections)


async def comes(is_so: Callable[[], bool]) -> bool:
    """Wait a little for something to become true, and return whether it is."""
    for _ in range(2000):
        if is_so():
            return True
        await asyncio.sleep(0.001)
    return False


@asynccontextmanager
async def a_house(serve: Serve | None, limits: Limits | None = None) -> AsyncIterator[House]:
    """Open a port, with something behind it that takes HTTP/2, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "inside")
        inside = await asyncio.start_unix_server(serve, address) if serve else None
        limits = limits or Limits()
        house = House(0, Budget.of_grpc(limits))
        loop = asyncio.get_running_loop()
        room = Room(house.connections, limits, loop.time)
        tasks = asyncio.all_tasks()
        behind = Inside(address, house.budget, EveryCall(limits))
        outside = await loop.create_server(
            lambda: FirstBytes(
                lambda: Http(house.over_http), behind, room, house.turned_away.append
            ),
            "127.0.0.1",
            0,
        )
        house.port = outside.sockets[0].getsockname()[1]
        try:
            yield house
        finally:
            for caller in house.callers:
                caller.transport.abort()
            outside.close()
            await comes(
                lambda: not house.over_http | house.connections and asyncio.all_tasks() <= tasks
            )
            if inside is not None:
                inside.close()


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Run on each kind of event loop."""

    def run_it(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(asyncio.wait_for(main, 20))

    return run_it


Run = Callable[[Coroutine[Any, Any, None]], None]


def stop_reading(writer: asyncio.StreamWriter) -> None:
    """Take in nothing more; the transport of a connection is one for both directions."""
    transport: Any = writer.transport
    transport.pause_reading()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back what comes, to the end, and then say goodbye."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write(b"bye")
    writer.close()


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_http_2_goes_inside_however_its_bytes_are_cut(run: Run, size: int) -> None:
    """Every byte once, in order, the preface too."""
    sent = PREFACE + bytes(range(256))

    async def main() -> None:
        async with a_house(echo) as house:
            reader, writer = await house.call()
            for start in range(0, len(sent), size):
                writer.write(sent[start : start + size])
                await asyncio.sleep(0)
            writer.write_eof()

            assert await reader.read() == sent + b"bye"
            writer.close()
            assert await house.is_empty()

    run(main())


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\n\r\n", b"P", b"PR", b"PRI * HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSX"],
)
@pytest.mark.parametrize("size", [1, 100])
def test_anything_else_is_http(run: Run, sent: bytes, size: int) -> None:
    """As soon as one byte differs; until then nobody can know."""

    async def main() -> None:
        async with a_house(echo) as house:
            reader, writer = await house.call()
            for start in range(0, len(sent), size):
                writer.write(sent[start : start + size])
                await asyncio.sleep(0.001)
            if PREFACE.startswith(sent):
                writer.write(b"!")
            answer = await reader.readexactly(len(b"http:") + 1)

            assert answer.startswith(b"http:" + sent[:1])
            assert house.connections == set()
            writer.close()

    run(main())


def test_who_does_not_read_is_not_sent_more(run: Run) -> None:
    """What is held for a slow reader stays within what sockets hold."""
    written = 0

    async def pour(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        try:
            while True:
                writer.write(b"x" * 65536)
                await writer.drain()
                written += 65536
        except ConnectionError:
            writer.close()

    async def main() -> None:
        async with a_house(pour) as house:
            _, writer = await house.call()
            stop_reading(writer)
            writer.write(PREFACE)
            before = -1
            while not written or before != written:
                before = written
                await asyncio.sleep(0.02)

            assert 0 < written < 64 * 2**20
            writer.transport.abort()
            assert await house.is_empty()

    run(main())


def test_who_is_not_read_cannot_send_more(run: Run) -> None:
    """And the same the other way round."""
    go_on = asyncio.Event()

    async def wait(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stop_reading(writer)
        await go_on.wait()
        writer.close()

    async def main() -> None:
        async with a_house(wait) as house:
            _, writer = await house.call()
            writer.write(PREFACE)
            sent = 0
            with suppress(TimeoutError):
                while sent < 64 * 2**20:
                    writer.write(b"x" * 65536)
                    await asyncio.wait_for(writer.drain(), 0.05)
                    sent += 65536

            assert sent < 64 * 2**20
            writer.transport.abort()
            go_on.set()
            assert await house.is_empty()

    run(main())


async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say one word, and go."""
    writer.write(b"no")
    writer.close()


def test_when_the_inside_hangs_up_so_does_the_outside(run: Run) -> None:
    """After its last word."""

    async def main() -> None:
        async with a_house(hang_up) as house:
            reader, writer = await house.call()
            writer.write(PREFACE)

            assert await reader.read() == b"no"
            writer.close()
            assert await house.is_empty()

    run(main())


@pytest.mark.parametrize("serve", [echo, hang_up, None])
def test_when_the_outside_vanishes_nothing_is_left(run: Run, serve: Serve | None) -> None:
    """However far it had come."""

    async def main() -> None:
        async with a_house(serve) as house:
            for sent in (b"", PREFACE[:5], PREFACE, PREFACE + b"x" * 100_000):
                for wait in (0, 0.005):
                    _, writer = await house.call()
                    writer.write(sent)
                    await asyncio.sleep(wait)
                    writer.transport.abort()

            assert await house.is_empty()

    run(main())


def test_without_an_inside_the_outside_is_let_go(run: Run) -> None:
    """At once, and not when it tires of waiting."""

    async def main() -> None:
        async with a_house(None) as house:
            reader, writer = await house.call()
            writer.write(PREFACE)
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
            assert await house.is_empty()

    run(main())


@pytest.mark.parametrize("sent", [b"", PREFACE[:-1]])
def test_who_does_not_get_to_the_point_is_let_go(run: Run, sent: bytes) -> None:
    """A connection that says nothing is one that somebody else cannot have."""

    async def main() -> None:
        async with a_house(echo, Limits(head_seconds=0.05)) as house:
            reader, writer = await house.call()
            writer.write(sent)

            assert await reader.read() == b""
            writer.close()
            assert await house.is_empty()

    run(main())


def test_there_are_only_so_many_connections(run: Run) -> None:
    """Whoever is one too many is told so over HTTP, before it says a word."""

    async def main() -> None:
        async with a_house(echo, Limits(connections=2)) as house:
            callers = [await house.call() for _ in range(3)]
            for _, writer in callers:
                await asyncio.sleep(0.02)
                writer.write(PREFACE)

            assert await callers[2][0].readexactly(5) == b"http:"
            for reader, _ in callers[:2]:
                assert await reader.readexactly(len(PREFACE)) == PREFACE
            for _, writer in callers:
                writer.close()
            assert await house.is_empty()

    run(main())


def test_nobody_waits_at_the_end_for_who_has_asked_nothing(run: Run) -> None:
    """Undecided connections are closed; spliced ones are the gRPC server's to end."""

    async def main() -> None:
        async with a_house(echo) as house:
            reader, writer = await house.call()
            _, spliced = await house.call()
            spliced.write(PREFACE)
            await asyncio.sleep(0.05)
            assert len(house.connections) == 2
            for connection in list(house.connections):
                connection.shutdown()

            assert await reader.read() == b""
            assert await house.is_empty()
            writer.close()
            spliced.close()

    run(main())


LARGE = message(b"x" * 20_000)
ONE_AT_A_TIME = Limits(grpc_large_bytes=30_000, grpc_share_bytes=30_000)


def a_call(stream: int, content: bytes) -> bytes:
    """Return frames that begin a call with a message."""
    begun = h2.frame(h2.HEADERS, h2.END_HEADERS, stream, b"block")
    return begun + h2.frame(h2.DATA, 0, stream, content[:10_000])


async def all_of(reader: asyncio.StreamReader, expected: bytes) -> None:
    """Wait for bytes, and check them."""
    assert await reader.readexactly(len(expected)) == expected


def test_a_call_goes_on_while_a_large_message_beside_it_waits(run: Run) -> None:
    """It is the message that waits for room, and not its connection."""

    async def main() -> None:
        async with a_house(echo, ONE_AT_A_TIME) as house:
            reader, writer = await house.call()
            first = PREFACE + a_call(1, LARGE)
            writer.write(first + a_call(3, LARGE) + a_call(5, message(b"small")))
            block = h2.frame(h2.HEADERS, h2.END_HEADERS, 3, b"block")
            got = await reader.readexactly(len(first + block + a_call(5, message(b"small"))))

            assert got.count(LARGE[:100]) == 1
            assert got.count(message(b"small")) == 1
            assert house.budget.waiting == 1
            assert house.turned_away == []

    run(main())


def test_a_large_message_enters_once_another_is_given_up(run: Run) -> None:
    """Whole, though its beginning had to wait."""

    async def main() -> None:
        async with a_house(echo, ONE_AT_A_TIME) as house:
            for stream in (1, 3):
                reader, writer = await house.call()
                writer.write(PREFACE + a_call(stream, LARGE))
                await reader.readexactly(len(PREFACE + a_call(stream, b"")) - 9)
            await asyncio.sleep(0)
            assert house.budget.waiting == 1
            house.callers[0].transport.abort()
            await all_of(reader, h2.frame(h2.DATA, 0, 3, LARGE[:10_000]))
            assert house.budget.waiting == 0

    run(main())


def test_a_caller_whose_message_waits_is_heard_to_hang_up(run: Run) -> None:
    """At once, and its message waits no longer."""

    async def main() -> None:
        async with a_house(echo, ONE_AT_A_TIME) as house:
            for stream in (1, 3):
                reader, writer = await house.call()
                writer.write(PREFACE + a_call(stream, LARGE))
                await reader.readexactly(len(PREFACE + a_call(stream, b"")) - 9)
            assert house.budget.waiting == 1
            assert len(house.connections) == 2
            house.callers[1].transport.abort()

            assert await comes(lambda: len(house.connections) == 1)
            assert house.budget.waiting == 0

    run(main())


def test_a_message_that_finds_no_room_in_time_is_refused_alone(run: Run) -> None:
    """Its connection goes on."""

    async def main() -> None:
        limits = replace(ONE_AT_A_TIME, room_seconds=0.05)
        async with a_house(echo, limits) as house:
            reader, writer = await house.call()
            writer.write(PREFACE + a_call(1, LARGE) + a_call(3, LARGE))
            got = b""
            while message(NO_ROOM) not in got:
                got += await reader.read(65536)
            writer.write(h2.frame(h2.PING, 0, 0, b"are you?"))
            while b"are you?" not in got:
                got += await reader.read(65536)

            assert house.turned_away == []

    run(main())


@pytest.mark.parametrize(
    "limits",
    [replace(ONE_AT_A_TIME, grpc_waiting_of_one=1), replace(ONE_AT_A_TIME, grpc_waiting=1)],
)
def test_only_so_many_messages_wait(run: Run, limits: Limits) -> None:
    """One more is refused at once."""

    async def main() -> None:
        async with a_house(echo, limits) as house:
            reader, writer = await house.call()
            writer.write(PREFACE + a_call(1, LARGE))
            await all_of(reader, PREFACE + a_call(1, LARGE))
            writer.write(a_call(3, LARGE))
            assert await comes(lambda: house.budget.waiting == 1)
            writer.write(a_call(5, LARGE))
            got = b""
            while message(NO_ROOM) not in got:
                got += await reader.read(65536)

            assert house.budget.waiting == 1

    run(main())


@pytest.mark.untraced
def test_the_server_inside_knows_a_connection_by_name(run: Run) -> None:
    """So that it can tell whose call it has begun; there is no file of the name."""
    names: list[Path] = []

    async def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        names.append(Path(writer.get_extra_info("peername")))
        writer.close()

    async def main() -> None:
        async with a_house(look) as house:
            for _ in range(2):
                reader, writer = await house.call()
                writer.write(PREFACE)
                await reader.read()

        assert [name.name for name in names] == ["0000", "0001"]
        assert not any(name.exists() for name in names)

    run(main())


def test_nothing_is_passed_on_behind_the_end_of_a_caller(run: Run) -> None:
    """What waited of its messages is of no use any more."""

    async def answer_at_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.write(h2.frame(h2.RST_STREAM, 0, 3, bytes(4)))
        writer.close()

    async def main() -> None:
        failures: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: failures.append(what))
        async with a_house(answer_at_the_end, ONE_AT_A_TIME) as house:
            reader, writer = await house.call()
            writer.write(PREFACE + a_call(1, LARGE) + a_call(3, LARGE))
            writer.write_eof()

            assert await reader.read() == h2.frame(h2.RST_STREAM, 0, 3, bytes(4))
            writer.close()
            assert await house.is_empty()
        assert failures == []

    run(main())


def test_a_connection_that_is_lost_before_it_is_joined_leaves_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side is not connected yet, and ends as soon as it is."""

    async def main() -> None:
        may_join = asyncio.Event()

        async def late(address: str, name: str) -> socket.socket:
            await may_join.wait()
            return await connected(address, name)

        monkeypatch.setattr(splice_module, "connected", late)
        faults: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: faults.append(told))
        async with a_house(echo) as house:
            reader, writer = await house.call()
            writer.write(PREFACE)
            assert await comes(lambda: any(isinstance(one, Splice) for one in house.connections))
            (splice,) = house.connections
            splice.abort()
            with suppress(ConnectionError):
                assert await reader.read() == b""
            may_join.set()

            assert await house.is_empty()
        assert faults == []

    run(main())
