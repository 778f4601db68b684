"""Headers of requests, and answers over HTTP, with one shape for every refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl

from reconciler.resources.call import HEADERS, ORGANIZATION_OF_ZITADEL, JsonObject
from reconciler.service.domain.refusal import Code, Refusal, always
from reconciler.service.operations.answers import error_body
from reconciler.service.operations.request import Headers
from reconciler.service.operations.texts import answer_bytes, json_bytes
from reconciler.service.scheduling.shares import UNCOUNTED
from reconciler.service.transport.asgi import Scope, Send

CONNECTION = "reconciler.connection"
"""Extension of an ASGI scope: the connection of the request; see ``intake.Connection``."""

_KNOWN = (
    *(*HEADERS.values(), ORGANIZATION_OF_ZITADEL, "authorization", "x-request-id"),
    *("content-type", "content-encoding", "content-length", "grpc-encoding", "grpc-timeout"),
)
_HEADER_NAMES = {name.encode(): name for name in _KNOWN}
RETRY_AFTER_SECONDS = 1
MAX_PAIRS = 20  # of a query or a form

RawHeaders = list[tuple[bytes, bytes]]

ALWAYS: Sequence[tuple[bytes, bytes]] = (
    (b"cache-control", b"no-store"),
    (b"pragma", b"no-cache"),
    (b"expires", b"0"),
    (b"x-content-type-options", b"nosniff"),
)
OF_JSON = ((b"content-type", b"application/json"), *ALWAYS)
HTML = (b"content-type", b"text/html; charset=utf-8")
_CHALLENGE = (b"www-authenticate", b'Bearer realm="reconciler"')
_RETRY = (b"retry-after", str(RETRY_AFTER_SECONDS).encode())
_FURTHER: Mapping[int, tuple[bytes, bytes]] = {401: _CHALLENGE, 429: _RETRY, 503: _RETRY}


_CODES: Mapping[int, Code] = {
    400: Code.INVALID_ARGUMENT,
    405: Code.UNIMPLEMENTED,
    408: Code.ABORTED,
    413: Code.RESOURCE_EXHAUSTED,
    414: Code.INVALID_ARGUMENT,
    415: Code.INVALID_ARGUMENT,
    429: Code.RESOURCE_EXHAUSTED,
    431: Code.RESOURCE_EXHAUSTED,
}


def read_headers(scope: Scope) -> dict[str, list[str]]:
    """Return every value of the headers that something reads, by lower-case name.

    Browsers and proxies send many others.
    """
    headers: dict[str, list[str]] = {}
    for raw, value in scope["headers"]:
        name = _HEADER_NAMES.get(raw)
        if name is not None:
            headers.setdefault(name, []).append(value.decode("latin-1"))
    return headers


def one(headers: Headers, name: str) -> str:
    """Return the value of a header that was given once, and otherwise nothing."""
    values = headers.get(name, ())
    return values[0].strip() if len(values) == 1 else ""


def content_type(headers: Headers) -> str:
    """Return the content type of a request without its parameters."""
    return one(headers, "content-type").partition(";")[0].strip().lower()


def read_pairs(content: bytes) -> tuple[dict[str, str], Sequence[str]]:
    """Return query parameters or the fields of a form, and the names that are given twice.

    Raises:
        ValueError: they are not ``name=value`` in UTF-8, or are too many.
    """
    pairs = parse_qsl(
        content.decode("ascii"),
        keep_blank_values=True,
        strict_parsing=True,
        errors="strict",
        max_num_fields=MAX_PAIRS,
    )
    counts = Counter(name for name, _ in pairs)
    return dict(pairs), [name for name, count in counts.items() if count > 1]


def is_grpc(scope: Scope) -> bool:
    """Return whether a request says that it is gRPC, or gRPC-web over HTTP/2."""
    return scope["http_version"] == "2" and any(
        name == b"content-type" and value.startswith(b"application/grpc")
        for name, value in scope["headers"]
    )


class HttpRefusal(Refusal):
    """A refusal for which HTTP has a status of its own, by that status."""

    def __init__(self, status: int, message: str, reason: str, allow: str = "") -> None:
        super().__init__(_CODES[status], message, reason)
        self.http_status = status
        self.allow = allow


class HttpAnswer(NamedTuple):
    """An answer, ready to be sent."""

    status: int
    headers: RawHeaders
    body: bytes


def answer_of(status: int, body: bytes, *headers: tuple[bytes, bytes]) -> HttpAnswer:
    """Return an answer with its length beside these headers."""
    return HttpAnswer(status, [*headers, (b"content-length", str(len(body)).encode())], body)


def json_answer(answer: JsonObject | Refusal, body: bytes = b"") -> HttpAnswer:
    """Return the answer of an operation, or its refusal, as JSON; ``body`` if it is encoded."""
    if not isinstance(answer, Refusal):
        return answer_of(200, body or answer_bytes(answer), *OF_JSON)
    status = answer.http_status
    made = answer_of(status, json_bytes(error_body(answer)), *OF_JSON, *allowed(answer))
    if status in _FURTHER:
        made.headers.append(_FURTHER[status])
    return made


def allowed(refusal: Refusal) -> RawHeaders:
    """Return the header with the verbs of an address, of a refusal of another verb."""
    if isinstance(refusal, HttpRefusal) and refusal.allow:
        return [(b"allow", refusal.allow.encode())]
    return []


unknown_address = always(Code.NOT_FOUND, "address.unknown", "there is nothing at this address")


def wrong_verb(verbs: Iterable[str]) -> Refusal:
    """Refuse a verb that an address does not have; one with GET has HEAD, too."""
    allow = {*verbs, "HEAD"} if "GET" in verbs else verbs
    rule = "this address has no such verb"
    return HttpRefusal(405, rule, "verb.unknown", ", ".join(sorted(allow)))


async def send_answer(send: Send, answer: HttpAnswer, request_id: str = "") -> None:
    """Send an answer, and wait until the network has taken a long one, or the caller went away.

    The HTTP server does not wait after the last piece of a body, so that one is empty.
    """
    headers = answer.headers
    if request_id:
        headers.append((b"x-request-id", request_id.encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    is_long = len(answer.body) > UNCOUNTED
    await send({"type": "http.response.body", "body": answer.body, "more_body": is_long})
    if is_long:
        await send({"type": "http.response.body", "body": b""})


def raw_refusal(refusal: Refusal, request_id: str) -> bytes:
    """Return a whole HTTP response that refuses and ends its connection."""
    answer = json_answer(refusal)
    ends = ((b"x-request-id", request_id.encode()), (b"connection", b"close"))
    lines = [b"HTTP/1.1 %d %s" % (answer.status, HTTPStatus(answer.status).phrase.encode())]
    lines += [b"%s: %s" % header for header in (*answer.headers, *ends)]
    return b"\r\n".join([*lines, b"", answer.body])
