"""Requests of JSON over a socket, and what is expected of a refusal."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

from tests.raw_http import Raw, exchange, request
from tests.running import Server

ACTIONS = "/management/v1/actions"


SEARCH = f"{ACTIONS}/_search"


SCRIPT = "function f() {}"


NAMES = (f"name-{number}" for number in itertools.count())


INSIDE = (b"Traceback", b"sqlite", b".py", b"Error:", b"SELECT", b"identity.db", b"pydantic")


BOM = b"\xef\xbb\xbf"


def ask(
    server: Server,
    verb: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> Raw:
    """Send a request as the editor; what is given replaces what is usual."""
    usual = {**server.bearer(), **({"content-type": "application/json"} if body else {})}
    merged = {name: value for name, value in {**usual, **(headers or {})}.items() if value}
    return sound(exchange(server.port, request(verb, path, merged, body)))


def sound(answer: Raw | None) -> Raw:
    """Return an answer that is held to what every answer is held to."""
    assert answer is not None
    assert not any(word in answer.body for word in INSIDE), answer.body
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-request-id"]
    return answer


def send(server: Server, verb: str, path: str, fields: Any) -> Raw:
    return ask(server, verb, path, json.dumps(fields).encode())


def refused(answer: Raw, status: int, code: int) -> str:
    """Hold a refusal to its one shape; return its message."""
    assert (answer.status, answer.json["code"]) == (status, code), answer.body
    assert set(answer.json) == {"code", "message", "details"}
    (detail,) = answer.json["details"]
    assert detail["@type"] == "type.googleapis.com/zitadel.v1.ErrorDetail"
    assert detail["message"] == answer.json["message"]
    assert detail["id"]
    return str(answer.json["message"])


def an_action(**fields: Any) -> dict[str, Any]:
    return {"name": next(NAMES), "script": SCRIPT, **fields}
