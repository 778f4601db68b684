"""HTTP requests of calls; responses and failed connections as replies."""

from __future__ import annotations

import json
import socket
import tracemalloc
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from reconciler.errors import (
    AccessDeniedError,
    PreconditionFailedError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.resources.call import Call, is_id
from reconciler.resources.strict_json import check_count
from reconciler.service_client.endpoint import parse_endpoint
from reconciler.service_client.http_messages import (
    MAX_VALUES,
    Target,
    asked_pause,
    connection_failure,
    may_repeat,
    reply_of,
    target_of,
)
from reconciler.service_client.wire import (
    Answer,
    WireRefusal,
    error_id,
    service_error,
)
from tests.examples import Clock
from tests.memory_store import open_memory
from tests.rows import each_row
from tests.unit.service.asking import Asking

JSON = "application/json"


def refusal(status: int, body: Any, content_type: str = JSON) -> WireRefusal:
    reply = reply_of(status, content_type, json.dumps(body).encode())
    assert isinstance(reply, WireRefusal)
    return reply


def test_an_answer_is_the_object_in_it() -> None:
    """With or without the encoding in its type."""
    assert reply_of(200, "application/json; charset=utf-8", b'{"id": "1"}') == Answer({"id": "1"})


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 400])
def test_millions_of_tiny_values_are_not_read(status: int) -> None:
    """Four million empty objects are 12 MB of text, and 350 MB in memory."""
    content = b'{"message": "no", "objects": [' + b"{}," * 4_000_000 + b"{}]}"
    tracemalloc.start()
    try:
        told = reply_of(status, JSON, content)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert isinstance(told, WireRefusal)
    too_many = f"it holds too many names and values (the most is {MAX_VALUES})"
    said = {200: f"the service's answer cannot be read: {too_many}", 400: "HTTP status 400"}
    assert told.message == said[status]
    assert told.unsure == (status == 200)
    assert most < 1_000_000


def test_a_page_full_of_long_scripts_is_read() -> None:
    """However many commas they have: those are no values."""
    page = {"objects": [{"id": str(number), "script": "[{,:" * 500} for number in range(1000)]}

    assert reply_of(200, JSON, json.dumps(page).encode()) == Answer(page)


