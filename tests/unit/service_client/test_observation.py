"""Listings as observed state, and their contradictions."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.errors import ServiceError
from reconciler.resources.ref import Kind
from reconciler.service_client.observation import observed_objects, with_names
from tests.builders import TOKEN, declared
from tests.rows import each_row
from tests.unit.service_client.test_answers import SPECS

DETAILS = {
    "sequence": "4",
    "creationDate": "2025-01-01T00:00:00Z",
    "changeDate": "2026-01-01T00:00:00Z",
}


def listed(kind: str, object_id: str, name: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": kind, "id": object_id, "organizationId": "1", "projectId": "", "name": name,
        "spec": {}, "details": DETAILS, "state": "ACTIVE",
        "clientId": "", "trees": [], "changedBy": "", "owner": None, "hasSecret": False,
        "preventDelete": False, "critical": False, "ignore": [], **more,
    }  # fmt: skip


USERINFO = "PRE_USERINFO_CREATION"
ORG = listed("Organization", "1", "acme")
SHOP = listed("Project", "2", "shop", spec=SPECS[Kind.PROJECT])


APP = listed("OidcApplication", "3", "web", projectId="2", spec=SPECS[Kind.OIDC_APPLICATION])


@each_row(
    ("others", "reason"),
    [
        ([SHOP, SHOP], "twice"),
        ([SHOP, {**SHOP, "id": "9"}], "twice"),
        ([SHOP, {**SHOP, "id": "9", "name": "SHOP"}], "twice"),
        ([APP], "owner"),
        ([SHOP, {**APP, "organizationId": "8"}], "owner"),
        ([listed("Toaster", "5", "x")], "upgrade this program"),
    ],
)
def test_a_listing_that_contradicts_itself_is_incomplete(
    others: list[dict[str, Any]], reason: str
) -> None:
    """Nothing is written from half a picture."""
    incomplete: list[str] = []

    found = list(observed_objects(("1", "acme"), [ORG, *others], incomplete).values())

    assert len(incomplete) == 1
    assert reason in incomplete[0]
    assert found[0].ref.name == "acme"


def test_an_object_has_the_times_of_its_creation_and_of_its_last_change() -> None:
    (found,) = observed_objects(("1", "acme"), [ORG], []).values()

    assert found.created_at == "2025-01-01T00:00:00Z"
    assert found.changed_at == "2026-01-01T00:00:00Z"


@each_row("state", [{}, {"state": ""}, {"state": "REMOVED"}])
def test_a_state_that_is_neither_of_two_is_an_error(state: dict[str, Any]) -> None:
    """An inactive object taken for an active one would be left as it is."""
    told = {**{name: value for name, value in ORG.items() if name != "state"}, **state}

    with pytest.raises(ServiceError, match=r"its state is (missing|neither ACTIVE nor INACTIVE)"):
        observed_objects(("1", "acme"), [told], [])


@each_row("name", ["owner", "preventDelete", "critical", "hasSecret", "ignore"])
def test_a_mark_of_another_type_is_an_error(name: str) -> None:
    """Protection that is not understood would be taken for none."""
    with pytest.raises(ServiceError, match=f"its {name} is"):
        observed_objects(("1", "acme"), [{**ORG, name: 1}], [])


def test_an_organization_must_be_in_its_own_listing() -> None:
    """Otherwise it is the listing of another."""
    incomplete: list[str] = []

    assert observed_objects(("1", "acme"), [], incomplete) == {}
    assert incomplete == ["acme is not in its own listing."]


def test_listed_flows_name_their_actions() -> None:
    """A flow without an action that is listed makes the listing incomplete."""
    flow = {
        "kind": "ActionFlow",
        "name": "COMPLEMENT_TOKEN",
        "spec": {"PRE_USERINFO_CREATION": ["7", "9"]},
    }
    listed: list[dict[str, Any]] = [flow, {"kind": "Action", "id": "7", "name": "greet"}]
    incomplete: list[str] = []

    (named, _) = with_names(listed, "acme", incomplete)

    assert named["spec"] == declared(TOKEN, {USERINFO: ["greet", "9"]}).spec
    assert incomplete == ["acme lists actions of COMPLEMENT_TOKEN that it does not list."]
