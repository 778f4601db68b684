"""Accepts the connections of one listening socket, as many as there is room for.

Connections are accepted here and not by the event loop, because its server tells nothing of a
connection before TLS is agreed on, and gives that a minute.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable

from reconciler.service.transport.observer import Observer
from reconciler.service.transport.room import Room

BURST = 4  # connections that are accepted before others get their turn of the event loop
PAUSE_SECONDS = 0.2  # after the process ran out of descriptors
TOO_MANY = "there are too many connections"
NO_FILES = "the server has no file descriptor left"
_OUT_OF_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Acceptor:
    """One listening socket."""

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
        task = self._loop.create_task(self._connect(accepted))
        self._tasks.add(task)
        self._room.begin_handshake(task)
        task.add_done_callback(self._connected)

    async def _connect(self, accepted: socket.socket) -> None:
        """Hand a connection to its protocol, once TLS is agreed on."""
        seconds = self._room.limits.head_seconds if self._tls else None
        try:
            await self._loop.connect_accepted_socket(
                self._make_protocol,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=seconds,
            )
        except OSError:  # the caller went away, speaks no TLS, or takes too long
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise

    def _connected(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.end_handshake(task)
