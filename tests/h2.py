"""A few frames of HTTP/2 by hand, for saying what no decent client says."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0x0, 0x1, 0x3, 0x4, 0x6, 0x7
WINDOW_UPDATE, CONTINUATION = 0x8, 0x9
END_STREAM, END_HEADERS = 0x1, 0x4
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_HEADER_LIST_SIZE = 0x3, 0x4, 0x6


class Frame(NamedTuple):
    """One frame as it came."""

    kind: int
    flags: int
    stream: int
    content: bytes


def frame(kind: int, flags: int = 0, stream: int = 0, content: bytes = b"") -> bytes:
    """Return a frame as it goes."""
    return struct.pack(">I", len(content))[1:] + struct.pack(">BBI", kind, flags, stream) + content


def headers(path: str, more: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return the block of a gRPC call, every header spelt out."""
    named = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        *more,
    ]
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in named)


def _text(text: str) -> bytes:
    data = text.encode()
    assert len(data) < 127
    return bytes([len(data)]) + data


class Connection:
    """A connection that has said hello."""

    def __init__(self, port: int, patience: float) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
        self._socket.sendall(PREFACE + frame(SETTINGS))

    def send(self, data: bytes) -> bool:
        """Send bytes; say whether the other side still took them."""
        try:
            self._socket.sendall(data)
        except OSError:
            return False
        return True

    def frames(self) -> Iterator[Frame]:
        """Yield frames until the other side hangs up, or falls silent."""
        held = b""
        while True:
            while len(held) < 9 or len(held) < 9 + int.from_bytes(held[:3]):
                try:
                    data = self._socket.recv(65536)
                except OSError:
                    return
                if not data:
                    return
                held += data
            length = int.from_bytes(held[:3])
            kind, flags, stream = struct.unpack_from(">BBI", held, 3)
            yield Frame(kind, flags, stream, held[9 : 9 + length])
            held = held[9 + length :]

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
    """Connect, and hang up at the end; wait so many seconds for the other side."""
    connection = Connection(port, patience)
    try:
        yield connection
    finally:
        connection.close()
