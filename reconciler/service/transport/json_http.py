"""The REST front end: every address of the table of operations, in JSON.

An ASGI application without a framework, because it stands on the path of every call. The
addresses are a tree, made from the table once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from reconciler.kinds.addresses import ADDRESSES, REST
from reconciler.resources.call import JsonObject
from reconciler.service.domain.refusal import Refusal, invalid
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.operation import Operation, deprecation
from reconciler.service.operations.request import Headers, bearer_token, shown
from reconciler.service.operations.table import operations
from reconciler.service.operations.texts import answer_bytes
from reconciler.service.transport.asgi import Receive, Scope, Send
from reconciler.service.transport.http_messages import (
    MAX_PAIRS,
    HttpRefusal,
    RawHeaders,
    json_answer,
    one,
    read_headers,
    read_pairs,
    send_answer,
    unknown_address,
    wrong_verb,
)
from reconciler.service.transport.intake import Body, CallerLeftError, Intake, connection_of
from reconciler.service.transport.json_bodies import read_body
from reconciler.service.transport.limits import MAX_JSON
from reconciler.service.transport.observer import Answer, Observer

# JSON on the wire is UTF-8. Another charset is refused, and none is guessed.
_IS_JSON = re.compile(r'application/json(?:[ \t]*;[ \t]*charset="?utf-8"?)?', re.IGNORECASE)
# What no part of an address may hold, however it is written: another reader of the same address
# (a proxy, a log, a firewall) would see another one.
_CONFUSING = re.compile(r"[\x00-\x1f\x7f/\\;]")
_DOTS = frozenset({".", ".."})


class JsonHttp:
    """Answers calls that come as JSON over HTTP."""

    def __init__(self, answer: Answer, observer: Observer, intake: Intake) -> None:
        self._answer = answer
        self._intake = intake
        self._observer = observer
        self._addresses = Addresses(operations().values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = read_headers(scope)
        # The raw path: an escaped slash within an id must not become one that divides the path.
        found = self._addresses.find(scope["method"], scope["raw_path"].decode("latin-1"))
        operation = "" if isinstance(found, Refusal) else found.operation.name
        with (
            self._observer.call("json", operation, headers, one(headers, "x-request-id")) as seen,
            ExitStack() as delivery,
        ):
            try:
                received = await self._received(scope, receive, found, headers, delivery)
            except CallerLeftError:
                return
            if received.caller:
                connection_of(scope).judged(is_known=True)
            answer = json_answer(received.answer, received.body)
            if not isinstance(found, Refusal):
                answer.headers.extend(_deprecation(found))
            seen.note(received)
            seen.status = answer.status
            await send_answer(send, answer, seen.request_id)

    async def _received(
        self,
        scope: Scope,
        receive: Receive,
        found: Found | Refusal,
        headers: Headers,
        delivery: ExitStack,
    ) -> Received:
        """Return the answer. Address and headers are judged before the body is read.

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
            return await self._intake.take(
                Body(headers, MAX_JSON),
                receive,
                connection_of(scope),
                lambda body: self._answer(_call(scope, found, body, headers, delivery)),
                needs_token=found.operation.needs_token,
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
    connection = connection_of(scope)
    return Incoming(
        found.operation.name,
        fields,
        headers,
        answer_bytes,
        has_left=connection.has_left,
        delivery=delivery,
        drop=connection.drop,
    )


def _fields_of(scope: Scope, found: Found, body: bytes | None, headers: Headers) -> JsonObject:
    """Return the fields of a request. Those of the address win over others of the same name.

    Raises:
        Refusal: they could not be read.
    """
    if body is None:
        rule = f"a body must be at most {MAX_JSON} bytes long"
        raise HttpRefusal(413, rule, "message.too_large")
    # The limit is on the bytes that come: a compressed body could become a thousand times longer.
    if "content-encoding" in headers:
        raise HttpRefusal(415, "content-encoding: not supported", "encoding.unsupported")
    # Some proxies drop the body of a GET, and others pass it on: it has no reliable meaning.
    if scope["method"] in {"GET", "HEAD"}:
        if body:
            raise invalid("request", "must not have a body with this verb")
        return {**read_parameters(scope["query_string"]), **found.fields}
    if scope["query_string"]:
        raise invalid("request", "must not have query parameters with this verb")
    if body and not _IS_JSON.fullmatch(one(headers, "content-type")):
        rule = "content-type: must be application/json"
        raise HttpRefusal(415, rule, "content_type.unsupported")
    return {**read_body(body), **found.fields}


def read_parameters(query: bytes) -> dict[str, str]:
    """Return query parameters.

    Raises:
        Refusal: one is repeated, or they are not UTF-8.
    """
    if not query:
        return {}
    try:
        parameters, twice = read_pairs(query)
    except ValueError:
        rule = f"must be up to {MAX_PAIRS} parameters name=value in UTF-8"
        raise invalid("query", rule) from None
    if twice:
        raise invalid(shown(twice[0]), "must be given once")
    return parameters


@dataclass(frozen=True, slots=True)
class Found:
    """An operation, and the fields that its address carries."""

    operation: Operation
    fields: Mapping[str, str]


def _deprecation(found: Found) -> RawHeaders:
    """Return the headers of a deprecated call; none of any other.

    The successor of a call that names an object names it, too.
    """
    successor = found.operation.successor
    if not successor:
        return []
    _, _, path = ADDRESSES[successor][0].partition(" ")
    for value in found.fields.values():
        path = path.replace("{id}", quote(value, safe=""))
    return [(name.encode(), value.encode()) for name, value in deprecation(path)]


_Verbs = dict[str, tuple[Operation, tuple[str, ...]]]  # and the names of the parts that vary
_Ends = tuple[_Verbs, tuple[str, ...]]  # and what stands in their place


@dataclass(slots=True)
class _Node:
    """A branch of the tree of addresses, with the verbs of an address that ends here."""

    fixed: dict[str, _Node] = field(default_factory=dict)
    any: _Node | None = None
    rest: _Verbs = field(default_factory=dict)
    verbs: _Verbs = field(default_factory=dict)


class Addresses:
    """Every address of a table of operations."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._root = _Node()
        for operation in operations:
            for address in operation.http:
                self._add(operation, address)

    def find(self, verb: str, path: str) -> Found | Refusal:
        """Return what an address, as it came over the wire, means; or why it means nothing."""
        verb = "GET" if verb == "HEAD" else verb
        ends = _walk(self._root, verb, path.split("/")[1:], ())
        if ends is None:
            return unknown_address()
        verbs, values = ends
        meant = verbs.get(verb)
        if meant is None:
            return wrong_verb(verbs)
        operation, names = meant
        try:
            fields = {name: _decoded(name, part) for name, part in zip(names, values, strict=True)}
        except Refusal as refusal:
            return refusal
        return Found(operation, fields)

    def _add(self, operation: Operation, address: str) -> None:
        verb, _, path = address.partition(" ")
        node, names = self._root, []
        for part in path.split("/")[1:]:
            if part.startswith("{"):
                names.append(part[1:-1])
                if names[-1] in REST:
                    node.rest[verb] = (operation, tuple(names))
                    return
                node.any = node = node.any or _Node()
            else:
                node = node.fixed.setdefault(part, _Node())
        node.verbs[verb] = (operation, tuple(names))


def _walk(node: _Node, verb: str, parts: list[str], values: tuple[str, ...]) -> _Ends | None:
    """Return where an address ends; one that is spelt out goes before one that varies.

    A part that takes the rest also takes what is spelt out for other verbs.
    """
    if not parts:
        return (node.verbs, values) if node.verbs else None
    part, rest = parts[0], parts[1:]
    fixed = node.fixed.get(part)
    ends = _walk(fixed, verb, rest, values) if fixed is not None else None
    if ends is None and node.any is not None and part:
        ends = _walk(node.any, verb, rest, (*values, part))
    if node.rest and (ends is None or (verb in node.rest and verb not in ends[0])):
        ends = node.rest, (*values, "/".join(parts))
    return ends


def _decoded(name: str, part: str) -> str:
    """Return a part of an address as text.

    Raises:
        Refusal: it could be read as another address.
    """
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise invalid(name, "must be UTF-8") from None
    if name not in REST and (text in _DOTS or _CONFUSING.search(text)):
        raise invalid(name, "must not contain what separates the parts of an address")
    return text
