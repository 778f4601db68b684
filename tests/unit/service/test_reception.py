"""Calls from outside: who is it, which organization is it for, and what if that cannot be told."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from typing import Any

import pytest

from reconciler.service.build import IdentityService, open_memory
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnusableError,
)
from reconciler.service.operations.reception import Incoming, Received, Reception
from tests.running import Known, furnish

UNREADABLE = Refusal(Code.INVALID_ARGUMENT, "the fields", "no.fields")
NOBODY = (Code.UNAUTHENTICATED, "the token is not known to this service")


@pytest.fixture
def service() -> IdentityService:
    """Return a service that holds nothing."""
    return open_memory()


@pytest.fixture
def known(service: IdentityService) -> Known:
    """Furnish the service."""
    return furnish(service)


def incoming(token: str, operation: str = "GetMyOrg", fields: Any = None, **more: str) -> Incoming:
    """Return a call with a token; headers by keyword."""
    headers = {name.replace("_", "-"): [value] for name, value in more.items()}
    return Incoming(operation, fields or {}, {"authorization": [f"Bearer {token}"], **headers})


def refused(received: Received) -> tuple[Code, str]:
    """Return code and message of a refusal."""
    assert isinstance(received.answer, Refusal)
    return received.answer.code, received.answer.message


def test_each_call_of_a_batch_is_its_own_callers(service: IdentityService, known: Known) -> None:
    """Answers come in the order of the calls, those of refused ones in their places."""
    tokens = [known.tokens[name] for name in ("editor", "stranger", "editor")]
    calls = [incoming(token) for token in tokens]
    calls.insert(1, incoming("nonsense"))

    received = service.reception.receive(calls)

    assert refused(received[1]) == NOBODY
    assert [one.caller for one in received] == ["editor", "", "stranger", "editor"]
    own = [one.answer["org"]["id"] for one in received if isinstance(one.answer, dict)]
    assert own == [known.organization, known.other_organization, known.organization]


def test_only_who_is_known_is_told_what_is_wrong(service: IdentityService, known: Known) -> None:
    """What could not be read of a request, and what is odd beside it."""
    editor = known.tokens["editor"]
    calls = [
        incoming("nonsense", fields=UNREADABLE),
        incoming("nonsense", if_match="41"),
        incoming(editor, fields=UNREADABLE, if_match="41"),
        incoming(editor, if_match="41"),
    ]

    told = [refused(received) for received in service.reception.receive(calls)]

    assert told[:3] == [NOBODY, NOBODY, (Code.INVALID_ARGUMENT, "the fields")]
    assert told[3][1].startswith("if-match: ")


def test_what_comes_beside_a_request_reaches_its_operation(
    service: IdentityService, known: Known
) -> None:
    """Each header by what it does: names, expects, repeats, holds, explains."""
    admin, action = known.tokens["admin"], {"name": "greet", "script": "function greet() {}"}
    other = {"x_service_orgid": known.other_organization}

    def receive(operation: str, fields: dict[str, Any], **more: str) -> Any:
        (received,) = service.reception.receive([incoming(admin, operation, fields, **more)])
        return received.answer

    made = receive("CreateAction", action, idempotency_key="k", **other)
    again = receive("CreateAction", action, idempotency_key="k", **other)
    assert (made["details"]["resourceOwner"], again) == (known.other_organization, made)
    expected = {"if_match": '"1"', **other}
    assert receive("DeleteAction", {"id": made["id"]}, **expected).reason == "object.moved_on"
    lost = {"x_reconciler_lease": "1.x", **other}
    assert receive("DeleteAction", {"id": made["id"]}, **lost).reason == "lease.lost"
    receive("DeleteAction", {"id": made["id"]}, x_reconciler_context='{"tree":"t"}', **other)
    events = receive("GetObjectHistory", {"id": made["id"]}, **other)["events"]
    assert [(event["context"], event["writer"]) for event in events] == [
        ({}, "admin"),
        ({"tree": "t"}, "admin"),
    ]


def test_health_is_told_to_anybody_and_nothing_else_is(service: IdentityService) -> None:
    """Not even where a token comes along that nobody knows."""
    calls = [
        Incoming("Healthz", {}, {}),
        incoming("nonsense", "Healthz"),
        Incoming("GetIAM", {}, {}),
    ]

    health, with_token, other = service.reception.receive(calls)

    assert health == with_token == Received("", {})
    assert refused(other)[0] is Code.UNAUTHENTICATED


class BrokenStore:
    """A store that fails whenever it is looked at."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def snapshot(self) -> AbstractContextManager[Any]:
        raise self._failure


