"""Connections: listening for them, how many there may be, and which one makes room for another.

A connection over HTTP/1.1 takes one file descriptor; one over HTTP/2 takes three, because it is
spliced to the gRPC server over a pair of sockets. Every connection is counted from the moment it
is accepted, also while it shakes hands for TLS.

A connection is idle while it carries out no call: before its first request, while a request is not
whole, and after an answer. Once the room is full, an idle connection loses its place to a new one.
So idle connections cannot keep others out, and no call in flight is cut off.
"""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import ssl
from collections.abc import Callable, MutableSet
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from reconciler.service.transport.limits import RECEIVE_BYTES, Limits
from reconciler.service.transport.observer import Observer

RESERVED = 192  # descriptors of the store, its threads, logs, and of connections being refused
REFUSALS = 64  # connections that are told why they are refused, before the others are just closed
SPLICED = 2  # descriptors that a connection over HTTP/2 takes beside its own
LEAST = 16
BACKLOG = 2048  # connections that the system keeps until they are accepted
BURST = 4  # connections that are accepted before others get their turn of the event loop
PAUSE_SECONDS = 0.2  # after the process ran out of descriptors
TOO_MANY = "there are too many connections"
NO_FILES = "the server has no file descriptor left"
_OUT_OF_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class _Splice(Protocol):
    """A connection over HTTP/2, as far as it may have to make room; see ``splice.Splice``."""

    last_seen: float  # when bytes came or went, by the clock of the loop

    @property
    def is_busy(self) -> bool: ...  # whether a call is being carried out on it

    def abort(self) -> None: ...


class Room:
    """Connections of one server, on one event loop."""

    def __init__(
        self, connections: MutableSet[Any], limits: Limits, now: Callable[[], float]
    ) -> None:
        """Count ``connections``, which the HTTP server keeps; ``now`` is the time of the loop."""
        self.connections = connections
        self.limits = limits
        self._now = now
        self._silent: dict[object, tuple[float, Callable[[], None]]] = {}  # the longest first
        self._handshakes: set[asyncio.Task[None]] = set()
        self._spliced: set[_Splice] = set()

    @property
    def count(self) -> int:
        """Return how many connections there are, those included that shake hands."""
        return len(self._handshakes) + len(self.connections)

    @property
    def is_full(self) -> bool:
        """Return whether one more connection would be too many."""
        return self.count >= self.limits.connections

    @property
    def cannot_refuse(self) -> bool:
        """Return whether there are too many even to tell one more why it is refused."""
        return self.count >= self.limits.connections + REFUSALS

    def make_room(self) -> None:
        """End the connection that has been silent for longest, if there is no room."""
        if not self.is_full or not self._silent:
            return
        name, (since, end) = next(iter(self._silent.items()))
        if since + self.limits.silent_seconds <= self._now():
            del self._silent[name]
            end()

    def begin_handshake(self, task: asyncio.Task[None]) -> None:
        """Count a connection that shakes hands in a task."""
        self._handshakes.add(task)

        def give_up() -> None:
            self._handshakes.discard(task)
            task.cancel()

        self.set_idle(task, give_up)

    def end_handshake(self, task: asyncio.Task[None]) -> None:
        """Stop counting it here: it has failed, or a protocol counts it now."""
        self._handshakes.discard(task)
        self.set_busy(task)

    def set_idle(self, name: object, end: Callable[[], None]) -> None:
        """Note that a connection carries out no call from now on; ``end`` ends it."""
        self._silent.pop(name, None)
        self._silent[name] = (self._now(), end)

    def set_busy(self, name: object) -> None:
        """Note that a connection carries out a call, or is gone."""
        self._silent.pop(name, None)

    def splice(self, splice: _Splice) -> bool:
        """Count a connection over HTTP/2; return whether there is room for it.

        Where there is none, the one that was idle for longest makes room. One that waits for an
        answer is not idle.
        """
        if len(self._spliced) >= self.limits.http2_connections:
            silent_since = self._now() - self.limits.silent_seconds
            idle = [
                other
                for other in self._spliced
                if other.last_seen <= silent_since and not other.is_busy
            ]
            if not idle:
                return False
            longest = min(idle, key=lambda other: other.last_seen)
            self._spliced.discard(longest)
            longest.abort()
        self._spliced.add(splice)
        return True

    def unsplice(self, splice: _Splice) -> None:
        """Stop counting a connection over HTTP/2."""
        self._spliced.discard(splice)


def file_limit() -> int:
    """Return how many files and sockets this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_file_limit() -> int:
    """Let this process open as many files as the system lets it; return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS has a hard limit that cannot be the soft one
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return file_limit()


