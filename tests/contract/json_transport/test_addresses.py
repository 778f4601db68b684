"""Addresses and parameters: where a request goes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from reconciler.service.operations.table import operations
from tests.contract.json_transport.asking import (
    ACTIONS,
    NAMES,
    SEARCH,
    an_action,
    ask,
    refused,
    sound,
)
from tests.raw_http import Line, request
from tests.running import Server

# Where a request goes.


@pytest.mark.parametrize(
    ("verb", "path", "status", "code"),
    [
        pytest.param("GET", "/nowhere", 404, 5, id="unknown"),
        pytest.param("POST", f"{ACTIONS}/", 404, 5, id="a slash too many"),
        pytest.param("GET", "/management/v2/actions", 404, 5, id="another version"),
        pytest.param("PATCH", ACTIONS, 405, 12, id="wrong verb"),
        pytest.param("GET", ACTIONS, 405, 12, id="no such list"),
        pytest.param("OPTIONS", ACTIONS, 405, 12, id="options"),
        pytest.param("POST", "/healthz", 405, 12, id="a page"),
    ],
)
def test_what_is_nowhere_is_told_so(
    server: Server, verb: str, path: str, status: int, code: int
) -> None:
    """The same shape of refusal as everywhere, and the verbs that there are."""
    answer = ask(server, verb, path)

    refused(answer, status, code)
    assert ("allow" in answer.headers) == (status == 405)


def test_the_allowed_verbs_are_named(server: Server) -> None:
    """Of this address only: another one may look like it."""
    assert ask(server, "PATCH", f"{ACTIONS}/1").headers["allow"] == "DELETE, GET, HEAD, PUT"
    assert ask(server, "GET", SEARCH).headers["allow"] == "POST"


def test_the_address_wins_over_the_body(server: Server) -> None:
    """What was authorized by a proxy is what is done."""
    body = json.dumps({"projectId": "1", "name": next(NAMES)}).encode()
    path = f"/management/v1/projects/{server.known.project}/apps/oidc"

    assert ask(server, "POST", path, body).status == 200


@pytest.mark.parametrize("number", [10**19, 2**64, -(2**63) - 1, -(10**19)])
def test_what_a_context_may_say_can_be_read_again(server: Server, number: int) -> None:
    """One write that nobody could list again would hide a whole organization."""
    context = {"x-reconciler-context": json.dumps({"number": number})}
    made = ask(server, "POST", ACTIONS, json.dumps(an_action()).encode(), context)
    assert made.status == 200

    listed = ask(server, "GET", f"/reconciler/v1/organizations/{server.known.organization}/objects")
    history = ask(server, "GET", f"/reconciler/v1/objects/{made.json['id']}/history")

    assert number in [held["context"].get("number") for held in listed.json["objects"]]
    assert [event["context"] for event in history.json["events"]] == [{"number": number}]


CONFUSED = [
    "%2f", "%2F", "%5c", "%00", "%0a", "%0d%0a", "%09", "%3b", ";a=b", "..;", "%2e%2e", "%2e",
    "..", ".", "%c0%af", "%ff", "%ed%a0%80", "%252f", "//", "1%2f..%2f1", "%zz", "%",
]  # fmt: skip


_TEMPLATES = sorted({address for row in operations().values() for address in row.http})


@pytest.mark.parametrize("token", [True, False], ids=["with a token", "without"])
@pytest.mark.parametrize("part", CONFUSED)
def test_no_confusing_address_leads_anywhere(server: Server, part: str, *, token: bool) -> None:
    """A proxy before us may read it otherwise; so nobody gets anything by it.

    Without a token every address is refused in one place. There the parts share the addresses out,
    so that each part and each address is met.
    """
    ways = 1 if token else 4
    with Line(server.port) as line:
        for template in _TEMPLATES[CONFUSED.index(part) % ways :: ways]:
            verb, _, path = template.partition(" ")
            for target in _confused(path, part):
                asked = request(verb, target, server.bearer() if token else {})
                answer = sound(line.exchange(asked))
                allowed = {400, 403, 404, 405} if token else {401}
                assert answer.status in allowed, (verb, target)


def _confused(path: str, part: str) -> Iterator[str]:
    """Yield addresses that have the part: before the path, after it, in place of a parameter."""
    plain = re.sub(r"{\w+}", "1", path)
    yield plain.replace("/v1/", f"/v1/{part}/", 1)
    yield f"{plain}/{part}"
    if "{" in path:
        yield re.sub(r"{\w+}", "1", re.sub(r"{\w+}", lambda _: part, path, count=1))


# Reading parameters.


@pytest.mark.parametrize(
    ("query", "status"),
    [
        pytest.param("limit=1", 200, id="a number"),
        pytest.param("limit=1&cursor=", 200, id="an empty text"),
        pytest.param("limit=x", 400, id="no number"),
        pytest.param("limit=%EF%BC%91", 400, id="a full-width digit"),
        pytest.param("limit=1&limit=2", 400, id="twice"),
        pytest.param("page=1", 400, id="unknown"),
        pytest.param("limit", 400, id="no value"),
        pytest.param("cursor=%ff", 400, id="not UTF-8"),
        pytest.param("cursor=%00", 400, id="NUL"),
        pytest.param("organizationId=1", 200, id="the address wins"),
        pytest.param("&".join(f"a{i}=1" for i in range(21)), 400, id="too many"),
    ],
)
def test_query_parameters_are_read_strictly(server: Server, query: str, status: int) -> None:
    """A cursor or a limit that is misread gives the wrong page."""
    path = f"/reconciler/v1/organizations/{server.known.organization}/objects"
    answer = ask(server, "GET", f"{path}?{query}")

    assert answer.status == status, answer.body


def test_parameters_and_bodies_are_where_they_belong(server: Server) -> None:
    """What is in the wrong place is not silently left out."""
    refused(ask(server, "POST", f"{SEARCH}?limit=1"), 400, 3)
    refused(ask(server, "GET", f"{ACTIONS}/1", b"{}"), 400, 3)
    assert ask(server, "POST", SEARCH).status == 200
    assert ask(server, "DELETE", f"{ACTIONS}/1", b"{}").status == 404
