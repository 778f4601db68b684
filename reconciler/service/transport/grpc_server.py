"""The gRPC face: every operation of the table that has a method, health and reflection.

It listens on a private unix socket; connections from outside are spliced to it (``splice``).
Importing this module loads the gRPC library, which only a server needs.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health
from grpc_reflection.v1alpha import reflection, reflection_pb2

from reconciler.service.domain.refusal import Refusal
from reconciler.service.transport.calls import (
    MAX_MESSAGE,
    answer_bytes,
    status_bytes,
)
from reconciler.service.transport.messages import METHODS, SERVICES, Method, load_pool
from reconciler.service.transport.observer import Answer

GOODBYE = 0.5
SECOND = 1000
MAX_METADATA = 8 * 1024
OPTIONS = {
    "grpc.max_receive_message_length": MAX_MESSAGE,
    "grpc.max_metadata_size": MAX_METADATA,
    "grpc.absolute_max_metadata_size": MAX_METADATA,
    "grpc.max_concurrent_streams": 100,
    # Who pings more often than this is sent away.
    "grpc.http2.min_recv_ping_interval_without_data_ms": 10 * SECOND,
    "grpc.http2.max_ping_strikes": 2,
    "grpc.keepalive_time_ms": 60 * SECOND,
    "grpc.keepalive_timeout_ms": 20 * SECOND,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.max_connection_idle_ms": 300 * SECOND,
    "grpc.max_connection_age_ms": 1800 * SECOND,
    "grpc.max_connection_age_grace_ms": 60 * SECOND,
    "grpc.server_handshake_timeout_ms": 10 * SECOND,
    "grpc.so_reuseport": 0,
}
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_OK = health_pb2.HealthCheckResponse.SERVING


class GrpcServer:
    """Answers gRPC calls on a unix socket, on the running event loop."""

    def __init__(self, answer: Answer, socket: Path) -> None:
        self._server = grpc.aio.server(options=list(OPTIONS.items()))
        self._in_flight = _InFlight()
        self._server.add_generic_rpc_handlers(tuple(_operations(answer, self._in_flight)))
        self._health = health.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._server.add_generic_rpc_handlers(_reflection())
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
        await asyncio.wait((stopping,), timeout=GOODBYE)
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
        self._calls: set[Any] = set()

    def begin(self, context: Any) -> None:
        """See a call come, and wait for it to go."""
        self._calls.add(context)
        self.none.clear()
        context.add_done_callback(self._end)

    def _end(self, context: Any) -> None:
        self._calls.discard(context)
        if not self._calls:
            self.none.set()


def _operations(answer: Answer, in_flight: _InFlight) -> Iterator[Any]:
    """Yield what carries out the methods of each service."""
    for service in SERVICES:
        prefix = f"/{service}/"
        handlers = {
            path.removeprefix(prefix): _handler(answer, method, in_flight)
            for path, method in METHODS.items()
            if path.startswith(prefix)
        }
        yield grpc.method_handlers_generic_handler(service, handlers)


def _handler(answer: Answer, method: Method, in_flight: _InFlight) -> Any:
    async def handle(asked: bytes, context: Any) -> bytes:
        in_flight.begin(context)
        answered = await answer_bytes(answer, method, asked, _headers(context))
        if isinstance(answered, Refusal):
            context.set_code(_CODES[answered.code])
            context.set_details(answered.message)
            context.set_trailing_metadata((("grpc-status-details-bin", status_bytes(answered)),))
            return b""
        return answered

    return grpc.unary_unary_rpc_method_handler(handle)


def _headers(context: Any) -> Mapping[str, list[str]]:
    headers: dict[str, list[str]] = defaultdict(list)
    for name, value in context.invocation_metadata():
        if isinstance(value, str):
            headers[name].append(value)
    return headers


def _reflection() -> tuple[Any, ...]:
    """Return reflection of both versions, which differ in nothing but the name."""
    pool = load_pool()
    for other in (health_pb2, reflection_pb2):
        pool.AddSerializedFile(other.DESCRIPTOR.serialized_pb)
    names = (*SERVICES, "grpc.health.v1.Health", reflection.SERVICE_NAME)
    servicer = reflection.aio.ReflectionServicer(names, pool=pool)
    method = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return tuple(
        grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": method})
        for name in (reflection.SERVICE_NAME, "grpc.reflection.v1.ServerReflection")
    )
