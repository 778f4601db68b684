"""Calls a server over many connections at once: a process of its own, ``python -m bench.load``.

It reads a burst a line from stdin, as JSON, and writes what came of it, a line each. A connection
sends its next call when the one before is answered. Calls go out as bytes that were made
beforehand and answers are only looked at as far as it takes to see that they are good, so that
the server is measured and not this.
"""

from __future__ import annotations

import json
import select
import socket
import statistics
import struct
import sys
import time
from base64 import b64decode
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple, Protocol

from tests import http2

NUMBER = b"9999999999999999"  # stands in a call where each one has another number
ID = b"8888888888888888888"  # stands where an id goes, which has as many digits
PATIENCE = 60
WINDOW = 1 << 30
_END_OF_HEAD = b"\r\n\r\n"
_WINDOW_UPDATE = 0x8
_INITIAL_WINDOW_SIZE = 0x4


class Burst(NamedTuple):
    """So many connections that make one kind of call for some seconds.

    Attributes:
        opening: The call that each connection begins with, which is not counted. It has a token:
            over gRPC, connections without one take turns for a few places.
        calls: Made in turns, each in base64: of HTTP/1.1 the whole request, of HTTP/2 the header
            block and the data.
        first: The number of the first call.
    """

    port: int
    is_http2: bool
    opening: list[str]
    calls: list[list[str]]
    ids: list[str]
    first: int
    connections: int
    seconds: float


class Line(Protocol):
    """A connection with at most one call on its way."""

    socket: socket.socket
    since: float

    def send(self, call: list[bytes]) -> None:
        """Send a call."""
        ...

    def is_answered(self) -> bool:
        """Take in what came, and say whether the answer is whole."""
        ...


class Http1:
    """HTTP/1.1: JSON and gRPC-web."""

    def __init__(self, port: int) -> None:
        self.socket = _connected(port)
        self.since = 0.0
        self._held = b""

    def send(self, call: list[bytes]) -> None:
        """Send a call."""
        self._held = b""
        self.since = time.perf_counter()
        self.socket.sendall(call[0])

    def is_answered(self) -> bool:
        """Take in what came, and say whether the answer is whole."""
        self._held += _received(self.socket)
        head = self._held.find(_END_OF_HEAD)
        if head < 0:
            return False
        start = self._held.find(b"content-length: ") + len(b"content-length: ")
        length = int(self._held[start : self._held.index(b"\r\n", start)])
        if len(self._held) < head + len(_END_OF_HEAD) + length:
            return False
        is_web = b"application/grpc-web" in self._held[:head]
        if not self._held.startswith(b"HTTP/1.1 200") or (
            is_web and b"grpc-status:0" not in self._held
        ):
            raise SystemExit(f"refused: {self._held!r}")
        return True


class Http2:
    """HTTP/2: gRPC. A refusal has no message, so a message is a good answer."""

    def __init__(self, port: int) -> None:
        self.socket = _connected(port)
        settings = struct.pack(">HI", _INITIAL_WINDOW_SIZE, WINDOW)
        self.socket.sendall(
            http2.PREFACE
            + http2.frame(http2.SETTINGS, content=settings)
            + http2.frame(_WINDOW_UPDATE, content=struct.pack(">I", WINDOW))
        )
        self.since = 0.0
        self._held = b""
        self._streams = count(1, 2)
        self._has_message = False

    def send(self, call: list[bytes]) -> None:
        """Send a call."""
        head, data = call
        stream = next(self._streams)
        self._has_message = False
        self.since = time.perf_counter()
        self.socket.sendall(
            http2.frame(http2.HEADERS, http2.END_HEADERS, stream, head)
            + http2.frame(http2.DATA, http2.END_STREAM, stream, data)
        )

    def is_answered(self) -> bool:
        """Take in what came, and say whether the answer is whole."""
        self._held += _received(self.socket)
        is_whole = False
        for kind, flags, content in self._frames():
            if kind == http2.DATA:
                self._has_message |= bool(content)
            elif kind in {http2.SETTINGS, http2.PING} and not flags:
                said = content if kind == http2.PING else b""
                self.socket.sendall(http2.frame(kind, 1, content=said))
            elif kind in {http2.RST_STREAM, http2.GOAWAY}:
                raise SystemExit(f"refused: frame {kind} {content!r}")
            is_whole |= kind == http2.HEADERS and bool(flags & http2.END_STREAM)
        if is_whole and not self._has_message:
            raise SystemExit("refused: an answer without a message")
        return is_whole

    def _frames(self) -> Iterator[tuple[int, int, bytes]]:
        while len(self._held) >= 9 + (length := int.from_bytes(self._held[:3])):
            kind, flags = self._held[3], self._held[4]
            content, self._held = self._held[9 : 9 + length], self._held[9 + length :]
            yield kind, flags, content


def _connected(port: int) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _received(line: socket.socket) -> bytes:
    data = line.recv(1 << 20)
    if not data:
        raise SystemExit("the server hung up")
    return data


def calls(burst: Burst, made: list[list[str]]) -> Iterator[list[bytes]]:
    """Yield calls in turns, each with another number and another id."""
    encoded = [[b64decode(part) for part in call] for call in made]
    ids = [name.encode() for name in burst.ids] or [ID]
    for number in count(burst.first):
        name, parts = ids[number % len(ids)], encoded[number % len(encoded)]
        yield [part.replace(NUMBER, b"%016d" % number).replace(ID, name) for part in parts]


def run(burst: Burst) -> dict[str, float]:
    """Make the calls, and say how many a second were answered, and how soon."""
    asked = calls(burst, burst.calls)
    lines = _open_lines(burst, calls(burst, [burst.opening]))
    began, busy = time.perf_counter(), time.process_time()
    took = list(_answered(lines, asked, began + burst.seconds))
    seconds = time.perf_counter() - began
    for line in lines.values():
        line.socket.close()
    return {"busy": (time.process_time() - busy) / seconds, **_figures(took, seconds)}


def _open_lines(burst: Burst, asked: Iterator[list[bytes]]) -> dict[int, Line]:
    """Open the connections and have a call answered on each, which is not counted."""
    lines: dict[int, Line] = {}
    for _ in range(burst.connections):
        line = Http2(burst.port) if burst.is_http2 else Http1(burst.port)
        lines[line.socket.fileno()] = line
        line.send(next(asked))
        while not line.is_answered():
            pass
    return lines


def _answered(lines: dict[int, Line], asked: Iterator[list[bytes]], end: float) -> Iterator[float]:
    """Yield how long each answer took. Calls begin until the end, and all are waited for."""
    poll = select.epoll()
    for number, line in lines.items():
        poll.register(number, select.EPOLLIN)
        line.send(next(asked))
    waiting = len(lines)
    while waiting:
        for number, _ in poll.poll(PATIENCE):
            line = lines[number]
            if not line.is_answered():
                continue
            now = time.perf_counter()
            yield now - line.since
            if now < end:
                line.send(next(asked))
            else:
                waiting -= 1
    poll.close()


def _figures(took: list[float], seconds: float) -> dict[str, float]:
    took.sort()
    late = took[min(len(took) - 1, len(took) * 99 // 100)]
    return {"per_second": len(took) / seconds, "p50": statistics.median(took), "p99": late}


if __name__ == "__main__":
    for text in sys.stdin:
        sys.stdout.write(json.dumps(run(Burst(**json.loads(text)))) + "\n")
        sys.stdout.flush()
