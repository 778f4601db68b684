"""JSON over HTTP: errors and limits of the source, and every way to misspell a request."""

from __future__ import annotations

import http.client
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from reconciler.service.operations.table import operations
from reconciler.service.transport.limits import MAX_JSON
from tests.contract.story import JWT
from tests.raw_http import Raw, exchange, request
from tests.running import Server, running_server

ACTIONS = "/management/v1/actions"
SEARCH = f"{ACTIONS}/_search"
SCRIPT = "function f() {}"
NAMES = (f"name-{number}" for number in itertools.count())
INSIDE = (b"Traceback", b"sqlite", b".py", b"Error:", b"SELECT", b"identity.db", b"pydantic")
BOM = b"\xef\xbb\xbf"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run one server."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def idp(server: Server) -> str:
    """Return the id of an identity provider."""
    made = send(server, "POST", "/management/v1/idps/jwt", {"name": "partner", **JWT})
    return str(made.json["idpId"])


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
    answer = exchange(server.port, request(verb, path, merged, body))
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


# Source sections 7 and 8.


@pytest.mark.parametrize("field", ["jwtEndpoint", "issuer", "keysEndpoint", "headerName"])
@pytest.mark.parametrize(
    ("value", "is_taken"),
    [
        pytest.param("é" * 200, True, id="200 characters"),
        pytest.param("\U0001f511" * 200, True, id="200 characters beyond the basic plane"),
        pytest.param("x" * 201, False, id="201 characters"),
        pytest.param(None, False, id="left out"),
        pytest.param("", False, id="empty"),
        pytest.param(7, False, id="a number"),
    ],
)
def test_the_jwt_configuration_keeps_its_limits(
    server: Server, idp: str, field: str, value: Any, *, is_taken: bool
) -> None:
    """Source 2.2 and 8. Of the four fields, one may be empty: headerName."""
    answer = send(server, "PUT", f"/management/v1/idps/{idp}/jwt_config", {**JWT, field: value})

    if is_taken or (field, value) == ("headerName", ""):
        assert answer.status == 200
        assert set(answer.json) == {"details"}
    else:
        assert refused(answer, 400, 3).startswith(f"{field}: ")


@pytest.mark.parametrize("prefix", ["/management/v1", "/admin/v1"])
def test_the_jwt_configuration_is_updated_at_both_addresses(
    server: Server, idp: str, prefix: str
) -> None:
    """Source 4.1: 200, 403, 404 and 409, each for its reason."""
    path, body = f"{prefix}/idps/{idp}/jwt_config", json.dumps(JWT).encode()

    assert ask(server, "PUT", path, body).status == 200
    refused(ask(server, "PUT", path, body, server.bearer("viewer")), 403, 7)
    refused(ask(server, "PUT", path, body, server.bearer("stranger")), 404, 5)
    refused(ask(server, "PUT", f"{prefix}/idps/1/jwt_config", body), 404, 5)
    refused(ask(server, "PUT", path, body, {"if-match": '"1"'}), 409, 9)


@pytest.mark.parametrize(
    ("fields", "path", "is_taken"),
    [
        pytest.param({"name": "x" * 200}, "apps/oidc", True, id="app, 200 characters"),
        pytest.param({"name": "x" * 201}, "apps/oidc", False, id="app, 201 characters"),
        pytest.param({"name": ""}, "apps/oidc", False, id="app, empty name"),
        pytest.param({"name": "é" * 200, "script": SCRIPT}, "", True, id="action, 200 characters"),
        pytest.param({"name": "x" * 201, "script": SCRIPT}, "", False, id="action, 201 characters"),
        pytest.param({"name": "", "script": SCRIPT}, "", False, id="action, empty name"),
        pytest.param({"name": "s", "script": "é" * 2000}, "", True, id="script, 2000 characters"),
        pytest.param({"name": "s2", "script": "x" * 2001}, "", False, id="script, 2001 characters"),
        pytest.param({"name": "s3", "script": ""}, "", False, id="empty script"),
        pytest.param({"name": "s4"}, "", False, id="no script"),
    ],
)
def test_names_and_scripts_keep_their_limits(
    server: Server, fields: dict[str, str], path: str, *, is_taken: bool
) -> None:
    """Source 8, at the limit and one beyond; counted in characters, not in bytes."""
    project = f"/management/v1/projects/{server.known.project}"
    answer = send(server, "POST", f"{project}/{path}" if path else ACTIONS, fields)

    if is_taken:
        assert answer.status == 200, answer.body
    else:
        refused(answer, 400, 3)


