"""gRPC-web, as browsers speak it: unary calls over HTTP/1.1, on the paths of gRPC.

An ASGI application. Any origin may call: what a caller may do depends on its token alone, which
no browser adds by itself.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from starlette.types import Receive, Scope, Send

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.transport.calls import MAX_MESSAGE, answer_bytes, too_large
from reconciler.service.transport.grpc_web_frames import (
    ACCEPTED_ENCODINGS,
    read_message,
    read_timeout,
    write_answer,
    write_refusal,
    write_too_late,
)
from reconciler.service.transport.http_answers import ALWAYS
from reconciler.service.transport.messages import METHODS
from reconciler.service.transport.observer import Answer

FRAME_HEAD = 5
CONTENT_TYPES = {"application/grpc-web", "application/grpc-web+proto"}
ALLOWED_HEADERS = (
    "accept",
    "accept-language",
    "authorization",
    "content-type",
    "grpc-accept-encoding",
    "grpc-encoding",
    "grpc-timeout",
    "idempotency-key",
    "if-match",
    "origin",
    "x-grpc-web",
    "x-reconciler-context",
    "x-reconciler-custody",
    "x-reconciler-lease",
    "x-service-orgid",
    "x-user-agent",
    "x-zitadel-orgid",
)
EXPOSED_HEADERS = ("grpc-status", "grpc-message", "grpc-status-details-bin")
_ANY_ORIGIN = {"access-control-allow-origin": "*"}
_PREFLIGHT = {
    **_ANY_ORIGIN,
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": ", ".join(ALLOWED_HEADERS),
    "access-control-max-age": "7200",
}
_ANSWER = {
    **_ANY_ORIGIN,
    "access-control-expose-headers": ", ".join(EXPOSED_HEADERS),
    "grpc-accept-encoding": ACCEPTED_ENCODINGS,
}

Headers = Mapping[str, list[str]]


class CallerLeftError(Exception):
    """The caller went away before it had said everything."""


class GrpcWeb:
    """Answers gRPC-web calls, and the questions that browsers ask before them."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = _headers(scope)
        content_type = _content_type(headers)
        if scope["method"] == "OPTIONS":
            await _respond(send, 204, _PREFLIGHT)
        elif scope["method"] != "POST":
            await _respond(send, 405, {**_ANY_ORIGIN, "allow": "OPTIONS, POST"})
        elif content_type not in CONTENT_TYPES or "content-encoding" in headers:
            await _respond(send, 415, {**_ANY_ORIGIN, "accept-post": ", ".join(CONTENT_TYPES)})
        else:
            try:
                body = await _body(receive)
            except CallerLeftError:
                return
            content = await self._answered(scope["path"], headers, body)
            await _respond(send, 200, {**_ANSWER, "content-type": content_type}, content)

    async def _answered(self, path: str, headers: Headers, body: bytes | Refusal) -> bytes:
        method = METHODS.get(path)
        if method is None:
            unknown = Refusal(Code.UNIMPLEMENTED, "there is no such method", "operation.unknown")
            return write_refusal(unknown)
        try:
            seconds = read_timeout(_one(headers, "grpc-timeout"))
            if seconds == 0:
                return write_too_late()
            async with asyncio.timeout(seconds):
                answered = await answer_bytes(
                    self._answer, method, _message(body, headers), headers
                )
        except TimeoutError:
            return write_too_late()
        except Refusal as refusal:
            answered = refusal
        return write_refusal(answered) if isinstance(answered, Refusal) else write_answer(answered)


def _message(body: bytes | Refusal, headers: Headers) -> bytes | Refusal:
    """Return the message of a body, or why there is none."""
    if isinstance(body, Refusal):
        return body
    try:
        return read_message(body, _one(headers, "grpc-encoding").lower())
    except Refusal as refusal:
        return refusal


async def _body(receive: Receive) -> bytes | Refusal:
    """Take in a whole body; one that is too large is read to its end, and forgotten.

    Raises:
        CallerLeftError: it has no end.
    """
    pieces: list[bytes] = []
    length = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise CallerLeftError
        piece = event.get("body", b"")
        length += len(piece)
        if length <= MAX_MESSAGE + FRAME_HEAD:
            pieces.append(piece)
        if not event.get("more_body", False):
            return b"".join(pieces) if length <= MAX_MESSAGE + FRAME_HEAD else too_large()


async def _respond(
    send: Send, status: int, headers: Mapping[str, str], content: bytes = b""
) -> None:
    raw = [*ALWAYS, *((name.encode(), value.encode("latin-1")) for name, value in headers.items())]
    if status != 204:
        raw.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": content})


def _headers(scope: Scope) -> Headers:
    headers: dict[str, list[str]] = defaultdict(list)
    for name, value in scope["headers"]:
        headers[name.decode("latin-1")].append(value.decode("latin-1"))
    return dict(headers)


def _content_type(headers: Headers) -> str:
    return _one(headers, "content-type").split(";")[0].strip().lower()


def _one(headers: Headers, name: str) -> str:
    values = headers.get(name, ())
    return values[0].strip() if len(values) == 1 else ""
