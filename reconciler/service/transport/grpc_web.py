"""gRPC-web, as browsers speak it: unary calls over HTTP/1.1, on the paths of gRPC.

An ASGI application. Any origin may call: what a caller may do depends on its token alone, which
no browser adds by itself.
"""

from __future__ import annotations

import asyncio
import re
import struct
import zlib
from base64 import b64encode
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from reconciler.service.domain.refusal import Code, Refusal, invalid
from reconciler.service.operations.request import Headers, bearer_token
from reconciler.service.operations.table import needs_token
from reconciler.service.transport.admission import too_large
from reconciler.service.transport.http_messages import (
    ALWAYS,
    Bodies,
    CallerLeftError,
    HttpAnswer,
    send_answer,
)
from reconciler.service.transport.limits import MAX_MESSAGE
from reconciler.service.transport.observer import Answer
from reconciler.service.transport.protobuf import METHODS, Method, answer_bytes, status_bytes

OK = 0
DEADLINE_EXCEEDED = 4
ACCEPTED_ENCODINGS = "gzip"
# Head of a frame: a byte of flags, and the length of the content, big-endian. For instance,
# ``00 00000003`` and three bytes are a message of three bytes that is not compressed.
_HEAD = struct.Struct(">BI")
_PLAIN, _COMPRESSED, _TRAILERS = 0x00, 0x01, 0x80
# 16 asks zlib for the head and the checksum of gzip, and for no other format.
_GZIP_ONLY = 16 + zlib.MAX_WBITS
# ``grpc-timeout`` as gRPC writes it: ``250m`` is a quarter of a second, ``2M`` are two minutes.
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])", re.ASCII)
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_LONGEST = MAX_MESSAGE + 5  # with the head of its frame
_SHOWN = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
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


class GrpcWeb:
    """Answers gRPC-web calls, and the questions that browsers ask before them."""

    def __init__(self, answer: Answer, bodies: Bodies) -> None:
        self._answer = answer
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = _headers(scope)
        content_type = _one(headers, "content-type").split(";")[0].strip().lower()
        if scope["method"] == "OPTIONS":
            await _respond(send, 204, _PREFLIGHT)
        elif scope["method"] != "POST":
            await _respond(send, 405, {**_ANY_ORIGIN, "allow": "OPTIONS, POST"})
        elif content_type not in CONTENT_TYPES or "content-encoding" in headers:
            await _respond(send, 415, {**_ANY_ORIGIN, "accept-post": ", ".join(CONTENT_TYPES)})
        else:
            with ExitStack() as delivery:
                try:
                    content = await self._content(scope["path"], headers, receive, delivery)
                except CallerLeftError:
                    return
                await _respond(send, 200, {**_ANSWER, "content-type": content_type}, content)

    async def _content(
        self, path: str, headers: Headers, receive: Receive, delivery: ExitStack
    ) -> bytes:
        """Return the answer as bytes. What headers tell is judged before the body is read.

        Raises:
            CallerLeftError: the request has no end.
        """
        method = METHODS.get(path)
        if method is None:
            unknown = Refusal(Code.UNIMPLEMENTED, "there is no such method", "operation.unknown")
            return write_refusal(unknown)
        try:
            if needs_token(method.operation):
                bearer_token(headers)
            return await self._bodies.take(
                headers,
                receive,
                _LONGEST,
                lambda body: self._answered(method, headers, body, delivery),
            )
        except Refusal as refusal:
            return await self._answered(method, headers, refusal, delivery)

    async def _answered(
        self, method: Method, headers: Headers, body: bytes | Refusal | None, delivery: ExitStack
    ) -> bytes:
        try:
            seconds = read_timeout(_one(headers, "grpc-timeout"))
            if seconds == 0:
                return write_too_late()
            async with asyncio.timeout(seconds):
                answered = await answer_bytes(
                    self._answer, method, _message(body, headers), headers, delivery
                )
        except TimeoutError:
            return write_too_late()
        except Refusal as refusal:
            answered = refusal
        if isinstance(answered, Refusal):
            return write_refusal(answered, method.told)
        return write_answer(answered, method.told)


def _message(body: bytes | Refusal | None, headers: Headers) -> bytes | Refusal:
    """Return the message of a body, or the refusal of a body without one."""
    if body is None:
        return too_large()
    if isinstance(body, Refusal):
        return body
    try:
        return read_message(body, _one(headers, "grpc-encoding").lower())
    except Refusal as refusal:
        return refusal


