"""Headers: what a request says beside its fields."""

from __future__ import annotations

import json
from itertools import product

import pytest

from tests.contract.json_transport.asking import ACTIONS, SEARCH, an_action, ask, refused
from tests.contract.story import JWT
from tests.raw_http import exchange, request
from tests.running import Server

# What a request says beside its fields.


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"content-type": "text/plain"}, 415, id="text"),
        pytest.param({"content-type": "application/x-www-form-urlencoded"}, 415, id="a form"),
        pytest.param({"content-type": "application/json; charset=latin-1"}, 415, id="latin-1"),
        pytest.param({"content-type": "application/json, text/plain"}, 415, id="two types"),
        pytest.param({"content-type": ""}, 415, id="none"),
        pytest.param({"content-encoding": "gzip"}, 415, id="gzip"),
        pytest.param({"content-encoding": "identity"}, 415, id="identity"),
        pytest.param({"content-type": "Application/JSON;charset=UTF-8"}, 200, id="with charset"),
    ],
)
def test_a_body_is_json_and_says_so(server: Server, headers: dict[str, str], status: int) -> None:
    """A form that a browser sends across origins is no call."""
    answer = ask(server, "POST", SEARCH, b"{}", headers)

    if status == 200:
        assert answer.status == 200
    else:
        refused(answer, status, 3)


@pytest.mark.parametrize("name", ["x-service-orgid", "x-zitadel-orgid"])
def test_the_organization_header_is_one_id(server: Server, name: str) -> None:
    """Empty means the caller's own; anything odd is refused, nothing is guessed."""
    own = server.known.organization
    for value in (own, ""):
        assert ask(server, "POST", SEARCH, b"{}", {name: value}).status == 200
    for value in (f"{own},{own}", "../x", "x" * 201, "%00", f'"{own}"'):
        refused(ask(server, "POST", SEARCH, b"{}", {name: value}), 400, 3)
    refused(ask(server, "POST", SEARCH, b"{}", {name: server.known.other_organization}), 404, 5)


@pytest.mark.parametrize(
    "line",
    [
        "authorization: Bearer x",
        "x-service-orgid: 1",
        'if-match: "1"',
        "idempotency-key: k",
        "x-reconciler-context: {}",
        "x-reconciler-lease: l",
    ],
)
def test_a_repeated_header_is_refused(server: Server, line: str) -> None:
    """Two readers could take one each."""
    head = request("POST", ACTIONS, {**server.bearer(), "content-type": "application/json"})
    body = json.dumps(an_action()).encode()
    twice = f"{line}\r\n{line}\r\ncontent-length: {len(body)}\r\n\r\n".encode()

    answer = exchange(server.port, head[:-2] + twice + body)

    assert answer is not None
    refused(answer, 401 if line.startswith("authorization") else 400, 16 if "Bearer" in line else 3)


@pytest.mark.parametrize("value", ["1", "*", 'W/"1"', '"1", "2"', '"x"', '""', '"-1"', '"01"'])
def test_a_malformed_expectation_is_refused(server: Server, idp: str, value: str) -> None:
    """An update that expects something unreadable must not be made."""
    path = f"/management/v1/idps/{idp}/jwt_config"

    refused(ask(server, "PUT", path, json.dumps(JWT).encode(), {"if-match": value}), 400, 3)


def test_who_asks_comes_before_what_is_asked(server: Server) -> None:
    """A stranger learns nothing from a refusal, not even that the request is malformed."""
    asked = ((ACTIONS, b"{"), ("/nowhere", b""), (SEARCH, b'{"x":1}'))
    for token, (path, body) in product(("", "Bearer of-nobody"), asked):
        answer = ask(server, "POST", path, body, {"authorization": token})
        refused(answer, 401, 16)
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_plain_request_id_comes_back(server: Server) -> None:
    """So that both sides' logs can be laid side by side; an odd one is replaced."""
    given = ask(server, "POST", SEARCH, headers={"x-request-id": "run-17.a_b"})
    odd = ask(server, "POST", SEARCH, headers={"x-request-id": "a b"})

    assert given.headers["x-request-id"] == "run-17.a_b"
    assert odd.headers["x-request-id"] != "a b"