def test_an_application_is_created_as_the_source_shows(server: Server) -> None:
    """Source 2.4: the secret comes with the answer, and only where there is one."""
    path = f"/management/v1/projects/{server.known.project}/apps/oidc"

    web = send(server, "POST", path, {"name": next(NAMES)})
    spa = send(
        server, "POST", path,
        {"name": next(NAMES), "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"},
    )  # fmt: skip

    fields = {"appId", "details", "clientId", "noneCompliant", "complianceProblems"}
    assert set(web.json) == fields | {"clientSecret"}
    assert set(spa.json) == fields
    assert isinstance(web.json["details"]["sequence"], str)


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
    """A proxy before us may read it otherwise; so nobody gets anything by it."""
    for template in _TEMPLATES:
        verb, _, path = template.partition(" ")
        plain = re.sub(r"{\w+}", "1", path)
        confused = [plain.replace("/v1/", f"/v1/{part}/", 1), f"{plain}/{part}"]
        if "{" in path:
            confused.append(re.sub(r"{\w+}", "1", re.sub(r"{\w+}", lambda _: part, path, count=1)))
        for target in confused:
            headers = {} if token else {"authorization": ""}
            answer = ask(server, verb, target, headers=headers)
            assert answer.status in ({400, 404, 405} if token else {401}), (verb, target)


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
    for path, body in ((ACTIONS, b"{"), ("/nowhere", b""), (SEARCH, b'{"x":1}')):
        answer = ask(server, "POST", path, body, {"authorization": ""})
        refused(answer, 401, 16)
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_plain_request_id_comes_back(server: Server) -> None:
    """So that both sides' logs can be laid side by side; an odd one is replaced."""
    given = ask(server, "POST", SEARCH, headers={"x-request-id": "run-17.a_b"})
    odd = ask(server, "POST", SEARCH, headers={"x-request-id": "a b"})

    assert given.headers["x-request-id"] == "run-17.a_b"
    assert odd.headers["x-request-id"] != "a b"


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


# The strict decoder, on the wire.


