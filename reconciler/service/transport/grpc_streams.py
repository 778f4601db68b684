"""Health and reflection of gRPC: calls that need no token, some of them with many messages.

They have bounds of their own: how many there are at one time, how long they last, and how many
messages they have, of which length.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.scheduling.batching import ENDING
from reconciler.service.scheduling.shares import Shares, too_many_calls
from reconciler.service.transport.asgi import ASGIApp, Receive, Scope, Send
from reconciler.service.transport.grpc_calls import raw, start_of_grpc
from reconciler.service.transport.grpc_messages import (
    HEAD,
    PLAIN,
    MessageBody,
    frame,
    message_of_call,
    read_message,
    read_timeout,
    too_large,
    trailers,
)
from reconciler.service.transport.http_messages import content_type, one, read_headers
from reconciler.service.transport.intake import CallerLeftError, Intake, connection_of, too_slow
from reconciler.service.transport.limits import KIB
from reconciler.service.transport.protobuf import POOL, SERVICES, message_class, parsed

HEALTH = "grpc.health.v1"
REFLECTION = ("grpc.reflection.v1", "grpc.reflection.v1alpha")
LISTED = (*SERVICES, f"{HEALTH}.Health", *(f"{name}.ServerReflection" for name in REFLECTION))
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3  # HealthCheckResponse.ServingStatus
MOST_ASKED = 1000  # questions of one call of reflection
LONGEST_ASKED = 4 * KIB
OK = b""
UNKNOWN_SERVICE = Refusal(Code.NOT_FOUND, "there is no such service", "service.unknown")


class GrpcStreams:
    """Answers health and reflection.

    Attributes:
        apps: What answers each method, by its path.
    """

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._places = Shares(intake.limits.http2_open, intake.limits.http2_open_of_one)
        self._timeouts: set[asyncio.Timeout] = set()
        self._is_ending = False
        handlers = {f"/{HEALTH}.Health/Check": self._check, f"/{HEALTH}.Health/Watch": self._watch}
        for package in REFLECTION:
            path = f"/{package}.ServerReflection/ServerReflectionInfo"
            handlers[path] = partial(self._reflect, package)
        self.apps: Mapping[str, ASGIApp] = {
            path: partial(self._answer, handle) for path, handle in handlers.items()
        }

    def end(self) -> None:
        """End all streams: the server stops."""
        self._is_ending = True
        now = asyncio.get_running_loop().time()
        for timeout in self._timeouts:
            timeout.reschedule(now)

    async def _answer(
        self,
        handle: Callable[[_Call], Awaitable[None]],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Carry out one call, and write how it ended."""
        call = _Call(self._intake, scope, receive, send)
        try:
            async with asyncio.timeout(read_timeout(one(call.headers, "grpc-timeout"))):
                await handle(call)
                await call.end(OK)
        except CallerLeftError:
            return
        except TimeoutError:
            await call.end(None)
        except Refusal as refusal:
            await call.end(refusal)

    async def _check(self, call: _Call) -> None:
        status = self._status_of(await call.health_asked())
        if status == SERVICE_UNKNOWN:
            raise UNKNOWN_SERVICE
        await call.write(_health(status))

    async def _watch(self, call: _Call) -> None:
        status = self._status_of(await call.health_asked())
        async with self._stream(call):
            await call.write(_health(status))
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self._is_ending and status == SERVING:
                    await call.write(_health(NOT_SERVING))
                raise

    def _status_of(self, service: str) -> int:
        if service and service not in SERVICES:
            return SERVICE_UNKNOWN
        return NOT_SERVING if self._is_ending else SERVING

    async def _reflect(self, package: str, call: _Call) -> None:
        question = message_class(f"{package}.ServerReflectionRequest")
        async with self._stream(call):
            async for asked in call.messages():
                await call.write(answer_reflection(package, parsed(question, asked)))
                await asyncio.sleep(0)  # many questions may have come at once

    @asynccontextmanager
    async def _stream(self, call: _Call) -> AsyncIterator[None]:
        """Give a call its place while the block runs.

        Raises:
            Refusal: there is no room, it takes too long, or the server ends.
        """
        with self._places.place(call.connection.address.encode()):
            try:
                async with asyncio.timeout(self._intake.limits.stream_seconds) as timeout:
                    self._timeouts.add(timeout)
                    yield
            except TimeoutError:
                raise (ENDING if self._is_ending else too_slow()) from None
            finally:
                self._timeouts.discard(timeout)


