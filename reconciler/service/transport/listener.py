"""One port for everything: REST, gRPC, gRPC-web and pages, over HTTP/1.1 and HTTP/2.

``serve`` runs until a signal asks it to stop, then finishes what is in flight.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Timer
from typing import TYPE_CHECKING

import uvicorn
import uvloop

from reconciler.service.operations.dispatch import Incoming
from reconciler.service.scheduling.batching import ENDING, READY_SECONDS, Batcher, StoreCheck
from reconciler.service.transport.asgi import ASGIApp, Receive, Scope, Send
from reconciler.service.transport.connections import (
    Acceptor,
    Certificate,
    FirstBytes,
    Place,
    Room,
    address_of,
    file_limit,
    fitted,
    raise_file_limit,
)
from reconciler.service.transport.grpc_calls import GrpcCalls
from reconciler.service.transport.grpc_streams import GrpcStreams
from reconciler.service.transport.http2 import Http2Protocol, Http2Server
from reconciler.service.transport.http_messages import json_answer, send_answer
from reconciler.service.transport.intake import Intake
from reconciler.service.transport.json_http import JsonHttp
from reconciler.service.transport.limits import MIB, Limits, most_memory
from reconciler.service.transport.observer import Observer, StoreFigures, metrics_app
from reconciler.service.transport.pages import Pages, build_app
from reconciler.service.transport.protocol import StrictProtocol
from reconciler.service.transport.turns import Turns
from reconciler.service.transport.ui import Drawing, Ui

if TYPE_CHECKING:
    from reconciler.service.keyless.exchange import Exchange

LOG = logging.getLogger("reconciler.service")
SIDE_CONNECTIONS = 16  # of a server of few callers
TURN_SECONDS = 0.001  # the event loop and the thread that commits wait for each other all the time
GIVE_UP = 0.8  # of the time to drain; then the store is not waited for, so that calls are answered
AT_ONCE_SECONDS = 1.0  # after the second signal; nothing that was acknowledged can be lost
GIVE_BACK_SECONDS = 5  # between two looks whether memory can be given back, and
GIVE_BACK_AFTER = 64  # connections, which leave some 6 MB of TLS behind


def on_signals(stop: Callable[[], None], reload: Callable[[], None]) -> None:
    """End a server by the signals that end a process; a second one ends the process itself.

    A hangup calls ``reload``, also under ``nohup``: it ends nothing.
    """
    loop = asyncio.get_running_loop()
    heard: list[int] = []

    def hear(number: int) -> None:
        stop()
        if heard:
            leaving = Timer(AT_ONCE_SECONDS, os._exit, (128 + number,))
            leaving.daemon = True
            leaving.start()
        heard.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, hear, number)
    loop.add_signal_handler(signal.SIGHUP, reload)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Settings of a server: the calls it answers, and its sockets.

    Attributes:
        listening: See ``bind``; ``metrics`` is another, for the figures alone.
        exchange: Gives short tokens; None where there is no token endpoint.
        figures: Asks the store for its figures, on a thread; None where it cannot be read.
        is_open: Says, on a thread, whether there is a token, so that calls are possible; None
            where the store gives no answer.
        abandon: Lets what waits for the store fail.
        on_ready: Called with the address once calls are answered.
        until: Is handed what ends the server.
        drawing: How the pages at ``/ui`` look.
    """

    batcher: Batcher
    observer: Observer
    listening: socket.socket
    metrics: socket.socket | None = None
    tls: Certificate | None = None
    exchange: Exchange | None = None
    limits: Limits = field(default_factory=Limits)
    figures: Callable[[], StoreFigures | None]
    is_open: Callable[[], bool | None]
    abandon: Callable[[], None] = lambda: None
    on_ready: Callable[[str], None]
    until: Callable[[Callable[[], None]], None]
    drawing: Drawing


