"""Calls as HTTP requests: verb, path, body, and whether a call may be sent twice."""

from __future__ import annotations

import json
import re
from typing import NamedTuple
from urllib.parse import urlencode

from reconciler.errors import ServiceError
from reconciler.resources.call import ADDRESSES, WRITE_BATCH, Call

_PARAMETER = re.compile(r"\{(\w+)\}", re.ASCII)
# Safe to repeat: a repeated claim only adds one more event, and each order of a batch has a key.
_REPEATABLE = frozenset(
    {"RenewLease", "ReleaseLease", "ClaimSecrets", "AcknowledgeSecrets", WRITE_BATCH}
)


_ID = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)


def is_id(text: object) -> bool:
    """Return whether a text can be the id of an object: it goes into addresses and headers."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


class Target(NamedTuple):
    """A call as HTTP addresses it: verb, path with query, and the JSON body or nothing."""

    verb: str
    path: str
    body: bytes | None


def target_of(call: Call) -> Target:
    """Return the address of a call. What is not in the path goes into the query or the body."""
    verb, _, template = ADDRESSES[call.operation][0].partition(" ")
    in_path = set(_PARAMETER.findall(template))
    path = _PARAMETER.sub(lambda found: _segment(call.fields[found[1]]), template)
    rest = {name: value for name, value in call.fields.items() if name not in in_path}
    if verb == "GET":
        query = urlencode({name: value for name, value in rest.items() if value != ""})
        return Target(verb, f"{path}?{query}" if query else path, None)
    if verb == "DELETE" and not rest:
        return Target(verb, path, None)
    return Target(verb, path, json.dumps(rest, separators=(",", ":")).encode())


def may_repeat(call: Call) -> bool:
    """Return whether a call may be sent again when its first result is unknown.

    A read may. A write may where the service keeps a second one from counting: by its
    idempotency key, or because it expects a sequence that the first one moved on.
    """
    return bool(
        is_read(call)
        or call.idempotency_key
        or call.expected_sequence is not None
        or call.operation in _REPEATABLE
    )


def is_read(call: Call) -> bool:
    """Return whether a call writes nothing."""
    verb, _, path = ADDRESSES[call.operation][0].partition(" ")
    return verb == "GET" or path.endswith("/_search")


def _segment(value: object) -> str:
    """Return an id as one segment of a path. What could leave the segment is no id."""
    text = str(value)
    if not is_id(text):
        raise ServiceError(
            "the service gave an id that cannot be part of an address",
            remedy="Ids are letters, digits, - and _. Nothing was sent.",
        )
    return text
