"""Objects as a ZITADEL answers them, as observed objects."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.errors import ServiceError
from reconciler.resources.call import JsonObject
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.service_client.zitadel.objects import (
    Owner,
    answered_flow,
    application,
    identity_provider,
    is_active,
    items_of,
    jwt_provider,
    organization,
    owner_of_item,
    plain_object,
    total_of,
)

ACME, SHOP = Owner("1", "acme"), Owner("2", "shop")
BASE: JsonObject = {
    "id": "7", "name": "web",
    "details": {"sequence": "9", "changeDate": "2026-01-01T00:00:00Z", "resourceOwner": "1"},
}  # fmt: skip
JWT = {"issuer": "https://a.example.com", "keysEndpoint": "https://a.example.com/keys"}
JWT |= {"jwtEndpoint": "https://a.example.com/login", "headerName": "x-token"}


def test_what_is_left_out_is_at_its_default() -> None:
    """The JSON of a ZITADEL has no zero values."""
    action = plain_object(
        Kind.ACTION, {**BASE, "script": "s", "state": "ACTION_STATE_ACTIVE"}, ACME
    )
    web = application({**BASE, "oidcConfig": {"clientId": "c", "noneCompliant": True}}, ACME, SHOP)

    assert (action.ref.organization, action.ref.name, action.organization_id) == (
        "acme",
        "web",
        "1",
    )
    assert (action.id, action.sequence, action.active) == ("7", 9, True)
    assert (action.changed_at, action.created_at) == ("2026-01-01T00:00:00Z", "")
    assert action.spec == {**DEFAULTS[Kind.ACTION], "script": "s"}
    assert (web.ref.project, web.project_id, web.client_id) == ("shop", "2", "c")
    assert (web.carried, web.uncarried) == ({}, ())
    assert organization(BASE).organization_id == "7"
    assert owner_of_item(BASE) == "1"


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"sequence": "9", "changeDate": "b"}, ""),
        ({"sequence": "9", "changeDate": "b", "creationDate": "a"}, "a"),
        ({"sequence": "1", "changeDate": "a"}, "a"),
    ],
)
def test_the_time_of_the_creation_is_that_of_the_first_event(
    details: JsonObject, expected: str
) -> None:
    """It is not told of actions; the last change is at the first event if there was no other."""
    action = plain_object(Kind.ACTION, {**BASE, "script": "s", "details": details}, ACME)

    assert action.created_at == expected


@pytest.mark.parametrize(
    ("held", "strange"),
    [
        (application({**BASE, "apiConfig": {}}, ACME, SHOP),
         ("the configuration of an API application",)),
        (application({**BASE}, ACME, SHOP), ("no configuration",)),
        (jwt_provider({**BASE, "owner": "O", "type": "T", "config": {"ldap": {}}}, ACME),
         ("config", "type")),
        (identity_provider({**BASE, "owner": "O", "stylingType": "S", "oidcConfig": {}}, ACME),
         ("oidcConfig",)),
    ],
)  # fmt: skip
def test_what_no_manifest_can_say_is_marked(held: Any, strange: tuple[str, ...]) -> None:
    """Nothing ever writes to it."""
    assert held.uncarried == strange


def test_what_is_not_known_of_a_provider_is_sent_back() -> None:
    """An update would reset it otherwise."""
    config = {"jwt": {**JWT, "newer": 1}, "options": {"isLinkingAllowed": True}, "more": 2}
    new = jwt_provider({**BASE, "owner": "O", "type": "T", "config": config, "later": 3}, ACME)
    old = identity_provider({**BASE, "owner": "O", "autoRegister": True, "jwtConfig": JWT}, ACME)

    assert new.spec == old.spec == {**JWT, "audience": ""}
    assert new.carried == {
        "newer": 1, "more": 2, "later": 3, "providerOptions": {"isLinkingAllowed": True},
    }  # fmt: skip
    assert old.carried == {"autoRegister": True}


@pytest.mark.parametrize(
    ("state", "active"), [("ACTION_STATE_INACTIVE", False), ("APP_STATE_ACTIVE", True), ("", True)]
)
def test_a_state_that_is_missing_is_no_other_one(state: str, *, active: bool) -> None:
    assert is_active({"state": state}) is active


@pytest.mark.parametrize(
    ("answer", "total"), [({}, 0), ({"details": {}}, 0), ({"details": {"totalResult": "12"}}, 12)]
)
def test_a_list_says_how_many_items_it_has(answer: JsonObject, total: int) -> None:
    assert total_of(answer) == total
    assert items_of(answer) == []


@pytest.mark.parametrize(
    "answer",
    [{"details": []}, {"details": {"totalResult": 7}}, {"details": {"totalResult": "1" * 10}}],
)
def test_a_total_that_is_no_number_is_an_error(answer: JsonObject) -> None:
    with pytest.raises(ServiceError, match="totalResult"):
        total_of(answer)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"result": {}}, "result is not a list"),
        ({"result": [1]}, "result is not a list"),
    ],
)
def test_items_that_are_no_objects_are_an_error(fields: JsonObject, problem: str) -> None:
    with pytest.raises(ServiceError, match=problem):
        items_of(fields)


def test_a_flow_has_the_triggers_that_run_actions() -> None:
    triggers = [
        {"triggerType": {"id": "4"}, "actions": [{"id": "7"}]},
        {"triggerType": {"id": "5"}},
    ]

    found = answered_flow({"flow": {"triggerActions": triggers, "details": {"sequence": "9"}}})

    assert (found.triggers, found.sequence, found.changed_at) == ({"4": [{"id": "7"}]}, 9, "")
    assert answered_flow({"flow": {}}).triggers == {}


@pytest.mark.parametrize(
    "answer", [{}, {"flow": []}, {"flow": {"triggerActions": [{"triggerType": "4"}]}}]
)
def test_a_flow_that_cannot_be_read_is_an_error(answer: JsonObject) -> None:
    with pytest.raises(ServiceError, match="not an object"):
        answered_flow(answer)
