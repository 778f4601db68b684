"""Objects as a ZITADEL answers them, as observed objects."""

from __future__ import annotations

import pytest

from reconciler.errors import ServiceError
from reconciler.kinds.zitadel import ZITADEL
from reconciler.resources.call import JsonObject
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.service_client.zitadel.objects import (
    Owner,
    is_active,
    items_of,
    organization,
    owner_of_item,
    total_of,
)

ACME, ACTION = Owner("1", "acme"), ZITADEL[Kind.ACTION]
BASE: JsonObject = {
    "id": "7", "name": "web",
    "details": {"sequence": "9", "changeDate": "2026-01-01T00:00:00Z", "resourceOwner": "1"},
}  # fmt: skip


def test_what_is_left_out_is_at_its_default() -> None:
    """The JSON of a ZITADEL has no zero values."""
    action = ACTION.observed({**BASE, "script": "s", "state": "ACTION_STATE_ACTIVE"}, ACME)

    assert (action.ref.organization, action.ref.name, action.organization_id) == (
        "acme",
        "web",
        "1",
    )
    assert (action.id, action.sequence, action.active) == ("7", 9, True)
    assert (action.changed_at, action.created_at) == ("2026-01-01T00:00:00Z", "")
    assert action.spec == {**DEFAULTS[Kind.ACTION], "script": "s"}
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
    action = ACTION.observed({**BASE, "script": "s", "details": details}, ACME)

    assert action.created_at == expected


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
