"""Warnings of a plan: said once, with the names that matter, and outside the digest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.plan.digest import plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import Kind, Shard, fold
from tests.builders import (
    HOUSE,
    OWNERS,
    PARTNER,
    WEB,
    FakeSource,
    a_jwt_config,
    a_ref,
    an_application,
    declared,
    desired,
    held,
    observed,
    plan_of,
)

CHECKED = a_jwt_config(audience="us")
MOVED = a_jwt_config(issuer="https://other.example.com", audience="us")


def codes(plan: Plan) -> list[str]:
    return [warning.code for warning in plan.warnings]


def test_the_deprecated_operation_is_told_once_with_every_manifest_that_uses_it() -> None:
    """Before the service is upgraded somebody must know where to look."""
    refs = [a_ref(Kind.IDP_JWT_CONFIG, f"p{at:02}") for at in range(22)]
    plan = plan_of(
        [declared(ref, MOVED, source=FakeSource(f"{ref.name}.yaml")) for ref in refs],
        [held(ref, CHECKED, trees=() if ref.name == "p01" else ("default",)) for ref in refs],
        allowed=Allowances(updates=99),
    )

    (warning,) = plan.warnings
    assert warning.code == "PLAN-DEPRECATED-OPERATION"
    assert warning.remedy.startswith(
        "UpdateOrgIDPJWTConfig may be removed in a future version of the service. It is used for "
        "IdpJwtConfig acme/p00 (p00.yaml:1:3), IdpJwtConfig acme/p01 (p01.yaml:1:3), "
    )
    assert "acme/p19 (p19.yaml:1:3) and 2 more. " in warning.remedy
    assert str(warning.location) == "p00.yaml:1:2"


def test_only_what_uses_the_deprecated_operation_is_told_of() -> None:
    """A create, a rename, a mark or another kind does not use it."""
    new, old, made, given = (a_ref(Kind.IDP_JWT_CONFIG, n) for n in ("new", "old", "made", "given"))
    plan = plan_of(
        [declared(PARTNER, CHECKED, critical=True), declared(new, CHECKED, pinned_id="7"),
         declared(made, CHECKED), declared(given, CHECKED),
         declared(WEB, an_application(devMode=True))],
        [held(PARTNER, CHECKED), held(old, CHECKED, object_id="7"), held(given), held(WEB)],
    )  # fmt: skip

    assert len(plan.changes) == 5
    assert codes(plan) == []


def with_audiences(*said: str, known: bool | None = True) -> Plan:
    """Return the plan for new providers, on a service that knows audiences or does not."""
    providers = [
        declared(a_ref(Kind.IDP_JWT_CONFIG, f"p{at}"), a_jwt_config(audience=audience))
        for at, audience in enumerate(said)
    ]
    state = replace(observed(*HOUSE), knows_audience=known)
    return build_plan(desired(*providers), state, Scope(), Allowances())


def test_one_warning_counts_the_providers_that_accept_tokens_for_others() -> None:
    """However many there are; the count stands first, and the manifests are named."""
    (warning,) = with_audiences("", "us", "").warnings

    assert (warning.code, warning.summary[:2]) == ("PLAN-NO-AUDIENCE", "2 ")
    assert "IdpJwtConfig acme/p0" in warning.remedy
    assert "spec.audience" in warning.remedy
    assert codes(with_audiences("us")) == []
    assert codes(with_audiences()) == []


@pytest.mark.parametrize(
    ("known", "said", "expected"),
    [
        (False, ("", "us"), ["PLAN-AUDIENCE-UNKNOWN"]),
        (False, (), []),
        (None, ("",), ["PLAN-NO-AUDIENCE"]),
        (None, ("us",), ["PLAN-AUDIENCE-UNKNOWN"]),
    ],
)
def test_a_server_that_does_not_check_audiences_is_to_be_upgraded(
    *, known: bool | None, said: tuple[str, ...], expected: list[str]
) -> None:
    """It takes the field and forgets it; whether it does shows after a write only."""
    plan = with_audiences(*said, known=known)

    assert codes(plan) == expected
    assert all(
        "upgrade it" in warning.remedy
        for warning in plan.warnings
        if warning.code == "PLAN-AUDIENCE-UNKNOWN"
    )


ELSEWHERE = {
    "Old": frozenset({"default"}),
    "other": frozenset({"other"}),
    "ACME": frozenset({"default"}),
}


@pytest.mark.parametrize(
    ("tree", "whole", "expected"),
    [
        ("default", True, ["PLAN-ORGANIZATION-LEFT"]),
        ("default", False, []),
        ("third", True, []),
    ],
)
def test_an_organization_that_the_tree_left_behind_is_reported(
    tree: str, *, whole: bool, expected: list[str]
) -> None:
    """Nothing in it is compared any more, so nobody would notice otherwise."""
    state = replace(observed(*HOUSE), elsewhere=ELSEWHERE)

    plan = build_plan(desired(*OWNERS, whole=whole), state, Scope(tree=tree))

    assert codes(plan) == expected
    if expected:
        assert plan.warnings[0].remedy == (
            "Tree default applied objects to Old, and no manifest names it any more. What is there "
            "is neither compared nor deleted. Declare the Organization again to see it in the "
            "plan, and to let --prune delete what is in it."
        )


@pytest.mark.parametrize("index", [1, 2])
def test_organizations_of_other_shards_were_not_left_behind(index: int) -> None:
    """Another job looks after them; what the tree did leave behind is told by the shard of it."""
    state = replace(observed(*HOUSE), elsewhere=ELSEWHERE)
    shard = Shard(index, 2)

    plan = build_plan(desired(*OWNERS), state, Scope(shard=shard))

    assert codes(plan) == (["PLAN-ORGANIZATION-LEFT"] if shard.holds("Old") else [])


def test_glass_that_is_broken_for_nothing_is_told() -> None:
    """A name with a slip in it would otherwise look as if it had allowed something."""
    given = ("OidcApplication acme/shop/STOREFRONT", "Action/acme/typo")
    lockouts = {fold(ref.replace(" ", "/", 1)): ref for ref in given}
    plan = plan_of(
        [declared(WEB, an_application(devMode=True))],
        [held(WEB)],
        allowed=Allowances(lockouts=lockouts),
    )

    (warning,) = plan.warnings
    assert warning.code == "PLAN-BREAK-GLASS-UNUSED"
    assert warning.remedy.startswith("Nothing is planned for Action/acme/typo. ")


def test_neither_warnings_nor_what_allows_a_plan_change_what_it_would_do() -> None:
    """What was reviewed without the flag is what is applied with it."""
    resources, objects = (
        [declared(PARTNER, MOVED, critical=True)],
        [held(PARTNER, CHECKED, critical=True)],
    )
    blocked = plan_of(resources, objects)
    allowed = plan_of(
        resources, objects, allowed=Allowances(lockouts={fold(PARTNER.address): PARTNER.address})
    )

    assert (codes(blocked), len(blocked.blocks)) == (["PLAN-DEPRECATED-OPERATION"], 1)
    assert allowed.blocks == ()
    assert (
        plan_digest(blocked) == plan_digest(allowed) == plan_digest(replace(blocked, warnings=()))
    )


@pytest.mark.parametrize(
    ("chosen", "generation", "codes_found"),
    [
        ("zitadel-4", 3, ["PLAN-CAPABILITIES"]),
        ("zitadel-3", 3, []),
        ("", 3, []),
        ("zitadel-4", 0, []),
    ],
)
def test_other_capabilities_than_were_chosen_are_told_where_the_service_says(
    chosen: str, generation: int, codes_found: list[str]
) -> None:
    """A generation that could not be told is no disagreement."""
    wanted = replace(desired(organizations=["acme"]), capabilities=chosen)
    found = replace(observed(), capabilities="zitadel-3", generation=generation)

    assert codes(build_plan(wanted, found)) == codes_found
