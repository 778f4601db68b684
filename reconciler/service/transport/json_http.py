"""The REST front end: every address of the table of operations, in JSON.

An ASGI application of a few lines, because it stands on the path of every call.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope, Send

from reconciler.resources.call import WRITE_BATCH, JsonObject
from reconciler.service.domain.refusal import Code, Refusal, invalid
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.operation import without_null
from reconciler.service.operations.request import CUSTODY, ORGANIZATION, bearer_token, shown
from reconciler.service.operations.table import operations
from reconciler.service.operations.texts import answer_bytes
from reconciler.service.transport.addresses import Addresses, Found, http_headers
from reconciler.service.transport.bodies import HAS_LEFT, Bodies, CallerLeftError, read_body
from reconciler.service.transport.http_answers import HttpRefusal, json_answer, send_answer
from reconciler.service.transport.limits import MAX_JSON
from reconciler.service.transport.observer import (
    Answer,
    Observer,
    Seen,
    code_of,
    orders_of,
    organization_of,
)

MAX_PARAMETERS = 20
_KNOWN = frozenset(
    {"authorization", "if-match", "idempotency-key", "x-reconciler-lease", "x-reconciler-context"}
    | {CUSTODY, *ORGANIZATION}
    | {"content-type", "content-encoding", "content-length", "x-request-id"}
)
# Only headers that something reads are decoded; browsers and proxies send many others.
_HEADER_NAMES = {name.encode(): name for name in _KNOWN}
# JSON on the wire is UTF-8. Another charset is refused, and none is guessed.
_IS_JSON = re.compile(r'application/json(?:[ \t]*;[ \t]*charset="?utf-8"?)?', re.IGNORECASE)

Headers = Mapping[str, list[str]]


class JsonHttp:
    """Answers calls that come as JSON over HTTP."""

    def __init__(self, answer: Answer, observer: Observer, bodies: Bodies) -> None:
        self._answer = answer
        self._bodies = bodies
        self._observer = observer
        self._addresses = Addresses(operations().values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began = self._observer.begin()
        headers = _headers_of(scope)
        request_id = self._observer.request_id(*_given_id(headers))
        # The raw path: an escaped slash within an id must not become one that divides the path.
        found = self._addresses.find(scope["method"], scope["raw_path"].decode("latin-1"))
        operation = "" if isinstance(found, Refusal) else found.operation.name
        received, status = Received("", {}), 0
        code = 1  # cancelled, unless an answer comes
        delivery = ExitStack()
        try:
            received = await self._received(scope, receive, found, headers, delivery)
            answer = json_answer(received.answer, request_id.encode(), received.body)
            if not isinstance(found, Refusal):
                answer.headers.extend(http_headers(operation, found.fields))
            code, status = code_of(received), answer.status
            await send_answer(send, answer)
        except CallerLeftError:
            return
        finally:
            delivery.close()
            self._observer.end(
                Seen(
                    request_id,
                    "json",
                    operation,
                    organization_of(headers),
                    received.caller,
                    time.perf_counter() - began,
                    code,
                    status,
                    *orders_of(received),
                )
            )

    async def _received(
        self,
        scope: Scope,
        receive: Receive,
        found: Found | Refusal,
        headers: Headers,
        delivery: ExitStack,
    ) -> Received:
        """Return the answer. What address and headers tell is judged before the body is read.

        Raises:
            CallerLeftError: the request has no end.
        """
        try:
            if isinstance(found, Refusal):
                return await self._answer(Incoming("", found, headers))
            # Without a token nothing of a body is read. Whether the token is valid is judged with
            # the call, in the same look at the store.
            if found.operation.needs_token:
                bearer_token(headers)
            return await self._bodies.take(
                headers,
                receive,
                MAX_JSON,
                lambda body: self._answer(_call(scope, found, body, headers, delivery)),
            )
        except Refusal as refusal:
            return Received("", refusal)


def _call(
    scope: Scope, found: Found, body: bytes | None, headers: Headers, delivery: ExitStack
) -> Incoming:
    """Return the call that a request is, with why it could not be read if it could not."""
    try:
        fields = _fields_of(scope, found, body, headers)
    except Refusal as refusal:
        return Incoming(found.operation.name, refusal, headers)
    name = found.operation.name
    call = Incoming(name, fields, headers, answer_bytes, as_text=True, delivery=delivery)
    # Only a batch takes several commits, between which it can be ended if its caller has left.
    has_left = scope.get("extensions", {}).get(HAS_LEFT)
    return replace(call, has_left=has_left) if name == WRITE_BATCH and has_left else call


def _headers_of(scope: Scope) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for raw, value in scope["headers"]:
        name = _HEADER_NAMES.get(raw)
        if name is not None:
            headers.setdefault(name, []).append(value.decode("latin-1"))
    return headers


def _given_id(headers: Headers) -> tuple[bytes, ...]:
    # Several ids are none: the service then makes one of its own.
    given = headers.get("x-request-id", ())
    return (given[0].encode("latin-1"),) if len(given) == 1 else ()


def _fields_of(scope: Scope, found: Found, body: bytes | None, headers: Headers) -> JsonObject:
    """Return the fields of a request. Those of the address win over others of the same name.

    Raises:
        Refusal: they could not be read.
    """
    if body is None:
        raise HttpRefusal(
            413,
            Code.RESOURCE_EXHAUSTED,
            f"a body must be at most {MAX_JSON} bytes long",
            "message.too_large",
        )
    # The limit is on the bytes that come: a compressed body could become a thousand times longer.
    if "content-encoding" in headers:
        raise _unsupported("content-encoding: not supported", "encoding.unsupported")
    # Some proxies drop the body of a GET, and others pass it on: it has no reliable meaning.
    if scope["method"] in {"GET", "HEAD"}:
        if body:
            raise invalid("request", "must not have a body with this verb")
        return {**_parameters(scope["query_string"]), **found.fields}
    if scope["query_string"]:
        raise invalid("request", "must not have query parameters with this verb")
    if body and not _is_json(headers.get("content-type", ())):
        raise _unsupported("content-type: must be application/json", "content_type.unsupported")
    return {**without_null(found.operation, read_body(body)), **found.fields}


def _is_json(values: Sequence[str]) -> bool:
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