def fitted(limits: Limits, descriptors: int) -> Limits:
    """Return limits whose connections fit so many descriptors."""
    left = max(descriptors - RESERVED - REFUSALS, LEAST)
    http2 = min(limits.http2_connections, left // (2 * (1 + SPLICED)))
    connections = min(limits.connections, left - SPLICED * http2)
    return replace(limits, connections=connections, http2_connections=http2)


class ListenError(Exception):
    """A server that cannot listen as it was told: what is wrong, and what to do about it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one.

    Raises:
        ListenError: the address is in use, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as failure:
        reason = getattr(failure, "strerror", None) or "no such address"
        raise ListenError(
            f"cannot listen on {host}:{port}: {reason}",
            "Choose another address with --listen HOST:PORT; port 0 takes a free one.",
        ) from failure
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    return listening


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return what a server needs to speak TLS.

    HTTP/1.1 comes first, so that only those get HTTP/2 who speak nothing else: gRPC.

    Raises:
        ListenError: certificate or key cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as failure:
        raise ListenError(
            f"cannot use the certificate {certificate} with the key {key}",
            "Name a certificate chain and its unencrypted key, both in PEM.",
        ) from failure
    context.set_alpn_protocols(["http/1.1", "h2"])
    return context


def address_of(listening: socket.socket, *, is_tls: bool) -> str:
    """Return the address at which a socket is reached."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if is_tls else 'http'}://{shown}:{port}"


class Acceptor:
    """One listening socket.

    Connections are accepted here and not by the event loop, because its server tells nothing of a
    connection before TLS is agreed on, and gives that a minute.
    """

    def __init__(
        self,
        listening: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        room: Room,
        observer: Observer,
    ) -> None:
        """Accept connections for protocols that ``make_protocol`` makes."""
        self._listening = listening
        self._make_protocol = make_protocol
        self._tls = tls
        self._room = room
        self._observer = observer
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def start(self) -> None:
        """Begin to accept."""
        self._listening.settimeout(0)
        self._go_on()

    def close(self) -> None:
        """Accept no more, and end the connections that are not made yet."""
        self._is_closed = True
        self._loop.remove_reader(self._listening.fileno())
        for task in self._tasks:
            task.cancel()

    def _go_on(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(BURST):
            try:
                accepted, _address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as failure:
                if failure.errno in _OUT_OF_FILES:
                    self._observer.turned_away(NO_FILES)
                    self._loop.remove_reader(self._listening.fileno())
                    self._loop.call_later(PAUSE_SECONDS, self._go_on)
                return
            self._take(accepted)

    def _take(self, accepted: socket.socket) -> None:
        self._room.make_room()
        if self._room.cannot_refuse or (self._tls and self._room.is_full):
            self._observer.turned_away(TOO_MANY)
            accepted.close()
            return
        accepted.settimeout(0)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        newcomer = _Newcomer(self._make_protocol())
        task = self._loop.create_task(self._connect(accepted, newcomer))
        self._tasks.add(task)
        self._room.begin_handshake(task)
        task.add_done_callback(partial(self._connected, accepted, newcomer))

    async def _connect(self, accepted: socket.socket, newcomer: _Newcomer) -> None:
        """Hand a connection to its protocol, once TLS is agreed on."""
        seconds = self._room.limits.head_seconds if self._tls else None
        try:
            await self._loop.connect_accepted_socket(
                lambda: newcomer,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=seconds,
            )
        except OSError:  # the caller went away, speaks no TLS, or takes too long
            accepted.close()

    def _connected(
        self, accepted: socket.socket, newcomer: _Newcomer, task: asyncio.Task[None]
    ) -> None:
        if task.cancelled():
            accepted.close()
            newcomer.end()
        self._tasks.discard(task)
        self._room.end_handshake(task)


class _Newcomer(asyncio.Protocol):
    """Remembers the transport of a connection, which goes to another protocol at once.

    ``connect_accepted_socket`` returns no transport when it is cancelled.
    """

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self._protocol = protocol
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # of a stream, thus one
        self._transport.set_protocol(self._protocol)
        self._protocol.connection_made(transport)

    def end(self) -> None:
        """Tell the protocol that the connection is lost, unless the event loop has told it.

        uvloop ends a connection whose making is cancelled, and does not tell its protocol. By then
        the first bytes may have come, and another protocol than the first may be there.
        """
        present = self._transport and self._transport.get_protocol()
        if present:  # asyncio has none once it has told it
            present.connection_lost(None)
