"""Honest callers of a server that is attacked, as a process: ``python -m tests.faults.honest``.

It takes two orders in turns (see ``workers``): whom to call, which it answers once each caller has
called, and to end, which it answers with each call, after one more of each caller. There is a
caller for every wire on a connection that is kept, and one that makes a new connection for each
call. They send bytes that were made beforehand, and read no more than it takes to tell an answer
from a refusal, so that the server is measured and not they.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, Protocol

from tests import http2
from tests.faults.workers import say
from tests.raw_http import read_response, request

LIST_ACTIONS = "/zitadel.management.v1.ManagementService/ListActions"
EMPTY_MESSAGE = bytes(5)
WINDOW = (1 << 30).to_bytes(4)
PAUSES = (0.0, 0.05)  # seconds between two calls; by chance, or callers would fall into step
PATIENCE = 10.0
SILENT = f"no answer within {PATIENCE:.0f} s"
CLOSED = "closed"


@dataclass(frozen=True)
class Called:
    """Whom to call, and with which token."""

    port: int
    is_tls: bool
    token: str


class Call(NamedTuple):
    """A call that was made.

    Attributes:
        caller: A wire, and whether connections are kept, such as ``JSON, fresh``.
        began: On the clock that all processes share.
        took: Seconds to the answer, with those to connect where the connection is fresh.
        refused: How it was not answered; empty where it was.
    """

    caller: str
    began: float
    took: float
    refused: str


class Line(Protocol):
    """A connection to the server."""

    def ask(self) -> str:
        """Make a call; return how it was refused, or nothing."""
        ...

    def close(self) -> None:
        """Hang up."""


class Http1:
    """JSON or gRPC-web over HTTP/1.1."""

    def __init__(self, called: Called, request: bytes) -> None:
        self._request = request
        self._socket = connect(called, "http/1.1")
        self._stream = self._socket.makefile("rb")

    def ask(self) -> str:
        """Make a call; return how it was refused, or nothing."""
        self._socket.sendall(self._request)
        try:
            answer = read_response(self._stream)
        except AssertionError:
            return CLOSED
        if answer is None or (answer.closed and answer.status == 200):
            return CLOSED
        is_web = "grpc" in answer.headers.get("content-type", "")
        is_good = answer.status == 200 and (not is_web or b"grpc-status:0" in answer.body)
        return "" if is_good else f"{answer.status} {answer.body[:200]!r}"

    def close(self) -> None:
        """Hang up."""
        self._stream.close()
        self._socket.close()


class Http2:
    """gRPC. A refusal has no message, so a message is a good answer."""

    def __init__(self, called: Called, request: bytes) -> None:
        self._block = request
        self._connection = http2.Connection(connect(called, "h2"))
        window = http2.frame(http2.WINDOW_UPDATE, content=WINDOW)
        self._connection.send(http2.HELLO + window)
        self._streams = count(1, 2)

    def ask(self) -> str:
        """Make a call; return how it was refused, or nothing."""
        stream, has_message, began = next(self._streams), False, time.monotonic()
        self._connection.send(
            http2.frame(http2.HEADERS, http2.END_HEADERS, stream, self._block)
            + http2.frame(http2.DATA, http2.END_STREAM, stream, EMPTY_MESSAGE)
        )
        for found in self._connection.frames():
            self._acknowledge(found)
            if found.kind == http2.GOAWAY or (found.kind, found.stream) == (
                http2.RST_STREAM,
                stream,
            ):
                return f"frame {found.kind} {found.content[:200]!r}"
            has_message |= found.kind == http2.DATA and bool(found.content)
            if found.kind == http2.HEADERS and found.flags & http2.END_STREAM:
                return "" if has_message else f"no message: {found.content[:200]!r}"
        return SILENT if time.monotonic() - began >= PATIENCE else CLOSED

    def _acknowledge(self, found: http2.Frame) -> None:
        if found.kind in {http2.SETTINGS, http2.PING} and not found.flags:
            said = found.content if found.kind == http2.PING else b""
            self._connection.send(http2.frame(found.kind, http2.ACK, content=said))

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def connect(called: Called, speaks: str) -> socket.socket:
    """Connect, and agree on a protocol where the server has TLS."""
    made = socket.create_connection(("127.0.0.1", called.port), timeout=PATIENCE)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not called.is_tls:
        return made
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([speaks])
    return context.wrap_socket(made)


def lines(called: Called) -> Mapping[str, Callable[[], Line]]:
    """Return how to connect and what to say over every wire."""
    bearer = {"authorization": f"Bearer {called.token}"}
    json_headers = {**bearer, "content-type": "application/json"}
    web_headers = {**bearer, "content-type": "application/grpc-web+proto"}
    search = request("POST", "/management/v1/actions/_search", json_headers, b"{}")
    web = request("POST", LIST_ACTIONS, web_headers, EMPTY_MESSAGE)
    grpc = http2.headers(LIST_ACTIONS, [*bearer.items()])
    return {
        "JSON": lambda: Http1(called, search),
        "gRPC": lambda: Http2(called, grpc),
        "gRPC-web": lambda: Http1(called, web),
    }


class Caller(threading.Thread):
    """Makes one call after the other, and one more after ``over`` is set."""

    def __init__(self, name: str, connect: Callable[[], Line], *, keeps: bool) -> None:
        super().__init__(daemon=True)
        self.calls: list[Call] = []
        self.has_called = threading.Event()
        self.over = threading.Event()
        self._caller = f"{name}, {'kept' if keeps else 'fresh'}"
        self._connect = connect
        self._keeps = keeps
        self._line: Line | None = None

    def run(self) -> None:
        is_last = False
        while not is_last:
            is_last = self.over.wait(random.uniform(*PAUSES))
            began = time.monotonic()
            refused = self._ask()
            took = time.monotonic() - began
            self.calls.append(Call(self._caller, began, took, refused))
            self.has_called.set()
            if refused or not self._keeps:
                self._hang_up()
        self._hang_up()

    def _ask(self) -> str:
        try:
            self._line = self._line or self._connect()
            return self._line.ask()
        except TimeoutError:
            return SILENT
        except OSError as error:
            return f"{CLOSED}: {error}"

    def _hang_up(self) -> None:
        if self._line is not None:
            with suppress(OSError):
                self._line.close()
        self._line = None


def sittings() -> Iterator[object]:
    """Yield the answers of each sitting: that all have called, and at its end their calls."""
    for order in sys.stdin:
        callers = [
            Caller(name, connect, keeps=keeps)
            for name, connect in lines(Called(**json.loads(order))).items()
            for keeps in (True, False)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.has_called.wait()
        yield "all have called"
        sys.stdin.readline()
        for caller in callers:
            caller.over.set()
        for caller in callers:
            caller.join()
        yield [call for caller in callers for call in caller.calls]


if __name__ == "__main__":
    for answer in sittings():
        say(answer)
