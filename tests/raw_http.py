"""HTTP as bytes on a socket: what no decent client would send, and what comes back."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

PATIENCE = 20.0


@dataclass(frozen=True)
class Raw:
    """A response, and whether the server hung up after it."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    closed: bool

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def exchange(port: int, *pieces: bytes) -> Raw | None:
    """Send bytes, and return the first response; None where the server only hung up."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        for piece in pieces:
            try:
                connection.sendall(piece)
            except (BrokenPipeError, ConnectionResetError):
                break  # the server has said its word already
        with connection.makefile("rb") as stream:
            return read_response(stream)


class Line:
    """A connection for many requests, one after another; a new one where the server hung up."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open = ExitStack()
        self._connection: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def exchange(self, piece: bytes) -> Raw | None:
        """Send a request, and return the response; None where the server only hung up."""
        if self._connection is None:
            address = ("127.0.0.1", self._port)
            connection = self._open.enter_context(socket.create_connection(address, PATIENCE))
            self._stream = self._open.enter_context(connection.makefile("rb"))
            self._connection = connection
        self._connection.sendall(piece)
        response = read_response(self._stream)
        if response is None or response.closed:
            self._open.close()
            self._connection = None
        return response


def read_response(stream: BinaryIO) -> Raw | None:
    """Read the next response; None where there is none."""
    status_line = stream.readline().decode("latin-1")
    if not status_line:
        return None
    headers: dict[str, str] = {}
    while (line := stream.readline().decode("latin-1")) != "\r\n":
        assert line, "the response is cut off"
        name, _, value = line.rstrip("\r\n").partition(": ")
        headers[name.lower()] = value
    length = int(headers.get("content-length", "0"))
    body = stream.read(length)
    assert len(body) == length, "the response is cut off"
    closed = headers.get("connection") == "close" and stream.read(1) == b""
    return Raw(int(status_line.split(" ")[1]), headers, body, closed)


def request(
    verb: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> bytes:
    """Return a right request, as bytes."""
    lines = [f"{verb} {path} HTTP/1.1", "host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