@pytest.mark.slow
def test_a_full_page_has_far_fewer_values_than_are_read() -> None:
    """A thousand applications with fifty addresses each are less than half of that."""
    with closing(open_memory()) as service:
        ask = Asking(service, Clock())
        ask.prepare()
        ask.an_app(redirectUris=[f"https://example.com/{number}" for number in range(50)])
        page = json.dumps({"objects": ask.objects() * 1000, "next": "1"}).encode()

    check_count(page, MAX_VALUES // 2)


def test_a_refusal_is_told_by_its_body_before_its_status() -> None:
    """A failed precondition is HTTP 400 at one service and 409 at another."""
    for status in (400, 409, 412):
        told = refusal(status, {"code": 9, "message": "no", "details": []})
        assert (told.code, told.message, told.unsure) == (9, "no", False)
        assert isinstance(service_error(told), PreconditionFailedError)


@each_row(
    ("status", "code"),
    [(400, 3), (401, 16), (403, 7), (409, 10), (412, 9), (429, 8),
     (418, 2), (500, 2), (502, 14), (503, 14), (504, 14)],
)  # fmt: skip
def test_without_a_body_the_status_must_do(status: int, code: int) -> None:
    """Gateways and proxies say no in their own way."""
    told = reply_of(status, "text/html", b"<h1>no</h1>")

    assert isinstance(told, WireRefusal)
    assert (told.code, told.message) == (code, f"HTTP status {status}")


@each_row(("status", "code"), [(404, 5), (405, 12), (501, 12)])
def test_a_status_alone_does_not_say_that_an_object_is_missing(status: int, code: int) -> None:
    """A website says that of a call it does not know; a service says which code it means."""
    told = refusal(status, {"message": "Not Found"})

    assert (told.code, told.unsure) == (code, False)
    assert told.message.endswith(f"(HTTP status {status})")
    assert service_error(told).remedy.startswith("Check the address in --service")


@each_row("code", [0, 17, -1, True, "9", None, 9.0])
def test_a_code_that_is_none_is_not_believed(code: Any) -> None:
    """The status still tells the truth."""
    assert refusal(403, {"code": code, "message": 7}) == WireRefusal(7, "HTTP status 403")


@pytest.mark.parametrize(
    ("body", "is_told"), [({"code": 5}, True), ({"code": 404}, False), ({}, False)]
)
def test_a_code_of_the_answer_is_known_from_one_of_the_status(
    body: dict[str, Any], *, is_told: bool
) -> None:
    """Both have the same number; only a service itself tells a code of gRPC."""
    told = refusal(404, body)

    assert (told.code, told.is_code_told) == (5, is_told)


def test_facts_of_all_details_are_told_by_name() -> None:
    """Whether they stand in a detail itself or in its metadata."""
    told = refusal(
        409,
        {
            "code": 10,
            "message": "held",
            "details": [
                {"@type": "a", "id": "lease.held", "holder": "ben"},
                {"@type": "b", "metadata": {"fence": "7", "holder": "other"}},
                "nonsense",
            ],
        },
    )

    assert (told.details["id"], told.details["holder"], told.details["fence"]) == (
        "lease.held", "ben", "7",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("message", "details", "found"),
    [
        ("x", [{"id": "COMMAND-1m88i"}], "COMMAND-1m88i"),
        ("No changes (COMMAND-1m88i)", [], "COMMAND-1m88i"),
        ("nothing (of the kind)", [], ""),
    ],
)
def test_reasons_are_told_by_their_ids(message: str, details: list[Any], found: str) -> None:
    """Their sentences are translated, and one code has many reasons."""
    told = refusal(400, {"code": 9, "message": message, "details": details})

    assert error_id(told) == found


def test_a_stranger_is_told_that_it_is_about_rights() -> None:
    """A ZITADEL says not found to who is no member."""
    body = {"code": 5, "message": "x", "details": [{"id": "AUTHZ-cdgFk"}]}

    assert isinstance(service_error(refusal(404, body)), AccessDeniedError)


@pytest.mark.parametrize("code", [1, 2, 4, 13, 14])
def test_after_a_failure_in_the_middle_nobody_is_sure(code: int) -> None:
    """The journal keeps such a create open."""
    told = refusal(500, {"code": code, "message": "x"})

    assert told.unsure
    assert isinstance(service_error(told), ServiceUnavailableError)


def test_a_long_message_is_cut() -> None:
    """Whoever sends a megabyte of it does not fill the terminal."""
    assert len(refusal(400, {"code": 3, "message": "x" * 10_000}).message) == 500


@each_row(
    ("call", "target"),
    [
        (Call("GetServiceInfo"), Target("GET", "/reconciler/v1/service", None)),
        (
            Call("ListObjects", {"organizationId": "7", "cursor": "", "limit": 10}),
            Target("GET", "/reconciler/v1/organizations/7/objects?limit=10", None),
        ),
        (
            Call("AddOIDCApp", {"projectId": "2", "name": "w\u00eb"}),
            Target("POST", "/management/v1/projects/2/apps/oidc", b'{"name":"w\\u00eb"}'),
        ),
        (
            Call("RemoveApp", {"projectId": "2", "appId": "3"}),
            Target("DELETE", "/management/v1/projects/2/apps/3", None),
        ),
        (
            Call("ReleaseLease", {"organization": "acme", "lease": "1.x"}),
            Target("DELETE", "/reconciler/v1/leases", b'{"organization":"acme","lease":"1.x"}'),
        ),
        (
            Call("RegenerateOIDCClientSecret", {"projectId": "2", "appId": "3"}),
            Target(
                "POST",
                "/management/v1/projects/2/apps/3/oidc_config/_generate_client_secret",
                b"{}",
            ),
        ),
    ],
)
def test_a_call_has_one_address(call: Call, target: Target) -> None:
    """What is not in the path goes into the query or the body."""
    assert target_of(call) == target


@each_row("object_id", ["", "..", "a/b", "a%2fb", "a?b", "a#b", "a b", "\u0661", "a\n", "x" * 201])
def test_what_could_leave_its_place_in_a_path_is_no_id(object_id: str) -> None:
    """Ids come from the service, and steer no address but their own."""
    assert not is_id(object_id)
    with pytest.raises(ServiceError):
        target_of(Call("DeleteAction", {"id": object_id}))


SERVICE = parse_endpoint("https://id.example.com")


def wrapped(cause: Exception | None, message: str = "All connection attempts failed") -> Exception:
    """Return a failure as the HTTP library raises it, with the system's as the cause."""
    failure, middle = RuntimeError(message), RuntimeError(message)
    middle.__cause__ = cause
    failure.__cause__ = middle
    return failure


@pytest.mark.parametrize(
    ("failure", "problem", "remedy"),
    [
        (
            wrapped(ConnectionRefusedError(111, "refused")),
            "https://id.example.com cannot be reached: connection refused, no server listens there",
            "Start the service",
        ),
        (
            wrapped(socket.gaierror(-2, "Name or service not known")),
            "https://id.example.com cannot be reached: the host id.example.com is unknown",
            "Correct the host in --service.",
        ),
        (
            wrapped(TimeoutError()),
            "https://id.example.com cannot be reached (it took too long)",
            "Check the address",
        ),
        (
            wrapped(None, "[SSL: CERTIFICATE_VERIFY_FAILED] another reason"),
            "the certificate of https://id.example.com cannot be trusted",
            "Install the certificate authority",
        ),
    ],
)
def test_each_cause_has_its_own_words(failure: Exception, problem: str, remedy: str) -> None:
    """They reach the reader, who otherwise reads to try again."""
    why = connection_failure(failure, SERVICE, through_proxy=False)
    told = service_error(why)

    assert told.problem == problem
    assert told.remedy.startswith(remedy)


def test_a_certificate_that_is_not_trusted_may_be_the_fault_of_a_missing_file() -> None:
    why = connection_failure(
        wrapped(None, "CERTIFICATE_VERIFY_FAILED"), SERVICE, through_proxy=False
    )

    assert "Where SSL_CERT_FILE is set, check that its file is there." in why.remedy


def test_behind_a_proxy_the_proxy_is_what_cannot_be_reached() -> None:
    why = connection_failure(wrapped(ConnectionRefusedError()), SERVICE, through_proxy=True)

    assert "through the proxy" in why.message
    assert "HTTPS_PROXY" in why.remedy


@each_row(
    ("call", "may"),
    [
        (Call("ListApps"), True),
        (Call("AddOIDCApp"), False),
        (Call("AddOIDCApp", idempotency_key="k"), True),
        (Call("UpdateAction"), False),
        (Call("UpdateAction", expected_sequence=0), False),
        (Call("DeleteAction", expected_sequence=7), False),
        (Call("RegenerateOIDCClientSecret"), False),
        (Call("RenewLease"), True),
        (Call("AcquireLease"), False),
    ],
)
def test_what_counts_twice_is_not_repeated(call: Call, *, may: bool) -> None:
    """Only where the service itself keeps a second one from counting."""
    assert may_repeat(call) is may


NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@each_row(
    ("told", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("60", 60.0),
        ("61", 60.0),
        ("9999999999", 60.0),
        ("99999999999999999999", 0.0),
        ("-1", 0.0),
        ("1.5", 0.0),
        ("\u0667", 0.0),
        ("", 0.0),
        ("soon", 0.0),
        ("Thu, 01 Jan 2026 12:00:09 GMT", 9.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("Thu, 01 Jan 2099 12:00:00 GMT", 60.0),
        ("Thu, 01 Jan 2026 12:00:09 -0000", 9.0),
        ("Thu, 99 Foo 2026 12:00:09 GMT", 0.0),
    ],
)
def test_what_a_service_asks_for_is_read_and_bounded(told: str, seconds: float) -> None:
    """Seconds or a date; nonsense is nothing, and nobody is waited for longer than a minute."""
    assert asked_pause(told, NOON) == seconds
