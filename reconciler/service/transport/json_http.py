"""The REST face: every address of the table of operations, in JSON.

An ASGI application of a few lines, because it stands on the path of every call.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from reconciler.service.domain.refusal import Code, Refusal, invalid
from reconciler.service.operations.fields import shown
from reconciler.service.operations.headers import CUSTODY, ORGANIZATION
from reconciler.service.operations.operation import Operation, nullable_of
from reconciler.service.operations.reception import Incoming, Received
from reconciler.service.operations.table import OPERATIONS
from reconciler.service.operations.texts import answer_bytes
from reconciler.service.transport.addresses import Addresses, Found
from reconciler.service.transport.http_answers import HttpRefusal, json_answer
from reconciler.service.transport.json_bodies import read_body
from reconciler.service.transport.limits import MAX_JSON
from reconciler.service.transport.observer import Answer, Observer, Seen, code_of, organization_of

MAX_PARAMETERS = 20
_KNOWN = frozenset(
    {"authorization", "if-match", "idempotency-key", "x-reconciler-lease", "x-reconciler-context"}
    | {CUSTODY, *ORGANIZATION}
    | {"content-type", "content-encoding", "x-request-id"}
)
_HEADER_NAMES = {name.encode(): name for name in _KNOWN}
_IS_JSON = re.compile(r'application/json(?:[ \t]*;[ \t]*charset="?utf-8"?)?', re.IGNORECASE)

Headers = Mapping[str, list[str]]


class JsonHttp:
    """Answers calls that come as JSON over HTTP."""

    def __init__(self, answer: Answer, observer: Observer) -> None:
        self._answer = answer
        self._observer = observer
        self._addresses = Addresses(OPERATIONS.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began = self._observer.begin()
        headers = _headers_of(scope)
        request_id = self._observer.request_id(*_given_id(headers))
        call = Incoming("", {}, headers)
        received, status = Received("", {}), 0
        code = 1  # cancelled, unless an answer comes
        try:
            body = await _body_of(receive)
            if body is None:
                return
            call = self._incoming(scope, body, headers)
            received = await self._answer(call)
            answer = json_answer(received.answer, request_id.encode(), received.body)
            code, status = code_of(received), answer.status
            await send({"type": "http.response.start", "status": status, "headers": answer.headers})
            await send({"type": "http.response.body", "body": answer.body})
        finally:
            self._observer.end(
                Seen(
                    request_id,
                    "json",
                    call.operation,
                    organization_of(headers),
                    received.caller,
                    time.perf_counter() - began,
                    code,
                    status,
                )
            )

    def _incoming(self, scope: Scope, body: bytes | Refusal, headers: Headers) -> Incoming:
        """Return the call that a request is, with why it could not be read if it could not."""
        found = self._addresses.find(scope["method"], scope["raw_path"].decode("latin-1"))
        if isinstance(found, Refusal):
            return Incoming("", found, headers)
        try:
            fields = _fields_of(scope, found, body, headers)
        except Refusal as refusal:
            return Incoming(found.operation.name, refusal, headers)
        return Incoming(found.operation.name, fields, headers, answer_bytes, as_text=True)


def _headers_of(scope: Scope) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for raw, value in scope["headers"]:
        name = _HEADER_NAMES.get(raw)
        if name is not None:
            headers.setdefault(name, []).append(value.decode("latin-1"))
    return headers


def _given_id(headers: Headers) -> tuple[bytes, ...]:
    given = headers.get("x-request-id", ())
    return (given[0].encode("latin-1"),) if len(given) == 1 else ()


async def _body_of(receive: Receive) -> bytes | Refusal | None:
    """Return the whole body, a refusal if it is too large, or nothing if the caller went away.

    A body that is too large is read to its end all the same, so that the connection can go on.
    """
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        piece = message.get("body", b"")
        size += len(piece)
        if size <= MAX_JSON:
            pieces.append(piece)
        if not message.get("more_body", False):
            break
    if size > MAX_JSON:
        return HttpRefusal(
            413,
            Code.RESOURCE_EXHAUSTED,
            f"a body must be at most {MAX_JSON} bytes long",
            "message.too_large",
        )
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _fields_of(
    scope: Scope, found: Found, body: bytes | Refusal, headers: Headers
) -> Mapping[str, Any]:
    """Return the fields of a request. Those of the address win over others of the same name.

    Raises:
        Refusal: they could not be read.
    """
    if isinstance(body, Refusal):
        raise body
    if "content-encoding" in headers:
        raise _unsupported("content-encoding: not supported", "encoding.unsupported")
    if scope["method"] in {"GET", "HEAD"}:
        if body:
            raise invalid("request", "must not have a body with this verb")
        return {**_parameters(scope["query_string"]), **found.fields}
    if scope["query_string"]:
        raise invalid("request", "must not have query parameters with this verb")
    if body and not _is_json(headers.get("content-type", ())):
        raise _unsupported("content-type: must be application/json", "content_type.unsupported")
    return {**_without_null(found.operation, read_body(body)), **found.fields}


def _without_null(operation: Operation, fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields without those that are null: left out, as in the JSON form of protobuf.

    An unknown field stays, to be refused.
    """
    if None not in fields.values():
        return fields
    known = nullable_of(operation)
    return {name: value for name, value in fields.items() if value is not None or name not in known}


def _is_json(values: Any) -> bool:
    return len(values) == 1 and _IS_JSON.fullmatch(values[0].strip()) is not None


def _unsupported(message: str, reason: str) -> Refusal:
    return HttpRefusal(415, Code.INVALID_ARGUMENT, message, reason)


def _parameters(query: bytes) -> dict[str, str]:
    """Return query parameters.

    Raises:
        Refusal: one is repeated, or they are not UTF-8.
    """
    if not query:
        return {}
    try:
        pairs = parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=MAX_PARAMETERS,
        )
    except ValueError:
        raise invalid("query", "must be up to 20 parameters name=value in UTF-8") from None
    parameters = dict(pairs)
    if len(parameters) != len(pairs):
        twice = next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1)
        raise invalid(shown(twice), "must be given once")
    return parameters
