"""Listings as observed state, and their contradictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconciler.errors import ServiceError
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.ref import Kind
from reconciler.service_client.observation import MOST_PAGES, cursor_pages, observed_objects
from tests.unit.service_client.test_specs import SPECS


def listed(kind: str, object_id: str, name: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": kind, "id": object_id, "organizationId": "1", "projectId": "", "name": name,
        "spec": {}, "details": {"sequence": "4", "changeDate": "2026-01-01T00:00:00Z"},
        "clientId": "", "trees": [], "changedBy": "", **more,
    }  # fmt: skip


ORG, SHOP = listed("Organization", "1", "acme"), listed("Project", "2", "shop")


APP = listed("OidcApplication", "3", "web", projectId="2", spec=SPECS[Kind.OIDC_APPLICATION])


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ([SHOP, SHOP], "twice"),
        ([SHOP, {**SHOP, "id": "9"}], "twice"),
        ([SHOP, {**SHOP, "id": "9", "name": "SHOP"}], "twice"),
        ([APP], "owner"),
        ([SHOP, {**APP, "organizationId": "8"}], "owner"),
        ([listed("Toaster", "5", "x")], "upgrade this program"),
    ],
    ids=["an id", "a name", "a name in another case", "no project", "a stranger's", "a new kind"],
)
def test_a_listing_that_contradicts_itself_is_incomplete(
    others: list[dict[str, Any]], reason: str
) -> None:
    """Nothing is written from half a picture."""
    incomplete: list[str] = []

    found = list(observed_objects(("1", "acme"), [ORG, *others], incomplete))

    assert len(incomplete) == 1
    assert reason in incomplete[0]
    assert found[0].ref.name == "acme"


def test_an_organization_must_be_in_its_own_listing() -> None:
    """Otherwise it is the listing of another."""
    incomplete: list[str] = []

    assert list(observed_objects(("1", "acme"), [], incomplete)) == []
    assert incomplete == ["acme is not in its own listing."]


def paged(pages: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return the lists and cursors that are asked for, where each list answers these cursors."""
    asked: list[tuple[str, str]] = []

    def ask(calls: Sequence[Call]) -> Sequence[JsonObject]:
        here = [(str(call.fields["list"]), str(call.fields["cursor"])) for call in calls]
        turns = [sum(name == known for known, _ in asked) for name, _ in here]
        asked.extend(here)
        return [{"next": pages[name][turn]} for (name, _), turn in zip(here, turns, strict=True)]

    calls = {name: Call("L", {"list": name, "cursor": ""}) for name in pages}
    names = [name for name, _ in cursor_pages(ask, calls, "cursor")]
    assert names == [name for name, _ in asked]
    return asked


def test_lists_are_read_together_to_their_ends() -> None:
    """A page of each at a time; one that answers a cursor again has ended."""
    asked = paged({"a": ["1", "2", ""], "b": [""], "c": ["1", "1"]})

    assert asked == [("a", ""), ("b", ""), ("c", ""), ("a", "1"), ("c", "1"), ("a", "2")]


def test_a_list_without_an_end_is_an_error() -> None:
    """The run is told, and does not read for ever."""
    with pytest.raises(ServiceError, match="do not end"):
        paged({"a": [str(number) for number in range(1, MOST_PAGES + 1)]})


def test_a_list_of_the_most_pages_is_read() -> None:
    """Only a page that follows them is too many."""
    pages = [*map(str, range(1, MOST_PAGES)), ""]

    assert len(paged({"a": pages})) == MOST_PAGES
