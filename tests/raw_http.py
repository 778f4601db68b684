"""HTTP as bytes on a socket: what no decent client would send, and what comes back."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
        return read_response(connection)


def read_response(connection: socket.socket) -> Raw | None:
    """Read one response; None where there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65_536)
        if not more:
            assert data == b""
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        more = connection.recv(65_536)
        assert more, "the response is cut off"
        body += more
    says_so = headers.get("connection") == "close"
    closed = says_so and connection.recv(1) == b""
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
