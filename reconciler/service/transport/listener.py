"""One port for everything: REST, gRPC-web, pages, and HTTP/2 passed on to gRPC.

``serve`` runs until a signal asks it to stop, then finishes what is in flight.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import uvicorn
import uvloop
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from reconciler.service.operations.dispatch import Incoming
from reconciler.service.transport.admission import Budget
from reconciler.service.transport.batching import READY_SECONDS, Batcher, StoreCheck
from reconciler.service.transport.bodies import Bodies
from reconciler.service.transport.connections import (
    Acceptor,
    Room,
    file_limit,
    fitted,
    raise_file_limit,
)
from reconciler.service.transport.limits import MIB, RECEIVE_BYTES, Limits, most_memory
from reconciler.service.transport.new_calls import Inside
from reconciler.service.transport.observer import Observer, StoreFigures, metrics_app
from reconciler.service.transport.pages import State, build_app
from reconciler.service.transport.process import ListenError, on_signals
from reconciler.service.transport.protocol import StrictProtocol

LOG = logging.getLogger("reconciler.service")
BACKLOG = 2048
MAX_SCRAPES = 16
TURN_SECONDS = 0.001  # the event loop and the thread that commits wait for each other all the time
GIVE_UP = 0.8  # of the time to drain; then the store is not waited for, so that calls are answered


async def _nothing() -> None:
    """Have nothing to do."""


def _no_word(_: str) -> None:
    """Ignore the address."""


def no_wait() -> None:
    """Have no store that is waited for."""


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Settings of a server: the calls it answers, and its sockets.

    Attributes:
        listening: See ``bind``; ``metrics`` is another, for the figures alone.
        figures: Asks the store for its figures, on a thread; None where it cannot be read.
        is_open: Says, on a thread, whether there is a token, so that anybody could call; None
            where the store gives no answer.
        abandon: Lets what waits for the store fail.
        on_ready: Is told the address once calls are answered.
        until: Is handed what ends the server.
    """

    batcher: Batcher
    observer: Observer
    listening: socket.socket
    metrics: socket.socket | None = None
    tls: ssl.SSLContext | None = None
    grpc: bool = True
    limits: Limits = field(default_factory=Limits)
    figures: Callable[[], StoreFigures | None]
    is_open: Callable[[], bool | None]
    abandon: Callable[[], None] = no_wait
    on_ready: Callable[[str], None] = _no_word
    until: Callable[[Callable[[], None]], None] = on_signals


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one.

    Raises:
        ListenError: the address is in use, or is none of this machine.
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