async def _respond(
    send: Send, status: int, headers: Mapping[str, str], content: bytes = b""
) -> None:
    raw = [*ALWAYS, *((name.encode(), value.encode("latin-1")) for name, value in headers.items())]
    # An answer of status 204 has no content and states no length (RFC 9110, 8.6).
    if status != 204:
        raw.append((b"content-length", str(len(content)).encode()))
    await send_answer(send, HttpAnswer(status, raw, content))


def _headers(scope: Scope) -> Headers:
    headers: dict[str, list[str]] = defaultdict(list)
    for name, value in scope["headers"]:
        headers[name.decode("latin-1")].append(value.decode("latin-1"))
    return dict(headers)


def _one(headers: Headers, name: str) -> str:
    values = headers.get(name, ())
    return values[0].strip() if len(values) == 1 else ""


def read_message(body: bytes, encoding: str) -> bytes:
    """Return the one message that a request has.

    Raises:
        Refusal: there is not exactly one, it is too large, or compressed in an unknown way.
    """
    if len(body) < _HEAD.size:
        raise _malformed("must begin with a whole frame head")
    flag, length = _HEAD.unpack_from(body)
    if flag not in {_PLAIN, _COMPRESSED}:
        raise _malformed("must be a message, plain or compressed")
    # Before the length is compared: of two faults, the caller reads the one that it can act on.
    if length > MAX_MESSAGE:
        raise too_large()
    if length != len(body) - _HEAD.size:
        raise _malformed("must be one message, as long as its frame says, and nothing else")
    message = body[_HEAD.size :]
    return message if flag == _PLAIN else _decompressed(message, encoding)


def write_answer(message: bytes, told: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return an answer and the trailers that say that all went well, with further metadata."""
    return _frame(_PLAIN, message) + _trailers(OK, "", told=told)


def write_refusal(refusal: Refusal, told: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return the trailers of a refusal, with further metadata."""
    # gRPC sends headers whose names end in ``-bin`` in base64, without padding.
    details = b64encode(status_bytes(refusal)).decode().rstrip("=")
    return _trailers(refusal.code, refusal.message, details, told)


def write_too_late() -> bytes:
    """Return the trailers of a call whose time ran out."""
    return _trailers(DEADLINE_EXCEEDED, "the deadline of the call has passed")


def read_timeout(text: str) -> float | None:
    """Return the seconds that a caller gives a call, or None if it gives no limit.

    Raises:
        Refusal: it says something else.
    """
    if not text:
        return None
    found = _TIMEOUT.fullmatch(text)
    if found is None:
        raise invalid("grpc-timeout", "must be up to eight digits and one of H, M, S, m, u, n")
    return int(found[1]) * _UNITS[found[2]]


def _decompressed(message: bytes, encoding: str) -> bytes:
    if encoding in {"", "identity"}:
        raise _malformed("must not say that it is compressed where grpc-encoding says it is not")
    if encoding != "gzip":
        raise Refusal(
            Code.UNIMPLEMENTED,
            f"a message may be compressed with {ACCEPTED_ENCODINGS} only",
            "message.encoding",
        )
    reader = zlib.decompressobj(_GZIP_ONLY)
    try:
        # One byte more than allowed tells a message that is too large from one at the limit. No
        # more is held, however much a few compressed bytes stand for.
        plain = reader.decompress(message, MAX_MESSAGE + 1)
    except zlib.error:
        raise _malformed("must be compressed as grpc-encoding says") from None
    if len(plain) > MAX_MESSAGE:
        raise too_large()
    if not reader.eof or reader.unused_data:
        raise _malformed("must be compressed as a whole, with nothing after it")
    return plain


def _malformed(rule: str) -> Refusal:
    return invalid("frame", rule)


def _trailers(
    code: int, message: str, details: str = "", told: Sequence[tuple[str, str]] = ()
) -> bytes:
    lines = [f"grpc-status:{int(code)}"]
    if message:
        lines.append(f"grpc-message:{percent_encoded(message)}")
    if details:
        lines.append(f"grpc-status-details-bin:{details}")
    lines += [f"{name}:{value}" for name, value in told]
    return _frame(_TRAILERS, "".join(f"{line}\r\n" for line in lines).encode())


def percent_encoded(message: str) -> str:
    """Return a text as ``grpc-message`` carries it: printable ASCII but the percent sign."""
    return quote(message, safe=_SHOWN, errors="replace")


def _frame(flag: int, content: bytes) -> bytes:
    return _HEAD.pack(flag, len(content)) + content
