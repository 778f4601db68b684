"""Unary calls over gRPC and gRPC-web: one intake, one deadline, one table of errors.

An ASGI application. The two wires differ in how an answer is written: gRPC, over HTTP/2 only, has
the trailers of HTTP; gRPC-web, as browsers speak it over any HTTP, has them in the body. Any origin
may call gRPC-web: what a caller may do depends on its token alone, which no browser adds by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from reconciler.resources.call import HEADERS, ORGANIZATION_OF_ZITADEL, JsonObject
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.dispatch import FAILED, Incoming, Received
from reconciler.service.operations.request import Headers, bearer_token
from reconciler.service.operations.table import needs_token
from reconciler.service.transport.asgi import ASGIApp, Message, Receive, Scope, Send
from reconciler.service.transport.grpc_messages import (
    ACCEPTED_ENCODINGS,
    PLAIN,
    TRAILERS,
    MessageBody,
    Pairs,
    frame,
    message_of_call,
    read_timeout,
    trailers,
)
from reconciler.service.transport.http_messages import (
    ALWAYS,
    HttpAnswer,
    RawHeaders,
    answer_of,
    content_type,
    one,
    read_headers,
    send_answer,
)
from reconciler.service.transport.intake import CallerLeftError, Connection, Intake, connection_of
from reconciler.service.transport.observer import Answer, Observer
from reconciler.service.transport.protobuf import METHODS, Method, encoding_of, request_fields

LOG = logging.getLogger("reconciler.service")
GRPC_TYPES = frozenset({"application/grpc", "application/grpc+proto"})
WEB_TYPES = frozenset({"application/grpc-web", "application/grpc-web+proto"})
ALLOWED_HEADERS = (
    "accept",
    "accept-language",
    "authorization",
    "content-type",
    "grpc-accept-encoding",
    "grpc-encoding",
    "grpc-timeout",
    "origin",
    "x-grpc-web",
    "x-user-agent",
    *HEADERS.values(),
    ORGANIZATION_OF_ZITADEL,
)
EXPOSED_HEADERS = ("grpc-status", "grpc-message", "grpc-status-details-bin")
_ANY_ORIGIN = {"access-control-allow-origin": "*"}
_PREFLIGHT = {
    **_ANY_ORIGIN,
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": ", ".join(ALLOWED_HEADERS),
    "access-control-max-age": "7200",
}
_WEB_ANSWER = {
    **_ANY_ORIGIN,
    "access-control-expose-headers": ", ".join(EXPOSED_HEADERS),
    "grpc-accept-encoding": ACCEPTED_ENCODINGS,
}
_UNKNOWN = Refusal(Code.UNIMPLEMENTED, "there is no such method", "operation.unknown")


class GrpcCalls:
    """Answers unary calls, and the questions that browsers ask before them."""

    def __init__(
        self,
        answer: Answer,
        observer: Observer,
        intake: Intake,
        streams: Mapping[str, ASGIApp],
    ) -> None:
        """Answer calls of operations; ``streams`` answer others over gRPC, by their paths."""
        self._answer = answer
        self._observer = observer
        self._intake = intake
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = read_headers(scope)
        kind = content_type(headers)
        if kind in GRPC_TYPES and scope["http_version"] == "2":
            stream = self._streams.get(scope["path"])
            if stream is not None:
                await stream(scope, receive, send)
            else:
                await self._call(scope, headers, receive, send, kind)
        elif scope["method"] == "OPTIONS":
            await _respond(send, 204, _PREFLIGHT)
        elif scope["method"] != "POST":
            await _respond(send, 405, {**_ANY_ORIGIN, "allow": "OPTIONS, POST"})
        elif kind not in WEB_TYPES or "content-encoding" in headers:
            await _respond(send, 415, {**_ANY_ORIGIN, "accept-post": ", ".join(WEB_TYPES)})
        else:
            await self._call(scope, headers, receive, send, kind)

    async def _call(
        self, scope: Scope, headers: Headers, receive: Receive, send: Send, kind: str
    ) -> None:
        method = METHODS.get(scope["path"])
        if method is None:
            await _send(send, kind, _UNKNOWN)
            return
        connection = connection_of(scope)
        wire = "grpc-web" if kind in WEB_TYPES else "grpc"
        with (
            self._observer.call(wire, method.operation, headers) as seen,
            ExitStack() as delivery,
        ):
            try:
                received = await self._received(method, headers, receive, connection, delivery)
            except CallerLeftError:
                return
            except TimeoutError:
                await _send(send, kind, None, method.metadata)
                return
            seen.note(received)
            if received.caller:
                connection.judged(is_known=True)
            answer = received.answer
            answered = answer if isinstance(answer, Refusal) else received.body
            await _send(send, kind, answered, method.metadata)

    async def _received(
        self,
        method: Method,
        headers: Headers,
        receive: Receive,
        connection: Connection,
        delivery: ExitStack,
    ) -> Received:
        """Return the answer. Headers are judged before the message is read.

        Raises:
            CallerLeftError: the request has no end.
            TimeoutError: the deadline of the call has passed.
        """
        has_token = needs_token(method.operation)
        try:
            if has_token:
                bearer_token(headers)
            async with asyncio.timeout(read_timeout(one(headers, "grpc-timeout"))):
                return await self._intake.take(
                    MessageBody(headers),
                    receive,
                    connection,
                    lambda body: self._carried_out(method, body, headers, connection, delivery),
                    needs_token=has_token,
                )
        except Refusal as refusal:
            return Received("", refusal)

    async def _carried_out(
        self,
        method: Method,
        body: bytes | None,
        headers: Headers,
        connection: Connection,
        delivery: ExitStack,
    ) -> Received:
        """Return the answer with a message as its body, or the refusal. Nothing is raised."""
        fields: JsonObject | Refusal
        try:
            fields = request_fields(method, message_of_call(body, headers))
        except Refusal as refusal:  # answered only to callers who may know
            fields = refusal
        encode = encoding_of(method)
        received = await self._answer(
            Incoming(
                method.operation,
                fields,
                headers,
                encode,
                in_parts=True,
                delivery=delivery,
                drop=connection.drop,
            )
        )
        if isinstance(received.answer, Refusal):
            return received
        try:
            return received._replace(body=received.body or encode(received.answer))
        except Exception:  # a defect of ours must not show itself
            LOG.exception("an answer does not fit its message")
            return Received(received.caller, FAILED)


def start_of_grpc(kind: str, ends: Pairs | None = None) -> Message:
    """Return the start of an answer of gRPC: ``ends`` are its trailers, if it has nothing else."""
    headers = [
        (b"content-type", kind.encode()),
        (b"grpc-accept-encoding", ACCEPTED_ENCODINGS.encode()),
        *raw(ends or []),
    ]
    return {
        "type": "http.response.start",
        "status": 200,
        "headers": headers,
        "trailers": ends is None,
    }


def raw(pairs: Pairs) -> RawHeaders:
    """Return headers as ASGI has them."""
    return [(name.encode(), value.encode("latin-1")) for name, value in pairs]


async def _send(
    send: Send,
    kind: str,
    answered: bytes | Refusal | None,
    metadata: Sequence[tuple[str, str]] = (),
) -> None:
    """Write an answer: a message and trailers, or trailers alone.

    The trailers of gRPC-web are a frame of the body.
    """
    ends = trailers(answered, metadata)
    message = frame(PLAIN, answered) if isinstance(answered, bytes) else b""
    if kind in WEB_TYPES:
        lines = "".join(f"{name}:{value}\r\n" for name, value in ends)
        content = message + frame(TRAILERS, lines.encode())
        await _respond(send, 200, {**_WEB_ANSWER, "content-type": kind}, content)
        return
    await send(start_of_grpc(kind, None if message else ends))
    await send({"type": "http.response.body", "body": message})
    if message:
        await send({"type": "http.response.trailers", "headers": raw(ends)})


async def _respond(
    send: Send, status: int, headers: Mapping[str, str], content: bytes = b""
) -> None:
    made = [*ALWAYS, *raw([*headers.items()])]
    # An answer of status 204 has no content and states no length (RFC 9110, 8.6).
    is_empty = status == 204
    answer = HttpAnswer(status, made, b"") if is_empty else answer_of(status, content, *made)
    await send_answer(send, answer)