@pytest.mark.parametrize(
    ("failure", "code", "reason", "said"),
    [
        (StoreFullError("/var/secret", "r"), Code.RESOURCE_EXHAUSTED, "store.full", "is full"),
        (StoreBusyError("/var/secret", "r"), Code.UNAVAILABLE, "store.busy", "is busy"),
        (StoreUnusableError("/var/secret", "r"), Code.UNAVAILABLE, "store.unavailable", "be used"),
        (StoreError("/var/secret", "r"), Code.UNAVAILABLE, "store.unavailable", "be used"),
        (MemoryError("/var/secret"), Code.UNAVAILABLE, "service.exhausted", "short of"),
        (OSError(24, "/var/secret"), Code.UNAVAILABLE, "service.exhausted", "short of"),
        (ValueError("/var/secret"), Code.INTERNAL, "service.failed", "the service failed"),
    ],
)
def test_a_failure_of_ours_is_an_answer_that_shows_nothing(
    service: IdentityService,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
    *,
    code: Code,
    reason: str,
    said: str,
) -> None:
    """Every call of the batch gets it; what happened stands in the log of the operator."""
    store: Any = BrokenStore(failure)
    reception = Reception(store, service.reception._engine, service.now)

    with caplog.at_level(logging.WARNING, "reconciler.service"):
        received = reception.receive([incoming("a"), incoming("b")])

    assert len(received) == 2
    for caller, answer in received:
        assert isinstance(answer, Refusal)
        assert (caller, answer.code, answer.reason) == ("", code, reason)
        assert said in answer.message
        assert "secret" not in answer.message
    assert "/var/secret" in caplog.text


@pytest.mark.parametrize("failure", [None, StoreError("gone", "wait")])
def test_readiness_is_that_the_store_can_be_read(
    service: IdentityService, failure: StoreError | None
) -> None:
    """A server whose store is gone is left out of the balance, and not restarted for it."""
    store: Any = BrokenStore(failure) if failure else service.store

    assert Reception(store, service.reception._engine, service.now).can_read() is (failure is None)


def test_a_token_of_one_organization_is_known_by_it_from_its_second_call_on() -> None:
    """Most clients name no organization; their writes are to share commits all the same."""
    service = open_memory()
    known = furnish(service)
    calls = {
        name: Incoming("GetMyOrg", {}, {"authorization": [f"Bearer {token}"]})
        for name, token in known.tokens.items()
    }

    before = [service.reception.organization_of(call) for call in calls.values()]
    service.reception.receive(list(calls.values()))
    after = {name: service.reception.organization_of(call) for name, call in calls.items()}

    assert set(before) == {""}
    assert after == {
        "admin": "",
        "editor": known.organization,
        "viewer": known.organization,
        "stranger": known.other_organization,
    }


@pytest.mark.parametrize("authorization", [[], ["Bearer nonsense"], ["Basic x"], ["Bearer a"] * 2])
def test_the_organization_that_is_named_counts_whoever_asks(authorization: list[str]) -> None:
    """Whether the caller may is asked later, of the store."""
    reception = open_memory().reception
    for headers, named in (
        ({"x-service-orgid": ["7"]}, "7"),
        ({"x-zitadel-orgid": ["8"]}, "8"),
        ({}, ""),
    ):
        call = Incoming("CreateAction", {}, {**headers, "authorization": authorization})

        assert reception.organization_of(call) == named
