"""A few frames of HTTP/2 by hand, for saying what no decent client says."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0x0, 0x1, 0x2, 0x3, 0x4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0x5, 0x6, 0x7, 0x8, 0x9
ACK, END_STREAM, END_HEADERS = 0x1, 0x1, 0x4
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_HEADER_LIST_SIZE = 0x3, 0x4, 0x6
CANCEL = (8).to_bytes(4)  # what a reset says that takes a call back


class Frame(NamedTuple):
    """One frame as it came."""

    kind: int
    flags: int
    stream: int
    content: bytes


def frame(kind: int, flags: int = 0, stream: int = 0, content: bytes = b"") -> bytes:
    """Return a frame as it goes."""
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


HELLO = PREFACE + frame(SETTINGS)


def headers(path: str, more: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return the block of a gRPC call, every header spelt out."""
    return block([*grpc_fields(path), *more])


def grpc_fields(path: str) -> list[tuple[str, str]]:
    """Return the headers that every gRPC call has."""
    return [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]


def block(fields: Sequence[tuple[str, str]], *, kept: bool = False) -> bytes:
    """Return headers, spelt out; with ``kept`` each becomes the newest of the dynamic table."""
    first = b"\x40" if kept else b"\0"
    return b"".join(first + text(name) + text(value) for name, value in fields)


def text(said: str) -> bytes:
    """Return a text as header blocks have it, without Huffman's code."""
    data = said.encode()
    return integer(len(data), 7) + data


def integer(value: int, bits: int, pattern: int = 0) -> bytes:
    """Return a number whose first byte has so many bits of it, below a pattern."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([pattern | value])
    coded, value = [pattern | most], value - most
    while value > 127:
        coded.append(value & 127 | 128)
        value >>= 7
    return bytes([*coded, value])


class Connection:
    """A connection over a socket.

    Attributes:
        is_over: Whether the other side has hung up, as far as was read.
    """

    def __init__(self, made: socket.socket) -> None:
        self.is_over = False
        self._socket = made
        self._held = b""

    def send(self, data: bytes) -> bool:
        """Send bytes; say whether the other side still took them."""
        try:
            self._socket.sendall(data)
        except OSError:
            return False
        return True

    def frames(self) -> Iterator[Frame]:
        """Yield frames until the other side hangs up, or falls silent."""
        while True:
            while len(self._held) < 9 or len(self._held) < 9 + int.from_bytes(self._held[:3]):
                try:
                    data = self._socket.recv(65536)
                except TimeoutError:
                    return
                except OSError:
                    data = b""
                if not data:
                    self.is_over = True
                    return
                self._held += data
            yield self._next()

    def _next(self) -> Frame:
        end = 9 + int.from_bytes(self._held[:3])
        kind, flags, stream = struct.unpack_from(">BBI", self._held, 3)
        content, self._held = self._held[9:end], self._held[end:]
        return Frame(kind, flags, stream, content)

    def pour(self, streams: Sequence[int], size: int) -> int:
        """Send so many bytes on each stream, as far as the other side lets; return how many went.

        The other side has had its chance once it let nothing more in for half a second.
        """
        windows = {0: 65535, **dict.fromkeys(streams, self.settings()[INITIAL_WINDOW_SIZE])}
        left = dict.fromkeys(streams, size)
        self._socket.settimeout(0.02)
        idle = time.monotonic()
        while time.monotonic() < idle + 0.5:
            for stream in streams:
                count = max(min(left[stream], windows[0], windows[stream]), 0)
                if count and self.send(frame(DATA, 0, stream, bytes(count))):
                    idle = time.monotonic()
                    left[stream] -= count
                    windows[0] -= count
                    windows[stream] -= count
            for found in self.frames():
                if found.kind == WINDOW_UPDATE and found.stream in windows:
                    windows[found.stream] += int.from_bytes(found.content)
        return size * len(streams) - sum(left.values())

    def settings(self) -> dict[int, int]:
        """Return what the other side says of itself."""
        for found in self.frames():
            if found.kind == SETTINGS and not found.flags:
                return dict(struct.iter_unpack(">HI", found.content))
        raise AssertionError("no settings came")

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


@contextmanager
def connected(port: int, patience: float = 10) -> Iterator[Connection]:
    """Connect, say hello, and hang up at the end; wait so many seconds for the other side."""
    connection = Connection(socket.create_connection(("127.0.0.1", port), timeout=patience))
    connection.send(HELLO)
    try:
        yield connection
    finally:
        connection.close()
