"""Which fields a change alters: all of them, and no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.kinds.fields import KINDS
from reconciler.plan.diff import (
    FieldChange,
    empties_a_list,
    field_changes,
    is_not_sent,
    kept_lists,
    kept_notes,
    spec_after,
)
from reconciler.plan.digest import plan_digest
from reconciler.plan.matching import match
from reconciler.plan.model import Adopt, Change, Create, Delete, Update
from reconciler.plan.planner import build_plan
from reconciler.plan.risk import expected_problems, risks_of
from reconciler.resources.ref import Kind
from tests.builders import (
    ACME,
    GREET,
    HOUSE,
    NONE,
    OWNERS,
    PARTNER,
    WEB,
    FakeSource,
    a_jwt_config,
    a_ref,
    an_action,
    an_application,
    declared,
    desired,
    held,
    observed,
)
from tests.effort import cases
from tests.rows import each_row


def field(name: str, before: Any, after: Any, *, reset: bool = False) -> FieldChange:
    return FieldChange(name, before, after, reset)


ONE, TWO = ["https://a.example.com/"], ["https://a.example.com/", "https://b.example.com/"]


@each_row(
    ("change", "expected"),
    [
        pytest.param(
            Create(declared(WEB, {"redirectUris": ONE, "devMode": False})),
            [
                field("redirectUris", before=None, after=ONE),
                field("devMode", before=None, after=False),
            ],
            id="a create shows what the manifest says, defaults said included, in the kind's order",
        ),
        pytest.param(Create(declared(ACME)), [], id="a create without fields"),
        pytest.param(Delete(held(WEB)), [], id="a delete alters no field"),
        pytest.param(
            Update(
                declared(WEB, an_application(devMode=True)),
                held(WEB, an_application(clockSkew="1s")),
            ),
            [
                field("devMode", before=False, after=True),
                field("clockSkew", before="1s", after="0s", reset=True),
            ],
            id="a field the manifest does not say is marked as reset",
        ),
        pytest.param(
            Update(
                declared(WEB, an_application(devMode=False)),
                held(WEB, an_application(devMode=True)),
            ),
            [field("devMode", before=True, after=False)],
            id="a field the manifest takes back to its default itself is not",
        ),
        pytest.param(
            Adopt(declared(PARTNER), held(PARTNER, a_jwt_config(headerName="old"), trees=[])),
            [field("headerName", before="old", after="x-token")],
            id="an adoption is shown like an update",
        ),
        pytest.param(
            Update(
                declared(GREET, an_action(timeout="1.5s")), held(GREET, an_action(timeout="2s"))
            ),
            [field("timeout", before="2s", after="1.5s")],
            id="values are shown in normal form",
        ),
        pytest.param(
            Update(
                declared(a_ref(name="web"), an_application(devMode=True), pinned_id="7"),
                held(WEB, object_id="7"),
            ),
            [
                field("metadata.name", before="storefront", after="web"),
                field("devMode", before=False, after=True),
            ],
            id="a rename comes first",
        ),
        pytest.param(
            Create(declared(GREET, an_action(timeout="1s"), prevent_delete=True, critical=True)),
            [
                field("metadata.preventDelete", before=None, after=True),
                field("metadata.critical", before=None, after=True),
                field("script", before=None, after=an_action()["script"]),
                field("timeout", before=None, after="1s"),
            ],
            id="a new object that is protected and critical",
        ),
        pytest.param(
            Create(replace(declared(GREET, {}), active=False)),
            [field("metadata.active", before=None, after=False)],
            id="a new object that is made inactive",
        ),
        pytest.param(
            Create(replace(declared(GREET, {}), active=True)),
            [],
            id="a new object declared active, as it is anyway",
        ),
        pytest.param(
            Update(declared(WEB, prevent_delete=True), held(WEB)),
            [field("metadata.preventDelete", before=False, after=True)],
            id="protection",
        ),
        pytest.param(
            Update(declared(WEB), held(WEB, prevent_delete=True)),
            [field("metadata.preventDelete", before=True, after=False)],
            id="protection lifted",
        ),
        pytest.param(
            Update(
                declared(WEB, an_application(devMode=True), prevent_delete=True),
                held(WEB, prevent_delete=None),
            ),
            [field("devMode", before=False, after=True)],
            id="no protection where the service cannot remember it",
        ),
        pytest.param(
            Update(replace(declared(WEB), owner=""), held(WEB, owner="theirs")),
            [field("owner", before="theirs", after=None)],
            id="an undo that gives an object back to no tree",
        ),
        pytest.param(
            Update(replace(declared(WEB), owner="theirs"), held(WEB, owner="")),
            [field("owner", before=None, after="theirs")],
            id="an undo that gives an object back to a tree",
        ),
        pytest.param(Update(declared(WEB), held(WEB)), [], id="nothing"),
    ],
)
def test_a_change_shows_what_it_alters(change: Change, expected: list[FieldChange]) -> None:
    """A reviewer approves what is shown, so what is shown must be what is done."""
    # A change keeps its fields, and a copy has none yet: they are compared here, not on import.
    assert list(field_changes(replace(change))) == expected


def test_fields_are_compared_once_for_every_report() -> None:
    """The change keeps them; it is still equal to one that nothing has asked yet."""
    change, other = (Update(declared(WEB), held(WEB, prevent_delete=True)) for _ in range(2))

    assert field_changes(change) is field_changes(change)
    assert change == other


VALUES: dict[str, list[Any]] = {
    "redirectUris": [[], ONE, TWO, TWO[::-1]],
    "grantTypes": [
        [],
        ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_REFRESH_TOKEN"],
        ["OIDC_GRANT_TYPE_REFRESH_TOKEN", "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"],
    ],
    "authMethodType": ["OIDC_AUTH_METHOD_TYPE_BASIC", NONE],
    "devMode": [False, True],
    "clockSkew": ["0s", "1s", "1.0s", "1.5s"],
    "additionalOrigins": [[], ["https://a.example.com"]],
}
SAID = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in VALUES.items()}
)


@settings(max_examples=cases(25), deadline=None)
@given(said=SAID, before=SAID)
def test_the_shown_fields_are_exactly_those_that_lead_from_before_to_after(
    said: dict[str, Any], before: dict[str, Any]
) -> None:
    """Minimal: no field that stays. Complete: with these fields, before becomes after."""
    resource, found = declared(WEB, said), held(WEB, before)

    shown = field_changes(Update(resource, found))

    assert all(one.before != one.after for one in shown)
    assert {**found.spec, **{one.name: one.after for one in shown}} == resource.spec
    assert {**resource.spec, **{one.name: one.before for one in shown}} == found.spec
    assert {one.name for one in shown if one.reset} == {
        one.name for one in shown if one.name not in said
    }


@each_row(
    ("before", "after", "expected"),
    [
        pytest.param("", "", [], id="nothing"),
        pytest.param("", "ab", [(0, "a", True), (1, "b", True)], id="all gained"),
        pytest.param("ab", "", [(0, "a", False), (1, "b", False)], id="all lost"),
        pytest.param("abc", "abxc", [(2, "x", True)], id="one gained in the middle"),
        pytest.param("abc", "ac", [(1, "b", False)], id="one lost in the middle"),
        pytest.param("abc", "axc", [(1, "b", False), (1, "x", True)], id="one for another"),
        pytest.param(
            "ab",
            "ba",
            [(0, "a", False), (0, "b", True), (1, "b", False), (1, "a", True)],
            id="another order",
        ),
        pytest.param("aa", "a", [(1, "a", False)], id="one of two equal ones lost"),
    ],
)
def test_items_gained_and_lost_are_told_with_their_places(
    before: str, after: str, expected: list[tuple[int, str, bool]]
) -> None:
    """In a list of redirect URIs the reader looks for the one that is gone."""
    found = [tuple(item) for item in FieldChange("f", [*before], [*after]).items]

    assert found == expected


@each_row("kind", Kind)
def test_fields_are_shown_in_the_order_of_their_kind(kind: Kind) -> None:
    """Whatever order a manifest has them in: a plan of the same tree is the same to the byte."""
    fields = [field.name for field in KINDS[kind].fields]
    spec = declared(a_ref(kind)).spec
    backwards = {name: spec.get(name, "") for name in reversed(fields)}
    resource = replace(declared(a_ref(kind)), spec=backwards, written=frozenset(fields))

    assert [one.name for one in field_changes(Create(resource))] == fields


ITEMS = st.lists(st.sampled_from("abcd"), max_size=6)


@settings(max_examples=cases(25), deadline=None)
@given(before=ITEMS, after=ITEMS)
def test_lost_and_gained_items_lead_from_before_to_after(
    before: list[str], after: list[str]
) -> None:
    """Positions of lost items count in the old list, of gained ones in the new."""
    changes = FieldChange("f", before, after).items
    lost = {change.position: change.value for change in changes if not change.added}
    gained = {change.position: change.value for change in changes if change.added}

    assert len(lost) + len(gained) == len(changes)
    assert lost == {at: before[at] for at in lost}
    assert gained == {at: after[at] for at in gained}
    kept = [item for at, item in enumerate(before) if at not in lost]
    assert kept == [item for at, item in enumerate(after) if at not in gained]
    assert bool(changes) == (before != after)


PROBLEMS = ("Application.OIDC.V1.NotCompliant", "Application.OIDC.V1.NoRedirectUris")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(Create(declared(WEB)), (), id="compliant"),
        pytest.param(
            Create(declared(WEB, {})),
            PROBLEMS,
            id="no redirect URIs",
        ),
        pytest.param(
            Update(declared(WEB, {}), held(WEB)),
            PROBLEMS,
            id="foreseen for an update too",
        ),
        pytest.param(Delete(held(WEB, {})), (), id="nothing to foresee once it is gone"),
        pytest.param(Create(declared(GREET)), (), id="other kinds have no such problems"),
    ],
)
def test_what_the_service_will_complain_of_is_known_before(
    change: Change, expected: tuple[str, ...]
) -> None:
    """The pull request shows it, not the morning after."""
    assert expected_problems(change) == expected


EMPTY = an_application(redirectUris=[])
SOURCE = FakeSource("manifests/app.yaml", {("spec", "postLogoutRedirectUris"): 9})
URI = ["https://shop.example.com/callback"]


@pytest.mark.parametrize("generation", [None, 0, 3])
def test_an_older_or_unknown_server_is_sent_an_empty_list(generation: int | None) -> None:
    """Nothing is claimed of a server that did not tell its generation."""
    assert kept_lists(declared(WEB, EMPTY), held(), generation) == frozenset()


@pytest.mark.parametrize(
    ("said", "holds", "kept"),
    [
        (EMPTY, {}, {"redirectUris"}),
        ({**EMPTY, "additionalOrigins": []}, {"additionalOrigins": ["https://a.example.com"]},
         {"redirectUris", "additionalOrigins"}),
        (EMPTY, {"redirectUris": []}, set()),
        (an_application(redirectUris=["https://new.example.com"]), {}, set()),
        (an_application(grantTypes=[]), {"grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT"]}, set()),
    ],
    ids=["one", "two", "empty already", "other entries", "a set with a default"],
)  # fmt: skip
def test_the_lists_that_stay(said: Any, holds: Any, kept: set[str]) -> None:
    """Those that hold something and are declared empty."""
    assert kept_lists(declared(WEB, said), held(said=an_application(**holds)), 4) == kept


def test_a_change_is_sent_unless_kept_lists_are_all_of_it() -> None:
    """A new owner, another field or a new secret is sent."""
    alone = Update(declared(WEB, EMPTY), held(), kept=frozenset({"redirectUris"}))
    more = replace(alone, resource=declared(WEB, {**EMPTY, "devMode": True}))

    assert is_not_sent(alone)
    assert spec_after(alone)["redirectUris"] == URI
    assert not is_not_sent(more)
    assert not is_not_sent(replace(alone, new_owner="other"))
    assert not is_not_sent(replace(alone, new_secret=True))
    assert not is_not_sent(Adopt(declared(WEB), held(said=EMPTY)))


@pytest.mark.parametrize(
    ("said", "more"),
    [
        pytest.param({}, "; nothing else differs, so nothing is sent", id="nothing else"),
        pytest.param({"devMode": True}, "", id="another field"),
    ],
)
def test_a_list_that_the_server_keeps_is_told_with_its_place(
    said: dict[str, Any], more: str
) -> None:
    """After a create and a delete, which keep nothing."""
    wanted = declared(WEB, {**EMPTY, **said, "postLogoutRedirectUris": []}, source=SOURCE)
    holds = held(WEB, an_application(redirectUris=URI, postLogoutRedirectUris=URI))
    kept = frozenset({"redirectUris", "postLogoutRedirectUris"})
    changes: list[Change] = [Create(wanted), Delete(holds), Update(wanted, holds, kept=kept)]

    (told,) = kept_notes(changes, "KEPT")

    assert (told.code, told.ref, str(told.location)) == ("KEPT", WEB, "manifests/app.yaml:9:3")
    assert told.summary == (
        f"this server will not empty postLogoutRedirectUris, redirectUris{more}"
    )
    assert told.remedy == (
        f"{WEB}: ZITADEL from 4.0 on keeps a list that an update leaves empty. Write at least one "
        "entry in the manifest (a new entry replaces the held ones), or remove the application and "
        "create it again, which gives it a new client id and secret."
    )
    assert [is_not_sent(change) for change in changes] == [False, False, bool(more)]
    assert {each.name for each in field_changes(changes[2]) if each.kept} == kept


def test_a_kept_list_is_no_risk_and_no_part_of_the_digest() -> None:
    """What an approved plan does does not depend on which server told its generation."""
    state = observed(*HOUSE, held())
    wanted = desired(*OWNERS, declared(WEB, EMPTY))
    unknown, known = (
        build_plan(wanted, replace(state, generation=generation)) for generation in (None, 4)
    )

    assert empties_a_list(match(wanted, state).pairs)
    assert not empties_a_list([(declared(WEB, EMPTY), None)])
    assert plan_digest(unknown) == plan_digest(known)
    assert [[risk.name for risk in risks_of(each.changes[0])] for each in (unknown, known)] == [
        ["redirect-removed"], [],
    ]  # fmt: skip
    assert [warning.code for warning in known.warnings] == ["PLAN-LIST-KEPT"]