class _Call:
    """One call while it is answered."""

    def __init__(self, intake: Intake, scope: Scope, receive: Receive, send: Send) -> None:
        self.headers = read_headers(scope)
        self._intake = intake
        self.connection = connection_of(scope)
        self._receive = receive
        self._send = send
        self._kind = content_type(self.headers)
        self._has_begun = False

    async def health_asked(self) -> str:
        """Return the service whose health is asked for.

        Raises:
            Refusal: the message is not one of health.
            CallerLeftError: the request has no end.
        """

        async def go_on(body: bytes | None) -> bytes:
            return message_of_call(body, self.headers)

        body = MessageBody(self.headers, LONGEST_ASKED)
        asked = await self._intake.take(
            body, self._receive, self.connection, go_on, needs_token=False
        )
        service: str = parsed(message_class(f"{HEALTH}.HealthCheckRequest"), asked).service
        return service

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield each message as it comes.

        Raises:
            Refusal: there are too many, or one is too long.
            CallerLeftError: the request has no end.
        """
        self.connection.judged(is_known=False)
        encoding = one(self.headers, "grpc-encoding").lower()
        held, count, more = bytearray(), 0, True
        while more:
            event = await self._receive()
            if event["type"] != "http.request":
                raise CallerLeftError
            held += event.get("body", b"")
            more = event.get("more_body", False)
            while (message := _next_of(held, encoding)) is not None:
                count += 1
                if count > MOST_ASKED:
                    raise too_many_calls()
                yield message

    async def write(self, message: Message) -> None:
        if not self._has_begun:
            self._has_begun = True
            await self._send(start_of_grpc(self._kind))
        content = frame(PLAIN, message.SerializeToString())
        await self._send({"type": "http.response.body", "body": content, "more_body": True})

    async def end(self, how: bytes | Refusal | None) -> None:
        """Send the trailers: of a call that went well, was refused, or is too late (None)."""
        if not self._has_begun:
            await self._send(start_of_grpc(self._kind, trailers(how)))
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self._send({"type": "http.response.trailers", "headers": raw(trailers(how))})


def _next_of(held: bytearray, encoding: str) -> bytes | None:
    """Take the next message from what has come, if it is whole.

    Raises:
        Refusal: it is too long, or not compressed in a known way.
    """
    if len(held) < HEAD.size:
        return None
    _, length = HEAD.unpack_from(held)
    if length > LONGEST_ASKED:
        raise too_large()
    end = HEAD.size + length
    if len(held) < end:
        return None
    message = read_message(bytes(held[:end]), encoding, LONGEST_ASKED)
    del held[:end]
    return message


def _health(status: int) -> Message:
    make: Any = message_class(f"{HEALTH}.HealthCheckResponse")
    message: Message = make(status=status)
    return message


def answer_reflection(package: str, asked: Any) -> Message:
    """Return the answer to a question of reflection, of one of its two packages."""
    message: Any = message_class(f"{package}.ServerReflectionResponse")()
    message.valid_host = asked.host
    message.original_request.CopyFrom(asked)
    which = asked.WhichOneof("message_request")
    try:
        if which == "list_services":
            for name in LISTED:
                message.list_services_response.service.add(name=name)
        elif which == "all_extension_numbers_of_type":
            found = POOL.FindMessageTypeByName(asked.all_extension_numbers_of_type)
            message.all_extension_numbers_response.base_type_name = found.full_name
        elif which is not None:
            file = _file_asked(which, asked)
            message.file_descriptor_response.file_descriptor_proto.extend(_with_imports(file))
        else:
            _fail(message, Code.INVALID_ARGUMENT, "there is no question")
    except KeyError:
        _fail(message, Code.NOT_FOUND, "there is no such file, type or extension")
    made: Message = message
    return made


def _fail(message: Any, code: Code, text: str) -> None:
    message.error_response.error_code = int(code)
    message.error_response.error_message = text


def _file_asked(which: str, asked: Any) -> FileDescriptor:
    """Return the file that a question is about.

    Raises:
        KeyError: there is no such file or symbol. No message of ours has extensions.
    """
    if which == "file_by_filename":
        return POOL.FindFileByName(asked.file_by_filename)
    if which == "file_containing_symbol":
        return POOL.FindFileContainingSymbol(asked.file_containing_symbol)
    raise KeyError(which)


@cache
def _with_imports(file: FileDescriptor) -> tuple[bytes, ...]:
    """Return a file and all files that it imports, each once, as messages."""
    found: dict[str, bytes] = {}
    waiting = [file]
    while waiting:
        each = waiting.pop()
        if each.name not in found:
            found[each.name] = each.serialized_pb
            waiting.extend(each.dependencies)
    return tuple(found.values())
