"""The gRPC and gRPC-web front ends of a server, for as long as it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport.admission import Budget, UnreadError
from reconciler.service.transport.bodies import Bodies
from reconciler.service.transport.grpc_server import GrpcServer, Intake
from reconciler.service.transport.grpc_web import GrpcWeb
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.new_calls import Inside, NewCalls
from reconciler.service.transport.observer import Answer, Observer
from reconciler.service.transport.process import SOCKET, private_folder
from reconciler.service.transport.protobuf import SERVICES


class FrontEnds(NamedTuple):
    """The two front ends, as ``listener.serve`` takes them.

    Attributes:
        inside: Where gRPC listens, and what its connections share.
        web_routes: gRPC-web, by the full name of each service.
        drain: Takes no more calls over gRPC, and finishes those in flight.
    """

    inside: Inside
    web_routes: Mapping[str, GrpcWeb]
    drain: Callable[[], Awaitable[None]]


@asynccontextmanager
async def grpc_front_ends(
    answer: Answer, observer: Observer, bodies: Bodies, limits: Limits
) -> AsyncIterator[FrontEnds]:
    """Answer gRPC on a private socket until the block ends.

    Raises:
        ListenError: there is nowhere to make that socket.
    """
    with private_folder() as folder:
        socket = folder / SOCKET
        new_calls = NewCalls(limits)
        watched = observer.watch(_at_once(answer), "grpc")
        server = GrpcServer(watched, Intake(bodies.admission, new_calls, limits), socket)
        web = GrpcWeb(observer.watch(answer, "grpc-web"), bodies)
        await server.start()

        async def drain() -> None:
            await server.drain(limits.drain_seconds)

        try:
            inside = Inside(str(socket), Budget.of_grpc(limits), new_calls)
            yield FrontEnds(inside, dict.fromkeys(SERVICES, web), drain)
        finally:
            await server.stop()


def _at_once(answer: Answer) -> Answer:
    """Return what refuses a call that was not read without having it wait among the others."""

    async def answered(call: Incoming) -> Received:
        if isinstance(call.fields, UnreadError):
            return Received("", call.fields)
        return await answer(call)

    return answered
