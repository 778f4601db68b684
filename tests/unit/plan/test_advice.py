"""Warnings of a plan: said once, with the names that matter, and outside the digest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import Diagnostic, SourceLocation, note, warning
from reconciler.plan.advice import advice, second_objects
from reconciler.plan.digest import plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Adopt, Change, Create, Delete, Plan, Scope, Update
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import Kind, ResourceRef, Shard, fold
from reconciler.state import ObservedObject, Pause, Resource
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

SOURCE = FakeSource(lines={("metadata", "name"): 6, ("spec",): 9})
SPEC = SourceLocation("shop.yaml", 9, 2)
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


UPGRADE = "ZITADEL knows it from 3.4.12 and 4.15.2 on: upgrade it."


@pytest.mark.parametrize(
    ("known", "said", "finding"),
    [
        pytest.param(
            True,
            "",
            warning(
                "PLAN-NO-AUDIENCE",
                "1 JWT identity provider(s) accept tokens for any audience",
                "`aud` is not checked: a token that the issuer made for another application is "
                "accepted (CVE-2026-55669). Write spec.audience: IdpJwtConfig acme/partner "
                "(shop.yaml:6:3)",
                SPEC,
            ),
            id="not declared",
        ),
        pytest.param(
            False,
            "us",
            warning(
                "PLAN-AUDIENCE-UNKNOWN",
                "the server does not know the audience of identity providers",
                "It never checks `aud`, so for 1 provider(s) a token that their issuer made for "
                f"another application is accepted (CVE-2026-55669). {UPGRADE}",
            ),
            id="not known",
        ),
        pytest.param(
            None,
            "us",
            warning(
                "PLAN-AUDIENCE-UNKNOWN",
                "whether the server knows the audience of identity providers shows only after "
                "apply",
                "The plan sets it for 1 provider(s). If the next plan sets it again, the server "
                f"never checks `aud`. {UPGRADE}",
                SPEC,
            ),
            id="perhaps not known",
        ),
    ],
)
def test_a_warning_about_audiences_says_what_is_open_and_where_to_write(
    said: str, finding: Diagnostic, *, known: bool | None
) -> None:
    provider = declared(PARTNER, a_jwt_config(audience=said), source=SOURCE)
    state = replace(observed(*HOUSE), knows_audience=known)

    assert build_plan(desired(*OWNERS, provider), state).warnings == (finding,)


def test_an_old_service_is_not_upgraded_because_of_an_operation_it_may_not_have() -> None:
    """A ZITADEL without a history is written to with newer calls, unless it is too old for them."""
    changed = [declared(PARTNER, MOVED)], [held(PARTNER, CHECKED)]
    state = replace(observed(*HOUSE, *changed[1]), keeps_history=False)

    told = {
        known: codes(
            build_plan(desired(*OWNERS, *changed[0]), replace(state, knows_audience=known))
        )
        for known in (True, None, False)
    }
    deprecated = {key: "PLAN-DEPRECATED-OPERATION" in found for key, found in told.items()}
    assert deprecated == {True: False, None: False, False: True}


LOGOUT = "backChannelLogoutUri"


def with_logout(ref: ResourceRef, uri: str, **more: Any) -> ObservedObject:
    found = held(ref, an_application(**more))
    return replace(found, spec={**found.spec, LOGOUT: uri} if uri else found.spec)


def test_an_update_that_sends_an_old_logout_uri_again_is_told() -> None:
    """The server checks it again; an update that sends none, or another one, is not told."""
    refs = {name: a_ref(name=name) for name in ("again", "also", "none", "new", "step", "kept")}
    before = {name: with_logout(ref, "https://a.test/out") for name, ref in refs.items()}
    before["none"] = with_logout(refs["none"], "")
    emptied = declared(refs["kept"], an_application(redirectUris=[]))

    def after(name: str, uri: str = "https://a.test/out", **said: Any) -> Resource:
        source = FakeSource(f"{name}.yaml", {("spec",): 9})
        made = declared(refs[name], an_application(**said), source=source)
        return replace(made, spec={**made.spec, LOGOUT: uri} if uri else made.spec)

    changes: list[Change] = [
        Create(after("new")),
        Update(after("step"), replace(before["step"], spec=after("step").spec)),
        Update(after("again", devMode=True), before["again"]),
        Adopt(after("also", devMode=True), before["also"]),
        Update(after("none", "", devMode=True), before["none"]),
        Update(after("new", "https://b.test/out"), before["new"]),
        Update(
            replace(emptied, spec={**before["kept"].spec, "redirectUris": []}),
            before["kept"],
            kept=frozenset({"redirectUris"}),
        ),
        Delete(before["again"]),
    ]

    told = advice(changes, desired(*OWNERS), observed(*HOUSE), Scope(), {})

    assert told == (
        note(
            "PLAN-LOGOUT-CHECKED",
            "the server checks the back-channel logout URI of 2 application(s) again",
            "A newer ZITADEL refuses an update of an application whose backChannelLogoutUri it can "
            "no longer resolve (PROJECT-msNebo), also where the manifest does not say it. Then "
            "write another one, or an empty text: OidcApplication acme/shop/again "
            "(again.yaml:1:3), OidcApplication acme/shop/also (also.yaml:1:3)",
            SourceLocation("again.yaml", 9, 2),
        ),
    )


@pytest.mark.parametrize(
    ("kind", "new"), [(Kind.OIDC_APPLICATION, "client id"), (Kind.ACTION, "id")]
)
def test_a_second_object_of_the_same_content_is_told_at_its_name(kind: Kind, new: str) -> None:
    """That is what a rename without an id looks like. A create elsewhere has no such twin."""
    first, second, other = (a_ref(kind, name) for name in ("first", "second", "other"))
    elsewhere = a_ref(kind, "first", "globex")
    changes: list[Change] = [
        Delete(held(other)),
        Create(declared(elsewhere)),
        Create(declared(second, source=SOURCE)),
        Create(declared(other)),
    ]

    kept = [held(first, object_id="7")]
    (told,) = second_objects(changes, kept, Scope())
    (there,) = second_objects(changes, kept, Scope(environment="staging"))

    assert told == warning(
        "PLAN-SECOND-OBJECT",
        "a second object of the same content would be created",
        f"The service holds {first} with the same content, and no manifest declares it. {second} "
        f"will be a second object with a new {new}. To rename the one that is held instead, write "
        'in the manifest: metadata.id: "7"',
        SourceLocation("shop.yaml", 6, 3),
        second,
    )
    assert there.remedy.endswith(
        "To rename the one that is held instead, write in the overlay of environment staging, "
        'because each environment has ids of its own: metadata.id: "7"'
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


def test_an_undo_leaves_no_organization_behind() -> None:
    """It looks only where the run wrote, and no manifest was read for it."""
    state = replace(observed(*HOUSE), elsewhere=ELSEWHERE)

    plan = build_plan(desired(*OWNERS), state, Scope(undo="01a223a24be34bf3a8b992414d78d342"))

    assert codes(plan) == []


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


def test_a_warning_of_other_capabilities_names_both_and_what_to_write() -> None:
    wanted = replace(desired(organizations=["acme"]), capabilities="zitadel-4")
    found = replace(observed(), capabilities="zitadel-3", generation=3)

    assert build_plan(wanted, found).warnings == (
        warning(
            "PLAN-CAPABILITIES",
            "the capabilities zitadel-4 were chosen, and the service has those of zitadel-3",
            "The plan goes by the service; `reconciler validate` goes by what was chosen. Write "
            "capabilities: zitadel-3 for the environment, or name the service that is meant.",
        ),
    )


def test_a_pause_of_the_tree_is_told_and_that_of_another_is_not() -> None:
    """The plan is shown all the same."""
    ours = Pause("default", "moving house", "tomorrow", "yesterday", "ana")
    found = replace(observed(*HOUSE), pauses={"Acme": (replace(ours, tree="other"), ours)})

    assert build_plan(desired(*OWNERS), found).warnings == (
        warning(
            "PLAN-PAUSED",
            "tree default is paused in Acme until tomorrow: moving house",
            "ana paused it at yesterday. apply refuses until then. `reconciler resume` ends the "
            "pause; apply --despite-pause applies this once.",
        ),
    )


def test_a_service_that_does_not_tell_its_id_is_told_with_the_reason_and_the_way_out() -> None:
    found = replace(observed(*HOUSE, instance="made-up"), unidentified="It refused: no.")

    assert build_plan(desired(*OWNERS), found).warnings == (
        warning(
            "SERVICE-NOT-IDENTIFIED",
            "the service does not report its id",
            "It refused: no. The id made-up is made of the address instead: under another address, "
            "or once the service reports its id, plan files do not fit, and journals and locks of "
            "this one are not found. Which project is of its own console is not known, so no "
            "application is deleted. Let GET /management/v1/iam through to the service.",
        ),
    )