def run_loop(main: Coroutine[object, object, None]) -> None:
    """Run a server on a fast event loop until it ends."""
    sys.setswitchinterval(TURN_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def one_queue(_: Incoming) -> str:
    """Put all writes in one queue: a store that has one writer at a time."""
    return "all"


async def serve(serving: Serving) -> None:
    """Answer calls until told to end, then finish those in flight and return.

    Whoever calls this closes the store afterwards.
    """
    draining = asyncio.Event()
    serving = replace(serving, limits=fitted(serving.limits, raise_file_limit()))
    is_open = StoreCheck(serving.is_open, READY_SECONDS)

    async def is_ready() -> bool:
        return not draining.is_set() and await serving.batcher.is_ready()

    bodies = Bodies(serving.batcher.answer, Budget.of(serving.limits))
    async with _grpc_front_ends(serving, bodies) as front_ends:
        answer, observer = serving.batcher.answer, serving.observer
        state = State(is_ready, is_open.answer)
        app = build_app(answer, observer, state, bodies, front_ends.web_routes)
        config = _config(
            app, partial(_protocol, serving=serving, inside=front_ends.inside), serving.limits
        )
        config.ssl = serving.tls
        server = _Server(config, serving, draining, front_ends.drain)
        async with _figures_served(serving, server):
            try:
                await server.serve([serving.listening])
            finally:
                is_open.close()
                await serving.batcher.close()


class FrontEnds(Protocol):
    """Front ends of other transports: see ``grpc_front_end``, which loads them."""

    @property
    def inside(self) -> Inside | None:
        """The server that connections of HTTP/2 are passed on to, if there is one."""
        ...

    @property
    def web_routes(self) -> Mapping[str, ASGIApp]:
        """Applications by the first part of their addresses."""
        ...

    @property
    def drain(self) -> Callable[[], Awaitable[None]]:
        """A function that finishes the calls in flight there."""
        ...


class _NoFrontEnds(NamedTuple):
    inside: None = None
    web_routes: Mapping[str, ASGIApp] = MappingProxyType({})
    drain: Callable[[], Awaitable[None]] = _nothing


def _grpc_front_ends(serving: Serving, bodies: Bodies) -> AbstractAsyncContextManager[FrontEnds]:
    if not serving.grpc:
        return nullcontext(_NoFrontEnds())
    from reconciler.service.transport.grpc_front_end import grpc_front_ends

    return grpc_front_ends(serving.batcher.answer, serving.observer, bodies, serving.limits)


def _protocol(
    config: uvicorn.Config,
    server_state: ServerState,
    app_state: dict[str, object],
    _loop: asyncio.AbstractEventLoop | None = None,
    *,
    serving: Serving,
    inside: Inside | None,
    room: Room | None = None,
) -> asyncio.Protocol:
    """Return what reads a new connection."""
    make_http = partial(
        StrictProtocol, config, server_state, app_state, serving.limits, serving.observer, room
    )
    if inside is None or room is None:
        return make_http()
    from reconciler.service.transport.splice import FirstBytes

    return FirstBytes(make_http, inside, room, serving.observer.turned_away)


def _config(app: ASGIApp, make_protocol: Any, limits: Limits) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=make_protocol,
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


class _Server(uvicorn.Server):
    """A server that says when it is ready, drains, and leaves signals as they were."""

    def __init__(
        self,
        config: uvicorn.Config,
        serving: Serving,
        draining: asyncio.Event,
        drain_others: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(config)
        self._serving = serving
        self._draining = draining
        self._drain_others = drain_others
        room = Room(self.server_state.connections, serving.limits, asyncio.get_running_loop().time)
        make_protocol: Any = config.http_protocol_class
        self._acceptor = Acceptor(
            serving.listening,
            partial(make_protocol, config, self.server_state, {}, room=room),
            serving.tls,
            room,
            serving.observer,
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hand out what ends this server; asked again, it does not wait."""
        self._serving.until(self._stop)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup([])  # the acceptor listens instead
        serving = self._serving
        self._acceptor.start()
        serving.on_ready(address_of(serving.listening, is_tls=serving.tls is not None))
        limits = serving.limits
        LOG.info(
            "open files: at most %d; connections: at most %d, %d of them over HTTP/2",
            file_limit(),
            limits.connections,
            limits.http2_connections,
        )
        LOG.info(
            "memory: at most %d MiB, whatever callers do", sum(most_memory(limits).values()) // MIB
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take nothing new, and finish what is in flight."""
        self._draining.set()
        self._serving.batcher.end_waiting()
        self._acceptor.close()
        within = self._serving.limits.drain_seconds * GIVE_UP
        asyncio.get_running_loop().call_later(within, self._serving.abandon)
        await asyncio.gather(super().shutdown(sockets), self._drain_others())

    def _stop(self) -> None:
        if self.should_exit:
            self.force_exit = True
            self._serving.abandon()
        self.should_exit = True


def address_of(listening: socket.socket, *, is_tls: bool) -> str:
    """Return the address at which a socket is reached."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if is_tls else 'http'}://{shown}:{port}"


@asynccontextmanager
async def _figures_served(serving: Serving, server: uvicorn.Server) -> AsyncIterator[None]:
    """Serve the figures on their own port, if there is one, for as long as the block runs."""
    if serving.metrics is None:
        yield
        return
    app = metrics_app(
        serving.observer.metrics, serving.figures, lambda: len(server.server_state.connections)
    )
    limits = replace(serving.limits, connections=MAX_SCRAPES, drain_seconds=1)
    protocol = partial(_protocol, serving=replace(serving, limits=limits), inside=None)
    side = _SideServer(_config(app, protocol, limits))
    task = asyncio.get_running_loop().create_task(side.serve([serving.metrics]))
    try:
        yield
    finally:
        side.should_exit = True
        await task


class _SideServer(uvicorn.Server):
    """A server that ends with another one."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the other one."""
        yield
