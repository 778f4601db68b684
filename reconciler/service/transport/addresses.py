"""Addresses and verbs of the operations: made from the table, looked up, and deprecated.

Each answer of a deprecated call, a refusal included, has the header ``Deprecation`` (RFC 9745) and
a ``Link`` to its successor (RFC 5829); over gRPC they are trailing metadata. The call works on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import quote, unquote_to_bytes

from reconciler.resources.call import ADDRESSES
from reconciler.service.domain.refusal import Code, Refusal, invalid
from reconciler.service.operations.operation import MANAGEMENT, SUCCESSORS, Operation
from reconciler.service.transport.http_answers import HttpRefusal

# What no part of an address may hold, however it is written: another reader of the same address
# (a proxy, a log, a firewall) would see another one.
_CONFUSING = re.compile(r"[\x00-\x1f\x7f/\\;]")
_DOTS = frozenset({".", ".."})
_SAME_AS_GET = "HEAD"
DEPRECATED_SINCE = "@1795305600"  # 2026-11-22, in seconds since the epoch


@dataclass(frozen=True, slots=True)
class Found:
    """An operation, and the fields that its address carries."""

    operation: Operation
    fields: Mapping[str, str]


_Verbs = dict[str, tuple[Operation, tuple[str, ...]]]
_Ends = tuple[_Verbs, tuple[str, ...]]


@dataclass(slots=True)
class _Node:
    """A branch of the tree of addresses, with the verbs of an address that ends here."""

    fixed: dict[str, _Node] = field(default_factory=dict)
    any: _Node | None = None
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
        found = _walk(self._root, path.split("/")[1:], ())
        if found is None:
            return Refusal(Code.NOT_FOUND, "there is nothing at this address", "address.unknown")
        verbs, values = found
        meant = verbs.get("GET" if verb == _SAME_AS_GET else verb)
        return _found(*meant, values) if meant else _wrong_verb(set(verbs))

    def _add(self, operation: Operation, address: str) -> None:
        verb, _, path = address.partition(" ")
        node, names = self._root, []
        for part in path.split("/")[1:]:
            if part.startswith("{"):
                names.append(part[1:-1])
                node.any = node = node.any or _Node()
            else:
                node = node.fixed.setdefault(part, _Node())
        node.verbs[verb] = (operation, tuple(names))


def _walk(node: _Node, parts: list[str], values: tuple[str, ...]) -> _Ends | None:
    """Return where an address ends; one that is spelt out goes before one that varies."""
    if not parts:
        return (node.verbs, values) if node.verbs else None
    part, rest = parts[0], parts[1:]
    fixed = node.fixed.get(part)
    ends = _walk(fixed, rest, values) if fixed is not None else None
    if ends is None and node.any is not None and part:
        ends = _walk(node.any, rest, (*values, part))
    return ends


def _found(
    operation: Operation, names: tuple[str, ...], values: tuple[str, ...]
) -> Found | Refusal:
    try:
        fields = {name: _decoded(name, value) for name, value in zip(names, values, strict=True)}
    except Refusal as refusal:
        return refusal
    return Found(operation, fields)


def _decoded(name: str, part: str) -> str:
    """Return a part of an address as text.

    Raises:
        Refusal: it could be read as another address.
    """
    try:
        text = unquote_to_bytes(part).decode("utf-8") if "%" in part else part
    except UnicodeDecodeError:
        raise invalid(name, "must be UTF-8") from None
    if text in _DOTS or _CONFUSING.search(text):
        raise invalid(name, "must not contain what separates the parts of an address")
    return text


def _wrong_verb(verbs: set[str]) -> Refusal:
    allowed = verbs | ({_SAME_AS_GET} if "GET" in verbs else set())
    return HttpRefusal(
        405,
        Code.UNIMPLEMENTED,
        "this address has no such verb",
        "verb.unknown",
        allow=", ".join(sorted(allowed)),
    )


def http_headers(operation: str, fields: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the headers that deprecate an operation; none if it is not deprecated.

    ``fields`` are those of the address: the successor of a call that names an object names it, too.
    """
    successor = SUCCESSORS.get(operation)
    if successor is None:
        return []
    _, _, path = ADDRESSES[successor][0].partition(" ")
    for value in fields.values():
        path = path.replace("{id}", quote(value, safe=""))
    return [(b"deprecation", DEPRECATED_SINCE.encode()), (b"link", _link(path).encode())]


@cache
def grpc_metadata(operation: str) -> tuple[tuple[str, str], ...]:
    """Return the trailing metadata that deprecates an operation; none if it is not deprecated."""
    successor = SUCCESSORS.get(operation)
    if successor is None:
        return ()
    return (("deprecation", DEPRECATED_SINCE), ("link", _link(f"/{MANAGEMENT}/{successor}")))


def _link(target: str) -> str:
    return f'<{target}>; rel="successor-version"'