def run_loop(main: Coroutine[object, object, None]) -> None:
    """Run a server on a fast event loop until it ends."""
    sys.setswitchinterval(TURN_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def one_queue(_: Incoming) -> str:
    """Put all writes in one queue: a store that has one writer at a time."""
    return "all"


async def serve(serving: Serving) -> None:
    """Answer calls until ``until`` ends it, then finish those in flight and return.

    The caller closes the store afterwards.
    """
    serving = replace(serving, limits=fitted(serving.limits, raise_file_limit()))
    batcher, observer, limits = serving.batcher, serving.observer, serving.limits
    is_open = StoreCheck(serving.is_open, READY_SECONDS)

    async def is_ready() -> bool:
        return not server.should_exit and await batcher.is_ready()

    intake = Intake(batcher.answer, limits)
    streams = GrpcStreams(intake)
    grpc = GrpcCalls(batcher.answer, observer, intake, streams.apps)
    tokens: ASGIApp | None = None
    if serving.exchange is not None:
        from reconciler.service.transport.token_endpoint import TokenEndpoint  # loads joserfc

        tokens = TokenEndpoint(serving.exchange, observer, intake)
    app = build_app(
        JsonHttp(batcher.answer, observer, intake),
        Pages(observer, is_ready, is_open.answer),
        Ui(batcher.answer, observer, serving.drawing),
        grpc,
        tokens,
    )
    server = _CallServer(app, serving, streams.end)
    serving.until(server.stop)
    async with AsyncExitStack() as beside:
        if serving.metrics is not None:
            count = server.server_state.connections.__len__
            figures = metrics_app(observer.metrics, serving.figures, count)
            await beside.enter_async_context(
                pages_served(figures, serving.metrics, observer, limits)
            )
        try:
            await server.serve([serving.listening])
        finally:
            is_open.close()
            await batcher.close()
            if serving.exchange is not None:
                serving.exchange.close()


def _config(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    config = uvicorn.Config(
        answering_to_the_end(app),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=limits.drain_seconds,
    )
    config.load()
    return config


def answering_to_the_end(app: ASGIApp) -> ASGIApp:
    """Return the application for HTTP/1.1, which answers 503 to a call that the server ends.

    A server that stops cancels what is under way when its time to drain is over; uvicorn would log
    a traceback for each call. A call of HTTP/2 that is cancelled was reset, and gets no answer.
    """

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except asyncio.CancelledError:
            with suppress(RuntimeError):  # the answer was begun before
                await send_answer(send, json_answer(ENDING))

    return answering


class _Server(uvicorn.Server):
    """A server of one application, whose connections are accepted and counted here."""

    def __init__(
        self,
        app: ASGIApp,
        listening: socket.socket,
        tls: Certificate | None,
        observer: Observer,
        limits: Limits,
    ) -> None:
        super().__init__(_config(app, limits))
        loop = asyncio.get_running_loop()
        state = self.server_state
        self._observer = observer
        self._room = Room(limits, loop.time)
        self._http2 = Http2Server(app, limits, Turns(loop), state.connections, state.tasks)
        self._acceptor = Acceptor(listening, self._first_bytes, tls, self._room, observer)

    def _first_bytes(self, place: Place) -> FirstBytes:
        """Return what reads a new connection until its protocol is known."""
        make_http1 = partial(StrictProtocol, self.config, self.server_state, place, self._observer)
        make_http2 = partial(Http2Protocol, self._http2, place)
        return FirstBytes(make_http1, make_http2, place, self.server_state.connections)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to others."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer."""
        await super().startup([])  # the acceptor listens instead
        self._acceptor.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nothing new, and finish what is in flight."""
        self._acceptor.close()
        await super().shutdown(sockets)


class _CallServer(_Server):
    """The server of all calls, which says when it is ready, and drains."""

    def __init__(self, app: ASGIApp, serving: Serving, end_streams: Callable[[], None]) -> None:
        super().__init__(app, serving.listening, serving.tls, serving.observer, serving.limits)
        self._serving = serving
        self._end_streams = end_streams
        self._trimmed_at = 0  # connections that had ended
        config = self.config
        config.callback_notify, config.timeout_notify = self._give_back, GIVE_BACK_SECONDS

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        serving, limits = self._serving, self._serving.limits
        serving.on_ready(address_of(serving.listening, is_tls=serving.tls is not None))
        LOG.info(
            "open files: at most %d; connections: at most %d", file_limit(), limits.connections
        )
        has_tokens = serving.exchange is not None
        most = sum(most_memory(limits, gives_tokens=has_tokens).values()) // MIB
        LOG.info("memory: at most %d MiB, whatever callers do", most)
        if serving.metrics is not None:
            LOG.info("figures: %s/metrics", address_of(serving.metrics, is_tls=False))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nothing new, and finish what is in flight."""
        self._serving.batcher.end_waiting()
        within = self._serving.limits.drain_seconds * GIVE_UP
        asyncio.get_running_loop().call_later(within, self._serving.abandon)
        self._end_streams()
        await super().shutdown(sockets)

    async def _give_back(self) -> None:
        """Give memory of connections that are gone back to the system.

        The C library keeps what OpenSSL has freed: some 30 MB after 320 connections with TLS. To
        give it back takes milliseconds, so a thread does it.
        """
        if self._room.ended - self._trimmed_at < GIVE_BACK_AFTER:
            return
        self._trimmed_at = self._room.ended
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        if trim is not None:
            await asyncio.to_thread(trim, 0)

    def stop(self) -> None:
        """End this server; asked again, it does not wait."""
        if self.should_exit:
            self.force_exit = True
            self._serving.abandon()
        self.should_exit = True


@asynccontextmanager
async def pages_served(
    app: ASGIApp,
    listening: socket.socket,
    observer: Observer,
    limits: Limits,
    tls: Certificate | None = None,
) -> AsyncIterator[None]:
    """Serve an application of few callers for as long as the block runs."""
    limits = replace(limits, drain_seconds=1, connections=SIDE_CONNECTIONS)
    side = _Server(app, listening, tls, observer, limits)
    task = asyncio.get_running_loop().create_task(side.serve([listening]))
    try:
        yield
    finally:
        side.should_exit = True
        await task
