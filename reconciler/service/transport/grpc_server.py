"""The gRPC front end: every operation of the table that has a method, health and reflection.

It listens on a private unix socket; connections from outside are spliced to it (``splice``).
Importing this module loads the gRPC library, which only a server needs.

Every method is registered as one that takes a stream, and reads one message of it. On the wire
that is the same as a method that takes one message. For such a method the library would read the
message before it calls the handler, without a token and without a time limit. The handler of a
stream judges the token first, and limits the wait.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio as health
from grpc_reflection.v1alpha import reflection, reflection_pb2

from reconciler.service.domain.refusal import Refusal, invalid
from reconciler.service.transport.grpc_intake import CallContext, Intake
from reconciler.service.transport.limits import KIB, MAX_MESSAGE, STREAM_WINDOW
from reconciler.service.transport.observer import Answer
from reconciler.service.transport.protobuf import (
    METHODS,
    SERVICES,
    Method,
    answer_bytes,
    load_pool,
    status_bytes,
)

GOODBYE_SECONDS = 0.5  # in which connections hear that the server ends
SECOND = 1000  # milliseconds, the unit of the library's options
MAX_METADATA = 8 * KIB
STREAMS = 100  # of one connection
OPTIONS = {
    "grpc.max_receive_message_length": MAX_MESSAGE,
    "grpc.http2.lookahead_bytes": STREAM_WINDOW,
    "grpc.http2.bdp_probe": 0,  # which would widen the window of every stream
    "grpc.max_metadata_size": MAX_METADATA,
    "grpc.absolute_max_metadata_size": MAX_METADATA,
    "grpc.max_concurrent_streams": STREAMS,
    # Who pings more often than this is sent away.
    "grpc.http2.min_recv_ping_interval_without_data_ms": 10 * SECOND,
    "grpc.http2.max_ping_strikes": 2,
    "grpc.keepalive_time_ms": 60 * SECOND,
    "grpc.keepalive_timeout_ms": 20 * SECOND,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.max_connection_idle_ms": 60 * SECOND,
    "grpc.max_connection_age_ms": 1800 * SECOND,
    "grpc.max_connection_age_grace_ms": 60 * SECOND,
    "grpc.server_handshake_timeout_ms": 10 * SECOND,
    "grpc.so_reuseport": 0,
}
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_OK = health_pb2.HealthCheckResponse.SERVING


class GrpcServer:
    """Answers gRPC calls on a unix socket, on the running event loop."""

    def __init__(self, answer: Answer, intake: Intake, socket: Path) -> None:
        """Answer calls whose messages ``intake`` takes in."""
        self._server = grpc.aio.server(
            options=list(OPTIONS.items()), maximum_concurrent_rpcs=intake.limits.grpc_calls
        )
        self._in_flight = _InFlight()
        self._health = health.HealthServicer()
        self._server.add_generic_rpc_handlers(
            (
                *_operations(answer, intake, self._in_flight),
                _health_check(self._health, intake),
                *_reflection(intake),
            )
        )
        self._server.add_insecure_port(f"unix:{socket}")

    async def start(self) -> None:
        """Begin to answer."""
        for service in SERVICES:
            await self._health.set(service, _OK)
        await self._server.start()

    async def drain(self, within: float) -> None:
        """Take no more calls, finish those of operations, and end; after so many seconds anyway.

        Who merely watches the health of the server, or stays on the line without a word, is not
        waited for longer than it takes to hear goodbye.
        """
        await self._health.enter_graceful_shutdown()
        stopping = asyncio.get_running_loop().create_task(self._server.stop(within))
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._in_flight.none.wait()
        await asyncio.wait((stopping,), timeout=GOODBYE_SECONDS)
        await self.stop()
        await stopping

    async def stop(self) -> None:
        """End at once."""
        await self._server.stop(None)


class _InFlight:
    """The calls of operations that are not answered yet, to the last byte."""

    def __init__(self) -> None:
        self.none = asyncio.Event()
        self.none.set()
        self._calls: set[CallContext] = set()

    def begin(self, context: CallContext) -> ExitStack:
        """See a call come, and wait for it to go; return what ends then."""
        delivery = ExitStack()
        self._calls.add(context)
        self.none.clear()
        context.add_done_callback(partial(self._end, delivery))
        return delivery

    def _end(self, delivery: ExitStack, context: CallContext) -> None:
        delivery.close()
        self._calls.discard(context)
        if not self._calls:
            self.none.set()


def _operations(answer: Answer, intake: Intake, in_flight: _InFlight) -> Iterator[object]:
    """Yield what carries out the methods of each service."""
    for service in SERVICES:
        prefix = f"/{service}/"
        handlers = {
            path.removeprefix(prefix): _handler(answer, method, intake, in_flight)
            for path, method in METHODS.items()
            if path.startswith(prefix)
        }
        yield grpc.method_handlers_generic_handler(service, handlers)


def _handler(answer: Answer, method: Method, intake: Intake, in_flight: _InFlight) -> object:
    async def handle(_: object, context: CallContext) -> bytes:
        headers = _headers(context)
        async with intake.message(context, method.operation, headers) as asked:
            delivery = in_flight.begin(context)
            answered = await answer_bytes(answer, method, asked, headers, delivery)
        if isinstance(answered, Refusal):
            return _refuse(context, answered, method.told)
        if method.told:
            context.set_trailing_metadata(method.told)
        return answered

    return grpc.stream_unary_rpc_method_handler(handle)


def _refuse(context: CallContext, refusal: Refusal, told: Sequence[tuple[str, str]] = ()) -> bytes:
    """Set the status of a call that is refused; return the message that goes with it."""
    context.set_code(_CODES[refusal.code])
    context.set_details(refusal.message)
    context.set_trailing_metadata((("grpc-status-details-bin", status_bytes(refusal)), *told))
    return b""


async def _stream(intake: Intake, context: CallContext, run: Callable[[], Awaitable[None]]) -> None:
    """Carry out a call that has many messages, unless there is no room for it."""
    try:
        async with intake.stream():
            await run()
    except Refusal as refusal:
        _refuse(context, refusal)


def _health_check(servicer: health.HealthServicer, intake: Intake) -> object:
    """Return the handlers that answer the health of a service, once or as a stream."""

    async def check(_: object, context: CallContext) -> bytes:
        asked = await _health_asked(intake, context)
        if asked is None:
            return b""
        answer = await servicer.Check(asked, context)
        data: bytes = answer.SerializeToString()
        return data

    async def watch(_: object, context: CallContext) -> None:
        asked = await _health_asked(intake, context)
        if asked is not None:
            await _stream(intake, context, lambda: servicer.Watch(asked, context))

    handlers = {
        "Check": grpc.stream_unary_rpc_method_handler(check),
        "Watch": grpc.stream_stream_rpc_method_handler(
            watch, response_serializer=health_pb2.HealthCheckResponse.SerializeToString
        ),
    }
    return grpc.method_handlers_generic_handler("grpc.health.v1.Health", handlers)


def _headers(context: CallContext) -> Mapping[str, list[str]]:
    headers: dict[str, list[str]] = defaultdict(list)
    for name, value in context.invocation_metadata():
        # Binary metadata, with names that end in ``-bin``, mean nothing to any operation.
        if isinstance(value, str):
            headers[name].append(value)
    return headers


async def _health_asked(intake: Intake, context: CallContext) -> object:
    """Return the request of a call after health, or None where the call was refused."""
    intake.begun(context)
    async with intake.open_message(context) as message:
        asked = message
    if not isinstance(asked, Refusal):
        try:
            return health_pb2.HealthCheckRequest.FromString(asked)
        except DecodeError:
            asked = invalid("request", "must be a message grpc.health.v1.HealthCheckRequest")
    _refuse(context, asked)
    return None


def _reflection(intake: Intake) -> tuple[object, ...]:
    """Return reflection of both versions, which differ in nothing but the name."""
    pool = load_pool()
    for other in (health_pb2, reflection_pb2):
        pool.AddSerializedFile(other.DESCRIPTOR.serialized_pb)
    names = (*SERVICES, "grpc.health.v1.Health", reflection.SERVICE_NAME)
    servicer = reflection.aio.ReflectionServicer(names, pool=pool)

    async def reflect(requests: object, context: CallContext) -> None:
        async def run() -> None:
            async for answer in servicer.ServerReflectionInfo(requests, context):
                await context.write(answer)

        intake.begun(context)
        await _stream(intake, context, run)

    method = grpc.stream_stream_rpc_method_handler(
        reflect,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return tuple(
        grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": method})
        for name in (reflection.SERVICE_NAME, "grpc.reflection.v1.ServerReflection")
    )
