"""Connections: listening for them, how many there may be, and which one makes room for another.

Every connection has a place from the moment it is accepted, also while it shakes hands for TLS.

A connection is idle while it carries out no call: before its first request, while a request is not
whole, and after an answer. Once the room is full, an idle connection loses its place to a new one;
those of strangers first, and of them those of the address that has most. So idle connections cannot
keep others out, no call in flight is cut off, and callers with a token keep their connections.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Callable, MutableSet
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from reconciler.resources.files import is_given_pipe, open_regular
from reconciler.resources.origin import in_url
from reconciler.service.transport.limits import LINGERING, RECEIVE_BYTES, Limits
from reconciler.service.transport.observer import Observer

RESERVED = 192  # descriptors of the store, its threads, logs, and of connections being refused
LEAST = 16
BACKLOG = 2048  # connections that the system keeps until they are accepted
BURST = 4  # connections that are accepted before others get their turn of the event loop
PAUSE_SECONDS = 0.2  # after the process ran out of descriptors
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # of HTTP/2 (RFC 9113, 3.4)
TOO_MANY = "there are too many connections"
NO_FILES = "the server has no file descriptor left"
_OUT_OF_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


@dataclass(eq=False, slots=True)
class Place:
    """The place of one connection.

    Attributes:
        address: Of the caller.
        end: Ends the connection at once.
        is_refused: Whether none was left: the connection stays only to be answered so.
        is_known: Whether a call of it had a valid token.
        idle_since: By the clock of the loop.
    """

    room: Room
    address: str
    end: Callable[[], object]
    is_refused: bool = False
    is_known: bool = False
    idle_since: float = 0.0

    def set_idle(self) -> None:
        """Note that the connection carries out no call from now on."""
        self.set_busy()
        if self in self.room.places:
            self.idle_since = self.room.now()
            self.room.idle[self] = None

    def set_busy(self) -> None:
        """Note that the connection carries out a call."""
        self.room.idle.pop(self, None)

    def linger(self) -> None:
        """Free the place; the connection stays for a moment, until its caller has read the end.

        ``end`` ends it. That is done to the oldest such connection if this is one too many.
        """
        self.free()
        if not self.room.can_refuse:
            oldest = next(iter(self.room.lingering))
            oldest.free()
            oldest.end()
        self.room.lingering[self] = None

    def free(self) -> None:
        """Free the place of a connection that is about to end."""
        self.set_busy()
        self.room.lingering.pop(self, None)
        self.room.places.discard(self)

    def leave(self) -> None:
        """Free the place: the connection is gone, and so is what would have ended it."""
        self.free()
        self.room.ended += 1
        self.end = lambda: None


class Room:
    """Places for the connections of one server, on one event loop.

    A connection that was answered for the last time, or is refused, holds no place: it may stay
    for a moment, so that its caller can read why.

    Attributes:
        places: Of connections, but for those that linger.
        idle: Places of connections without a call, the one that is idle for longest first.
        lingering: Connections that stay for a moment, the oldest first.
        ended: How many connections are gone, since the start.
    """

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        """``now`` is the time of the loop."""
        self.limits = limits
        self.now = now
        self.places: set[Place] = set()
        self.idle: dict[Place, None] = {}
        self.lingering: dict[Place, None] = {}
        self.ended = 0

    @property
    def count(self) -> int:
        """Return how many connections have a place."""
        return len(self.places)

    @property
    def can_refuse(self) -> bool:
        """Return whether one more caller can be answered why it is refused."""
        return len(self.lingering) < LINGERING

    def enter(self, address: str, end: Callable[[], object]) -> Place:
        """Return a place for a new connection, which is idle; an idle one may lose its place.

        It is refused where all others carry out calls, or have done so a moment ago.
        """
        place = Place(self, address, end)
        if self.count >= self.limits.connections:
            other = self._replaceable()
            if other is None:
                place.is_refused = True
                return place
            other.free()
            other.end()
        self.places.add(place)
        place.set_idle()
        return place

    def _replaceable(self) -> Place | None:
        """Return the connection that makes room for another.

        Strangers first: of the address that has most of them, the one that is idle for longest.
        """
        strangers = [place for place in self.idle if not place.is_known]
        if strangers:
            of_address = Counter(place.address for place in strangers)
            most = max(of_address.values())
            return next(place for place in strangers if of_address[place.address] == most)
        silent_since = self.now() - self.limits.silent_seconds
        longest = next(iter(self.idle), None)
        return longest if longest and longest.idle_since <= silent_since else None


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
    left = max(descriptors - RESERVED - LINGERING, LEAST)
    return replace(limits, connections=min(limits.connections, left))


class ListenError(Exception):
    """A server that cannot listen as configured: what is wrong, and what to do about it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def bind(host: str, port: int, flag: str = "--listen") -> socket.socket:
    """Return a socket that listens; port 0 takes a free one. ``flag`` named the address.

    Raises:
        ListenError: the address is in use, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as failure:
        reason = getattr(failure, "strerror", None) or "no such address"
        reason, _, _ = reason.partition(" (while attempting")  # which repeats the address
        raise ListenError(
            f"cannot listen on {host}:{port}: {reason}",
            f"Choose another address with {flag} HOST:PORT; port 0 takes a free one.",
        ) from failure
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    return listening


class Certificate:
    """The certificate of a server, which may be renewed while it runs.

    Attributes:
        context: Settings of the handshakes to come. Connections that are made keep theirs.
    """

    def __init__(self, chain: Path, key: Path) -> None:
        """Read the files of a certificate chain and its key.

        Raises:
            ListenError: they cannot be used.
        """
        self._chain, self._key = chain, key
        self.context = tls_context(chain, key)

    def read_again(self, log: logging.Logger) -> None:
        """Read the files again, and log the result; what cannot be used changes nothing."""
        try:
            self.context = tls_context(self._chain, self._key)
        except ListenError as failure:
            log.warning("the certificate stays as it is: %s. %s", failure.problem, failure.remedy)
        else:
            log.info("the certificate %s was read again", self._chain)


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Return what a server needs to speak TLS.

    HTTP/1.1 comes first, because a call over it costs less: only those get HTTP/2 who speak
    nothing else, such as gRPC.

    Raises:
        ListenError: certificate or key cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        for path in (certificate, key):
            if not is_given_pipe(path):
                os.close(open_regular(path))
        # With a password, so that OpenSSL does not ask for one at a terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError) as failure:
        why = f": {failure.filename}: {failure.strerror}" if failure.filename else ""
        raise ListenError(
            f"cannot use the certificate {certificate} with the key {key}{why}",
            "Name a certificate chain and its unencrypted key, both in PEM.",
        ) from failure
    context.set_alpn_protocols(["http/1.1", "h2"])
    return context


def address_of(listening: socket.socket, *, is_tls: bool) -> str:
    """Return the address at which a socket is reached."""
    host, port = listening.getsockname()[:2]
    return f"{'https' if is_tls else 'http'}://{in_url(host)}:{port}"


class Acceptor:
    """One listening socket.

    Connections are accepted here and not by the event loop, because its server does not know of a
    connection before TLS is agreed on, and gives that a minute.
    """

    def __init__(
        self,
        listening: socket.socket,
        make_protocol: Callable[[Place], FirstBytes],
        tls: Certificate | None,
        room: Room,
        observer: Observer,
    ) -> None:
        """Accept connections for protocols that ``make_protocol`` makes, each for its place."""
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
                accepted, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as failure:
                if failure.errno in _OUT_OF_FILES:
                    self._observer.turned_away(NO_FILES)
                    self._loop.remove_reader(self._listening.fileno())
                    self._loop.call_later(PAUSE_SECONDS, self._go_on)
                return
            self._take(accepted, address[0])

    def _take(self, accepted: socket.socket, address: str) -> None:
        place = self._room.enter(address, lambda: None)
        # Without TLS, the refusal is answered with its reason, where there is room for that.
        if place.is_refused and (self._tls or not self._room.can_refuse):
            self._observer.turned_away(TOO_MANY)
            accepted.close()
            return
        accepted.settimeout(0)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        first = self._make_protocol(place)
        task = self._loop.create_task(self._connect(accepted, first))
        place.end = task.cancel  # until the connection is made
        self._tasks.add(task)
        task.add_done_callback(partial(self._connected, accepted, first, place))

    async def _connect(self, accepted: socket.socket, first: FirstBytes) -> None:
        """Hand a connection to its protocol, once TLS is agreed on."""
        seconds = self._room.limits.head_seconds if self._tls else None
        try:
            await self._loop.connect_accepted_socket(
                lambda: first,
                accepted,
                ssl=self._tls.context if self._tls else None,
                ssl_handshake_timeout=seconds,
            )
        except OSError:  # the caller went away, speaks no TLS, or takes too long
            accepted.close()

    def _connected(
        self, accepted: socket.socket, first: FirstBytes, place: Place, task: asyncio.Task[None]
    ) -> None:
        if task.cancelled():
            accepted.close()
            first.end()
        self._tasks.discard(task)
        if first.made is None:
            place.leave()


class FirstBytes(asyncio.Protocol):
    """A connection whose protocol is not known yet: its first bytes are the preface, or are not.

    Attributes:
        made: Its transport; None until the connection is made. ``connect_accepted_socket`` returns
            no transport when it is cancelled.
    """

    def __init__(
        self,
        make_http1: Callable[[], asyncio.Protocol],
        make_http2: Callable[[], asyncio.Protocol],
        place: Place,
        connections: MutableSet[Any],
    ) -> None:
        """Read until the protocol is known, then hand the connection on.

        The HTTP server looks up in ``connections`` what it must wait for at its end.
        """
        self._make_http1 = make_http1
        self._make_http2 = make_http2
        self._place = place
        self._connections = connections
        self._timer: asyncio.TimerHandle | None = None
        self._seen = b""
        self.made: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first bytes, but not for long; not at all where there is no place."""
        self.made = self._transport = cast("asyncio.Transport", transport)  # of a stream, thus one
        if self._place.is_refused:
            self._go_on_as(self._make_http1())  # which says so
            return
        self._connections.add(self)
        self._place.end = self._transport.abort
        self._place.set_idle()
        self._timer = asyncio.get_running_loop().call_later(
            self._place.room.limits.head_seconds, self.shutdown
        )

    def data_received(self, data: bytes) -> None:
        """Hand the connection on as soon as its bytes are no preface, or are one."""
        self._seen += data
        if self._seen.startswith(PREFACE):
            self._go_on_as(self._make_http2()).data_received(self._seen[len(PREFACE) :])
        elif not PREFACE.startswith(self._seen):
            self._go_on_as(self._make_http1()).data_received(self._seen)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._leave()
        self._place.leave()

    def end(self) -> None:
        """Notify the present protocol that the connection is lost, unless that was done.

        uvloop ends a connection whose making is cancelled without notifying its protocol. By then
        the first bytes may have come, and another protocol may be there.
        """
        present = self.made and self.made.get_protocol()
        if present:  # asyncio has none once it has notified it
            present.connection_lost(None)

    def shutdown(self) -> None:
        """Close, because the server ends, or nothing came: nothing was asked yet."""
        self._transport.close()

    def _go_on_as(self, protocol: asyncio.Protocol) -> asyncio.Protocol:
        self._leave()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        return protocol

    def _leave(self) -> None:
        self._connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
