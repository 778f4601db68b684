"""Messages over HTTP: the bodies of requests, and answers, with one shape for every refusal.

A body is taken in only from callers, and only while there is room.

A small body is read at once: connections are counted, so that all small bodies together are
bounded, and the call itself judges the token. Before a larger one the token is judged and a
place in the budget is taken; until then the caller is not read from. A small body that is dense
needs a place, too: as objects it is longer than the sum of memory has for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple, TypeVar

from starlette.types import Receive, Send

from reconciler.resources.call import JsonObject
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.answers import error_body
from reconciler.service.operations.request import Headers
from reconciler.service.operations.texts import answer_bytes, json_bytes
from reconciler.service.transport.admission import Admission, Budget
from reconciler.service.transport.limits import SMALL_BODY, UNCOUNTED
from reconciler.service.transport.observer import Answer

CONTAINER_BYTES = 200  # of an object or a list in memory
QUOTE_BYTES = 30  # of half a text in memory, beside what is in it
MOST_SMALL = 9 * SMALL_BODY  # bytes of both in a small body that needs no place
DENSE = 3  # times its length is the place of a small body with more of them
HAS_LEFT = "reconciler.has_left"
"""Extension of an ASGI scope: returns whether the caller has closed its side of the connection."""

T = TypeVar("T")
GoOn = Callable[[bytes | None], Awaitable[T]]


class CallerLeftError(Exception):
    """The caller went away before its body was whole."""


class Bodies:
    """Takes in bodies for every transport over HTTP/1.1.

    Attributes:
        admission: Judges the callers of large ones.
    """

    def __init__(self, answer: Answer, budget: Budget) -> None:
        """``answer`` judges tokens; see ``Admission``."""
        self.admission = Admission(answer)
        self._budget = budget

    async def take(self, headers: Headers, receive: Receive, longest: int, go_on: GoOn[T]) -> T:
        """Take in a body, and go on with it; with None if it is longer than ``longest``.

        The room of a large body is held until ``go_on`` has ended. A body that is too long is
        not read to its end.

        Raises:
            Refusal: the token is not valid, or there was no room in time.
            CallerLeftError: the body has no end.
        """
        declared = _declared(headers)
        if declared > longest:
            return await go_on(None)
        read = bytearray()
        is_whole = declared <= SMALL_BODY and await _read(receive, read, SMALL_BODY)
        is_small = is_whole and len(read) <= SMALL_BODY
        if is_small and not _is_dense(read):
            return await go_on(bytes(read))
        caller = await self.admission.caller(headers)
        size = DENSE * len(read) if is_small else declared or longest
        async with self._budget.place(caller, size):
            is_whole = is_whole or await _read(receive, read, longest)
            return await go_on(bytes(read) if is_whole and len(read) <= longest else None)


def _is_dense(body: bytearray) -> bool:
    """Return whether a body may take more memory as objects than there is for a small one."""
    containers = body.count(b"{") + body.count(b"[")
    return CONTAINER_BYTES * containers + QUOTE_BYTES * body.count(b'"') > MOST_SMALL


def _declared(headers: Headers) -> int:
    """Return the length that a request gives its body; 0 for one in chunks, or none."""
    values = headers.get("content-length", ())
    return int(values[0]) if values else 0  # the framing has judged its form


async def _read(receive: Receive, read: bytearray, longest: int) -> bool:
    """Add to a body until it is whole or longer than so; return whether it is whole.

    The pieces are put together as they come: each for itself would cost more than its bytes.

    Raises:
        CallerLeftError: it has no end.
    """
    while len(read) <= longest:
        message = await receive()
        if message["type"] != "http.request":
            raise CallerLeftError
        read += message.get("body", b"")
        if not message.get("more_body", False):
            return True
    return False


RETRY_AFTER_SECONDS = 1

RawHeaders = list[tuple[bytes, bytes]]

ALWAYS: Sequence[tuple[bytes, bytes]] = (
    (b"cache-control", b"no-store"),
    (b"pragma", b"no-cache"),
    (b"expires", b"0"),
    (b"x-content-type-options", b"nosniff"),
)
_JSON = (b"content-type", b"application/json")
_CHALLENGE = (b"www-authenticate", b'Bearer realm="reconciler"')
_RETRY = (b"retry-after", str(RETRY_AFTER_SECONDS).encode())
_FURTHER: Mapping[int, tuple[bytes, bytes]] = {401: _CHALLENGE, 429: _RETRY, 503: _RETRY}


class HttpRefusalError(Refusal):
    """A refusal for which HTTP has a status of its own."""

    def __init__(self, status: int, code: Code, message: str, reason: str, allow: str = "") -> None:
        super().__init__(code, message, reason)
        self._status = status
        self.allow = allow

    @property
    def http_status(self) -> int:
        """Return the status that HTTP has for just this."""
        return self._status


HttpRefusal = HttpRefusalError  # as Refusal is named: the suffix is the linter's


class HttpAnswer(NamedTuple):
    """An answer, ready to be sent."""

    status: int
    headers: RawHeaders
    body: bytes


def json_answer(
    answer: JsonObject | Refusal, request_id: bytes = b"", body: bytes = b""
) -> HttpAnswer:
    """Return the answer of an operation, or its refusal, as JSON; ``body`` if it is encoded."""
    if not isinstance(answer, Refusal):
        return _with_headers(200, body or answer_bytes(answer), request_id)
    status = answer.http_status
    made = _with_headers(status, json_bytes(error_body(answer)), request_id)
    if status in _FURTHER:
        made.headers.append(_FURTHER[status])
    if isinstance(answer, HttpRefusal) and answer.allow:
        made.headers.append((b"allow", answer.allow.encode()))
    return made


def wrong_verb(verbs: Iterable[str]) -> Refusal:
    """Refuse a verb that an address does not have; one with GET has HEAD, too."""
    allow = {*verbs, "HEAD"} if "GET" in verbs else verbs
    return HttpRefusal(
        405,
        Code.UNIMPLEMENTED,
        "this address has no such verb",
        "verb.unknown",
        allow=", ".join(sorted(allow)),
    )


async def send_answer(send: Send, answer: HttpAnswer) -> None:
    """Send an answer, and wait until the network has taken a long one, or the caller went away.

    The HTTP server does not wait after the last piece of a body, so that one is empty.
    """
    start = {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
    await send(start)
    is_long = len(answer.body) > UNCOUNTED
    await send({"type": "http.response.body", "body": answer.body, "more_body": is_long})
    if is_long:
        await send({"type": "http.response.body", "body": b""})


def raw_refusal(refusal: Refusal, request_id: bytes) -> bytes:
    """Return a whole HTTP response that refuses and ends its connection."""
    answer = json_answer(refusal, request_id)
    lines = [b"HTTP/1.1 %d %s" % (answer.status, HTTPStatus(answer.status).phrase.encode())]
    lines += [b"%s: %s" % header for header in answer.headers]
    return b"\r\n".join([*lines, b"connection: close", b"", answer.body])


def _with_headers(status: int, body: bytes, request_id: bytes) -> HttpAnswer:
    headers = [_JSON, (b"content-length", str(len(body)).encode()), *ALWAYS]
    if request_id:
        headers.append((b"x-request-id", request_id))
    return HttpAnswer(status, headers, body)