MALFORMED = {
    "nothing but space": b" ",
    "cut off": b'{"query"',
    "a list": b"[]",
    "a text": b'"x"',
    "null": b"null",
    "trailing data": b"{} {}",
    "a trailing comma": b'{"query":{},}',
    "a comment": b"{}//x",
    "single quotes": b"{'query':{}}",
    "no quotes": b"{query:{}}",
    "a byte order mark": BOM + b"{}",
    "UTF-16": '{"query":{}}'.encode("utf-16"),
    "UTF-16 without a mark": "{}".encode("utf-16-le"),
    "Latin-1": '{"queries":[{"actionNameQuery":{"name":"é"}}]}'.encode("latin-1"),
    "an overlong form": b'{"queries":[{"actionNameQuery":{"name":"\xc0\xaf"}}]}',
    "a surrogate in UTF-8": b'{"queries":[{"actionNameQuery":{"name":"\xed\xa0\x80"}}]}',
    "a name twice": b'{"query":{},"query":{}}',
    "a name twice, once escaped": b'{"query":{},"qu\\u0065ry":{}}',
    "a name twice, inside": b'{"query":{"limit":1,"limit":2}}',
    "NaN": b'{"query":{"limit":NaN}}',
    "Infinity": b'{"query":{"limit":-Infinity}}',
    "1e999": b'{"query":{"limit":1e999}}',
    "1.5": b'{"query":{"limit":1.5}}',
    "1e-1": b'{"query":{"limit":1e-1}}',
    "-1": b'{"query":{"limit":-1}}',
    "2^63": b'{"query":{"limit":9223372036854775808}}',
    "2^64 as text": b'{"query":{"limit":"18446744073709551616"}}',
    "4,301 digits": b'{"query":{"limit":' + b"1" * 4301 + b"}}",
    "4,301 decimals": b'{"query":{"limit":1.' + b"1" * 4301 + b"}}",
    "a leading zero": b'{"query":{"limit":01}}',
    "a plus": b'{"query":{"limit":+1}}',
    "hexadecimal": b'{"query":{"limit":0x1}}',
    "digits with an underscore": b'{"query":{"limit":"1_0"}}',
    "full-width digits": b'{"query":{"limit":"\xef\xbc\x91"}}',
    "a flag for a number": b'{"query":{"limit":true}}',
    "a number for a flag": b'{"query":{"asc":1}}',
    "a text for a flag": b'{"query":{"asc":"true"}}',
    "an object for a list": b'{"queries":{}}',
    "a list for an object": b'{"query":[]}',
    "null for an unknown field": b'{"":null}',
    "null for an unknown field, inside": b'{"query":{"page":null}}',
    "null for a query": b'{"queries":[{"actionNameQuery":null}]}',
    "null beside a query": b'{"queries":[{"actionNameQuery":{},"x":null}]}',
    "null in a list": b'{"queries":[null]}',
    "an unknown field": b'{"quary":{}}',
    "an unknown field, inside": b'{"query":{"page":1}}',
    "snake_case": b'{"sorting_column":"ACTION_FIELD_NAME_NAME"}',
    "another case": b'{"Query":{}}',
    "an unknown word": b'{"sortingColumn":"ACTION_FIELD_NAME_AGE"}',
    "a word in another case": b'{"sortingColumn":"action_field_name_name"}',
    "a number for a word": b'{"sortingColumn":1}',
    "NUL": b'{"queries":[{"actionNameQuery":{"name":"\\u0000"}}]}',
    "a raw NUL": b'{"queries":[{"actionNameQuery":{"name":"\x00"}}]}',
    "a raw line feed": b'{"queries":[{"actionNameQuery":{"name":"\n"}}]}',
    "half a character": b'{"queries":[{"actionNameQuery":{"name":"\\ud800"}}]}',
    "the other half": b'{"queries":[{"actionNameQuery":{"name":"\\uDFFFx"}}]}',
    "half a character in a name": b'{"\\ud800":1}',
    "an escape that is none": b'{"queries":[{"actionNameQuery":{"name":"\\x41"}}]}',
    "nested 33 deep": b'{"query":' + b"[" * 32 + b"]" * 32 + b"}",
    "nested 100,000 deep": b'{"query":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested and cut off": b'{"query":' + b"[" * 100_000,
    "a prototype": b'{"__proto__":{"x":1}}',
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=list(MALFORMED))
def test_malformed_json_is_refused(server: Server, body: bytes) -> None:
    """Whatever two readers could read differently is read by nobody."""
    refused(ask(server, "POST", SEARCH, body), 400, 3)


WELL_FORMED = {
    "empty": b"",
    "an empty object": b"{}",
    "space around": b" \t\r\n{} \n",
    "null for a field": b'{"query":null,"queries":null,"sortingColumn":null}',
    "null, inside": b'{"query":{"limit":null}}',
    "a number": b'{"query":{"limit":3}}',
    "a number as text": b'{"query":{"limit":"3"}}',
    "a whole number with a point": b'{"query":{"limit":3.0}}',
    "minus zero": b'{"query":{"limit":-0}}',
    "2^53+1": b'{"query":{"offset":9007199254740993}}',
    "2^63-1": b'{"query":{"offset":9223372036854775807}}',
    "an escaped pair": b'{"queries":[{"actionNameQuery":{"name":"\\ud83d\\udd11"}}]}',
    "an escaped back-slash": b'{"queries":[{"actionNameQuery":{"name":"\\\\u0000"}}]}',
}


@pytest.mark.parametrize("body", WELL_FORMED.values(), ids=list(WELL_FORMED))
def test_well_formed_json_is_taken(server: Server, body: bytes) -> None:
    """Strict is not narrow: what protobuf's JSON form allows is allowed."""
    answer = ask(server, "POST", SEARCH, body)

    assert answer.status == 200, answer.body


@pytest.mark.parametrize(("extra", "status"), [(0, 400), (1, 413)], ids=["at it", "beyond it"])
def test_a_body_has_a_greatest_size(server: Server, extra: int, status: int) -> None:
    """At the limit it is read (and found to be no request); one byte more is not read.

    What is not read to its end ends the connection.
    """
    start, end = b'{"x":"', b'"}'
    body = start + b"x" * (MAX_JSON - len(start) - len(end) + extra) + end

    answer = ask(server, "POST", SEARCH, body)

    refused(answer, status, 3 if status == 400 else 8)
    assert answer.closed is (status == 413)


def test_refused_requests_write_nothing(server: Server) -> None:
    """Each field of a refused create is refused before the store is touched."""
    before = len(server.events())
    for wrong in (
        {"timeout": "1m"}, {"timeout": "-1s"}, {"timeout": "21s"}, {"timeout": 1},
        {"allowedToFail": "yes"}, {"allowedToFail": 0}, {"unknown": 1}, {"name": None},
        {"script": 1}, {"name": ["x"]},
    ):  # fmt: skip
        message = refused(send(server, "POST", ACTIONS, an_action(**wrong)), 400, 3)
        assert message.startswith(f"{next(iter(wrong))}: "), message

    assert len(server.events()) == before


def test_null_is_the_same_as_left_out(server: Server) -> None:
    """For a field that there is; a field that must be there is missing then."""
    made = send(server, "POST", ACTIONS, an_action(timeout=None, allowedToFail=None))
    assert made.status == 200
    read = ask(server, "GET", f"{ACTIONS}/{made.json['id']}").json["action"]
    assert (read["timeout"], read["allowedToFail"]) == ("20s", False)

    assert "is required" in refused(send(server, "POST", ACTIONS, an_action(script=None)), 400, 3)
    assert "is not a field" in refused(send(server, "POST", ACTIONS, an_action(x=None)), 400, 3)


@pytest.mark.parametrize("count", [21, 1001])
def test_more_filters_than_allowed_are_told_as_such(server: Server, count: int) -> None:
    """A thousand were told as a store that cannot be used, and logged as one."""
    query = {"actionNameQuery": {"name": "x", "method": "TEXT_QUERY_METHOD_CONTAINS"}}

    told = refused(send(server, "POST", f"{ACTIONS}/_search", {"queries": [query] * count}), 400, 3)

    assert told == "queries: must be at most 20"


def test_a_held_lease_says_who_holds_it(server: Server) -> None:
    """Whoever waits wants to know for whom."""
    lease = {"organization": "acme", "holder": "ci run 17", "seconds": 60}
    held = send(server, "POST", "/reconciler/v1/leases", lease)
    assert held.status == 200

    answer = send(server, "POST", "/reconciler/v1/leases", {**lease, "holder": "me"})

    refused(answer, 409, 10)
    (detail,) = answer.json["details"]
    assert (detail["id"], detail["holder"]) == ("lease.held", "ci run 17")
    assert {"acquiredAt", "expiresAt", "fence"} <= set(detail)
    gone = {"organization": "acme", "lease": held.json["lease"]}
    assert send(server, "DELETE", "/reconciler/v1/leases", gone).status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/debug/healthz", "/debug/ready"])
def test_health_needs_no_token(server: Server, path: str) -> None:
    """Those who ask are machines that have none."""
    answer = ask(server, "GET", path, headers={"authorization": ""})

    assert answer.status == 200


@pytest.mark.parametrize("path", ["/management/v1/healthz", "/admin/v1/healthz"])
def test_health_is_also_where_similar_services_have_it(server: Server, path: str) -> None:
    """An empty object, as there."""
    answer = ask(server, "GET", path, headers={"authorization": ""})

    assert (answer.status, answer.json) == (200, {})


def test_head_is_get_without_a_body(server: Server) -> None:
    """Some checks of health ask so."""
    with_body = ask(server, "GET", "/management/v1/orgs/me")
    head = exchange_head(server, "/management/v1/orgs/me")

    assert head == with_body.headers["content-length"]


def exchange_head(server: Server, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("HEAD", path, headers=server.bearer())
        response = connection.getresponse()
        assert response.status == 200
        assert response.read() == b""
        return response.headers["content-length"]
    finally:
        connection.close()
