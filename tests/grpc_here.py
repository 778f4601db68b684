"""gRPC in this process: our application over HTTP/2 for calls of grpcio's client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar

import grpc

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.callers import unauthenticated
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.request import bearer_token
from reconciler.service.transport.connections import FirstBytes, Room
from reconciler.service.transport.grpc_calls import GrpcCalls
from reconciler.service.transport.grpc_streams import GrpcStreams
from reconciler.service.transport.http2 import Http2Protocol, Http2Server
from reconciler.service.transport.intake import Intake
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.observer import Observer
from reconciler.service.transport.turns import Turns
from tests.wires import refused_by

LIST_ACTIONS = "/zitadel.management.v1.ManagementService/ListActions"
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
REFLECT = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"

Metadata = tuple[tuple[str, str], ...]


def bearer(token: str) -> Metadata:
    """Return the metadata of a caller."""
    return (("authorization", f"Bearer {token}"),)


class Door:
    """Answers calls whose token begins with ``good``, and counts what it was asked.

    Attributes:
        held: Until then calls are not answered whose token ends with ``held``.
    """

    given: ClassVar[dict[str, Any]] = {}

    def __init__(self, limits: Limits) -> None:
        self.asked = 0
        self.held = asyncio.Event()
        self.taken = asyncio.Event()
        self.observer = Observer()
        self._intake = Intake(self.answer, limits)
        self.streams = GrpcStreams(self._intake)
        self.app = GrpcCalls(self.answer, self.observer, self._intake, self.streams.apps)

    async def answer(self, call: Incoming) -> Received:
        """Answer one call."""
        self.asked += 1
        try:
            token = bearer_token(call.headers)
            if not token.startswith("good"):
                raise unauthenticated("the token is not known to this service")
        except Refusal as refusal:
            return Received("", refusal)
        if isinstance(call.fields, Refusal):
            return Received("good", call.fields)
        if token.endswith("held"):
            self.taken.set()
            await self.held.wait()
        return Received("good", self.given)

    async def has(self, *, calls: int = 0, streams: int = 0) -> None:
        """Wait until there are so many calls with a token, and streams, that have their places."""
        for _ in range(2000):
            known, open_to_all = self._intake._known, self.streams._places
            if (known._calls.total, open_to_all._calls.total) == (calls, streams):
                return
            await asyncio.sleep(0.005)
        raise AssertionError("not so many calls and streams have their places")


@asynccontextmanager
async def a_channel(door: Door, limits: Limits) -> AsyncIterator[grpc.aio.Channel]:
    """Serve gRPC, and connect to it."""
    loop = asyncio.get_running_loop()
    room = Room(limits, loop.time)
    server = Http2Server(door.app, limits, Turns(loop), set(), set())

    def first_bytes() -> asyncio.Protocol:
        place = room.enter("127.0.0.1", lambda: None)
        make = partial(Http2Protocol, server, place)
        return FirstBytes(make, make, place, server.connections)

    listening = await loop.create_server(first_bytes, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            yield channel
        finally:
            for connection in [*server.connections]:
                connection._transport.abort()
            await asyncio.sleep(0.01)


def on_a_channel(main: Callable[[Door, grpc.aio.Channel], Awaitable[None]], limits: Limits) -> None:
    """Run a test on a channel to a door of its own."""

    async def running() -> None:
        door = Door(limits)
        async with asyncio.timeout(20), a_channel(door, limits) as channel:
            await main(door, channel)

    asyncio.run(running())


async def refused(call: Any) -> tuple[int, str]:
    """Return code and reason of a refusal."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        outcome = refused_by(error)
        return outcome.code, outcome.reason
    raise AssertionError("it was not refused")


async def never() -> AsyncIterator[bytes]:
    """Yield no message, and do not end."""
    await asyncio.Event().wait()
    yield b""


async def none() -> AsyncIterator[bytes]:
    """End without a message."""
    nothing: tuple[bytes, ...] = ()
    for message in nothing:
        yield message
