"""Owners of objects and of owed secrets: what is pruned, taken over, lacking and replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import SourceLocation
from reconciler.errors import UsageError
from reconciler.plan.causes import cause_in_words, cause_of
from reconciler.plan.diff import OWNER, FieldChange, field_changes
from reconciler.plan.digest import plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.model import (
    Adopt,
    CauseKind,
    Change,
    Create,
    Delete,
    DeletedBy,
    Plan,
    Scope,
    Unmanaged,
    Update,
    makes_secret,
)
from reconciler.plan.planner import build_plan
from reconciler.plan.risk import REPLACED, risks_of
from reconciler.resources.ref import Kind, ResourceRef, Shard
from reconciler.state import DesiredState, Elsewhere, ObservedObject, OwedSecret, is_in_step
from tests.builders import (
    GREET,
    HOUSE,
    OWNERS,
    SHOP,
    WEB,
    a_plan,
    a_public_application,
    a_ref,
    an_application,
    an_owed_secret,
    declared,
    desired,
    held,
    observed,
    plan_of,
)
from tests.rows import each_row

KEY = WEB.key
NO_FLAG = [a_ref(name=f"kept{at}") for at in range(9)]
PADDING = [held(ref) for ref in NO_FLAG]
PADDED = [declared(ref) for ref in NO_FLAG]


def web(owner: str | None, *trees: str, **more: Any) -> ObservedObject:
    """Return an application that a tree owns, or that no tree owns (empty)."""
    return held(WEB, trees=trees, owner=owner, **more)


@each_row(
    ("found", "scope", "deleted", "flag"),
    [
        (web("default", "default"), Scope(prune=True), True, None),
        (web("default", "default"), Scope(prune_unmanaged=True), True, None),
        (web("default", "default"), Scope(), False, DeletedBy.PRUNE),
        (web("b", "default", "b"), Scope(prune=True), False, DeletedBy.NO_FLAG),
        (web("b", "default", "b"), Scope(prune_unmanaged=True), False, DeletedBy.NO_FLAG),
        (web("b", "default", "b"), Scope("b", prune=True), True, None),
        (web("", "default"), Scope(prune=True), False, DeletedBy.PRUNE_UNMANAGED),
        (web(""), Scope(prune_unmanaged=True), True, None),
        (web(None, "default"), Scope(prune=True), True, None),
        (web(None, "b"), Scope(prune=True), False, DeletedBy.PRUNE_UNMANAGED),
        (web(None), Scope(prune_unmanaged=True), True, None),
        (web("default", uncarried=("x",)), Scope(prune_unmanaged=True), False, DeletedBy.NO_FLAG),
    ],
)
def test_only_its_owner_prunes_an_object(
    found: ObservedObject, scope: Scope, flag: DeletedBy | None, *, deleted: bool
) -> None:
    """A service that does not report owners leaves the question to the trees that applied it."""
    plan = plan_of(PADDED, [found, *PADDING], scope)

    assert plan.changes == ((Delete(found),) if deleted else ())
    left = () if flag is None else (Unmanaged(WEB, found.id, found.owner, flag),)
    assert plan.unmanaged == left


@pytest.mark.parametrize(
    ("found", "change"),
    [
        (
            web("b", "default", "b"),
            Update(declared(WEB), web("b", "default", "b"), new_owner="default"),
        ),
        (web("b", "b"), Adopt(declared(WEB), web("b", "b"), new_owner="default")),
        (web(""), Adopt(declared(WEB), web(""), new_owner="default")),
        (web("default", "default"), None),
    ],
)
def test_a_take_over_is_a_change_without_a_field(
    found: ObservedObject, change: Change | None
) -> None:
    """It says from whom, weakens nothing, and is counted as no update of a kind."""
    plan = plan_of([declared(WEB)], [found], Scope(take_over=(KEY,)), Allowances(updates=0))

    assert plan.changes == (() if change is None else (change,))
    assert plan.blocks == ()
    if isinstance(change, Update | Adopt):
        assert field_changes(change) == (FieldChange(OWNER, found.owner or None, "default"),)
        cause = cause_of(change, "default")
        assert (cause.kind, cause.tree) == (CauseKind.TAKE_OVER, found.owner)
        told = "taken over from tree b" if found.owner else "taken over from no tree"
        assert cause_in_words(cause) == told


def test_an_update_of_what_another_tree_owns_shows_the_new_owner() -> None:
    """It is made for its fields; the owner changes with it."""
    (change,) = plan_of([declared(WEB, {"devMode": True})], [web("b", "default", "b")]).changes

    assert isinstance(change, Update)
    assert FieldChange(OWNER, "b", "default") in field_changes(change)
    assert cause_of(change, "default").kind is not CauseKind.TAKE_OVER


@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        ([web(None, "default")], "the service does not record owners"),
        ([], ""),
    ],
)
def test_a_take_over_that_cannot_be_recorded_blocks(
    objects: Sequence[ObservedObject], problem: str
) -> None:
    """An object that is created is this tree's anyway."""
    plan = plan_of([declared(WEB)], objects, Scope(take_over=(KEY,)))

    assert [block.summary for block in plan.blocks] == ([problem] if problem else [])


def test_a_take_over_of_what_is_declared_nowhere_blocks() -> None:
    plan = plan_of([], [web("b")], Scope(take_over=(KEY,)))

    (block,) = plan.blocks
    assert (block.code, block.summary) == (
        "GUARD-TAKE-OVER",
        "--take-over names what no manifest declares",
    )


def warnings(plan: Plan) -> dict[str, str]:
    return {finding.code: finding.remedy for finding in plan.warnings}


def test_what_is_in_step_and_another_tree_s_is_said() -> None:
    """With the flag that changes it; not of projects, which no tree deletes."""
    project = replace(HOUSE[1], owner="b")
    state = observed(HOUSE[0], project, web("b", "b"), held(GREET, owner="default"))

    plan = build_plan(desired(*OWNERS, declared(WEB), declared(GREET)), state)

    assert "PLAN-OTHER-TREE" in warnings(plan)
    remedy = warnings(plan)["PLAN-OTHER-TREE"]
    assert remedy.startswith("Tree b owns 1 object(s) that this tree declares as they are.")
    assert remedy.endswith(": --take-over OidcApplication/acme/shop/storefront.")
    assert SHOP in plan.in_step


def test_an_undo_says_nothing_of_what_other_trees_own() -> None:
    """It declares nothing: what its run did not write stays as it is held."""
    state = observed(*HOUSE[:2], web("b", "b"))

    plan = build_plan(desired(*OWNERS, declared(WEB)), state, Scope(undo="a run"))

    assert plan.warnings == ()


def test_a_service_without_owners_is_told_where_unmanaged_objects_are_deleted() -> None:
    prune = Scope(prune_unmanaged=True)

    assert "PLAN-NO-OWNERS" in warnings(plan_of(PADDED, [web(None), *PADDING], prune))
    assert "PLAN-NO-OWNERS" not in warnings(plan_of(PADDED, [web(""), *PADDING], prune))
    assert "PLAN-NO-OWNERS" not in warnings(plan_of(PADDED, [web(None), *PADDING]))


@pytest.mark.parametrize(
    ("scope", "same"),
    [
        (Scope(take_over=(KEY,)), False),
        (Scope(other_tree=("team-b",)), False),
        (Scope(), True),
    ],
)
def test_what_is_taken_over_and_left_out_is_in_the_digest(scope: Scope, *, same: bool) -> None:
    plain, given = plan_of([declared(WEB)], [web("default")]), plan_of([], [], scope)

    assert (plan_digest(plain) == plan_digest(replace(plain, scope=given.scope))) is same


@each_row(
    ("elsewhere", "whole", "summaries"),
    [
        (Elsewhere(), True, []),
        (Elsewhere(is_whole=True), False, []),
        (Elsewhere(), False, ["deletes are planned from a part of the tree"]),
        (
            Elsewhere({WEB.name: SourceLocation("x.yaml", 1, 1)}, is_whole=True),
            True,
            [],
        ),
        (
            Elsewhere({"oid-shop-storefront": SourceLocation("b/x.yaml", 3, 9)}),
            True,
            ["an object would be deleted that another manifest declares"],
        ),
        (
            Elsewhere(unreadable=((SourceLocation("b/y.yaml"), "cannot be read as YAML"),)),
            True,
            ["deletes are planned, and a file that may declare them cannot be read"],
        ),
    ],
)
def test_what_the_rest_of_the_repository_declares_is_not_deleted(
    elsewhere: Elsewhere, summaries: Sequence[str], *, whole: bool
) -> None:
    """One code for all of it; each says which folder to leave out where that is meant."""
    state: DesiredState = replace(desired(*OWNERS, *PADDED, whole=whole), elsewhere=elsewhere)

    plan = build_plan(state, observed(*HOUSE, web("default"), *PADDING), Scope(prune=True))

    assert [block.summary for block in plan.blocks] == summaries
    assert {block.code for block in plan.blocks} <= {"GUARD-PARTIAL-TREE"}
    if summaries and not elsewhere.is_whole and whole:
        assert "--other-tree b" in plan.blocks[0].remedy


@pytest.mark.parametrize(
    ("found", "warned"),
    [
        (web(""), True),
        (web("default"), True),
        (web("b"), False),
        (web("", said={"redirectUris": ["https://other.example.com/"]}), False),
    ],
)
def test_a_new_name_beside_the_same_content_is_told_to_be_a_second_object(
    found: ObservedObject, *, warned: bool
) -> None:
    """With the line that renames instead; nothing that another tree declares is offered."""
    ref = WEB._replace(name="shopfront")
    plan = plan_of([declared(ref)], [found])

    assert [type(change) for change in plan.changes] == [Create]
    assert ("PLAN-SECOND-OBJECT" in warnings(plan)) is warned
    if warned:
        remedy = warnings(plan)["PLAN-SECOND-OBJECT"]
        assert "a second object with a new client id" in remedy
        assert remedy.endswith(f'metadata.id: "{found.id}"')


def test_each_held_object_is_offered_once() -> None:
    two = [declared(WEB._replace(name=name)) for name in ("a", "b")]

    codes = [finding.code for finding in plan_of(two, [web("")]).warnings]

    assert codes.count("PLAN-SECOND-OBJECT") == 1


def test_marks_that_a_service_cannot_remember_are_no_difference() -> None:
    """One that it can remember and was never told is."""
    wanted = declared(WEB, prevent_delete=True, critical=True)

    assert is_in_step(wanted, held(WEB, prevent_delete=None, critical=None))
    assert not is_in_step(wanted, held(WEB, prevent_delete=False, critical=None))
    assert not is_in_step(wanted, held(WEB, prevent_delete=None, critical=False))
    assert wanted.ref.kind is Kind.OIDC_APPLICATION


ROTATE = Scope(rotate_missing=(WEB.key,))
TO_POST = declared(WEB, an_application(authMethodType="OIDC_AUTH_METHOD_TYPE_POST"))
BASIC, PUBLIC = held(WEB), held(WEB, a_public_application())
LACKING = replace(BASIC, has_secret=False)


def plan_with(*owed: OwedSecret, scope: Scope | None = None) -> Plan:
    """Return the plan of a service in step that owes these secrets."""
    state = replace(observed(*HOUSE, held(WEB)), custody=True, owed=owed)
    return build_plan(desired(*OWNERS, declared(WEB)), state, scope)


@each_row(
    ("change", "expected"),
    [
        pytest.param(Create(declared(WEB)), True, id="create with a secret"),
        pytest.param(Create(declared(WEB, a_public_application())), False, id="create without"),
        pytest.param(Update(TO_POST, PUBLIC), True, id="update to a secret"),
        pytest.param(Adopt(TO_POST, PUBLIC), True, id="adoption that moves to a secret"),
        pytest.param(Update(TO_POST, BASIC), False, id="from one kind of secret to another"),
        pytest.param(Update(TO_POST, LACKING), True, id="no secret where one is declared"),
        pytest.param(Update(TO_POST, BASIC, new_secret=True), True, id="replaced"),
        pytest.param(Update(declared(WEB, a_public_application()), BASIC), False, id="away"),
        pytest.param(Delete(BASIC), False, id="delete"),
        pytest.param(Create(declared(GREET)), False, id="another kind"),
    ],
)
def test_a_change_that_makes_a_secret_is_known_before_it_is_made(
    change: Change, expected: object
) -> None:
    """It is said before the plan is approved, for it needs a sink."""
    assert makes_secret(change) is expected


def test_what_is_owed_to_the_tree_is_in_the_plan_and_not_in_its_digest() -> None:
    """Approving a plan also approves the delivery of what exists already."""
    mine, theirs = an_owed_secret(WEB), an_owed_secret(a_ref(name="admin"), tree="other")

    plan = plan_with(mine, theirs)

    assert (plan.changes, plan.owed, plan.owed_elsewhere) == ((), (mine,), 1)
    assert (plan.summary.owed, plan.summary.owed_elsewhere) == (1, 1)
    assert plan_digest(plan) == plan_digest(plan_with())


def test_a_secret_that_is_lost_is_listed_and_not_counted_as_deliverable() -> None:
    """An apply cannot deliver it; the warning says what can be done."""
    lost = an_owed_secret(WEB, lost=True)

    plan = plan_with(lost)

    assert (plan.owed, plan.deliverable, plan.summary.owed) == ((lost,), (), 0)
    (found,) = plan.warnings
    assert (found.code, found.ref) == ("SECRET-LOST", WEB)
    assert "--rotate-missing OidcApplication/acme/shop/storefront" in found.remedy


def test_a_shard_is_owed_what_is_in_its_organizations() -> None:
    """The other jobs deliver the rest."""
    mine = an_owed_secret(WEB)
    shards = [Shard(index, 2) for index in (1, 2)]

    owed = [plan_with(mine, scope=Scope(shard=shard)).owed for shard in shards]

    assert sorted(map(len, owed)) == [0, 1]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(LACKING, Update(declared(WEB), LACKING), id="none"),
        pytest.param(replace(BASIC, has_secret=True), None, id="held"),
        pytest.param(replace(BASIC, has_secret=None), None, id="the service cannot tell"),
        pytest.param(
            replace(LACKING, trees=frozenset()),
            Adopt(declared(WEB), replace(LACKING, trees=frozenset())),
            id="never applied by this tree",
        ),
    ],
)
def test_an_application_without_its_secret_is_not_in_step(
    found: ObservedObject, expected: Change | None
) -> None:
    """A run that was cut between the update and its secret left it so."""
    plan = plan_of([declared(WEB)], [found])

    assert plan.changes == ((expected,) if expected else ())
    if expected:
        assert field_changes(expected) == (FieldChange("clientSecret", before=False, after=True),)
        assert risks_of(expected) == ()


def test_an_application_that_signs_in_otherwise_lacks_no_secret() -> None:
    """Nor does an action."""
    public = replace(PUBLIC, has_secret=False)

    assert plan_of([declared(WEB, a_public_application())], [public]).changes == ()
    assert plan_of([declared(GREET)], [replace(held(GREET), has_secret=False)]).changes == ()


def test_a_secret_that_is_to_be_replaced_is_a_change_with_a_risk() -> None:
    """And another digest: it is approved as what it is."""
    plan = plan_of([declared(WEB)], [BASIC], ROTATE)

    (change,) = plan.changes
    assert change == Update(declared(WEB), BASIC, new_secret=True)
    assert field_changes(change) == (FieldChange("clientSecret", before=True, after=True),)
    assert [(risk.name, risk.field) for risk in risks_of(change)] == [
        (REPLACED.name, "clientSecret")
    ]
    assert plan_digest(plan) != plan_digest(a_plan(Update(declared(WEB), BASIC)))


def test_a_critical_application_keeps_its_secret_unless_the_glass_is_broken() -> None:
    """What is deployed with the secret so far can no longer sign in."""
    resource, found = declared(WEB, critical=True), replace(BASIC, critical=True)

    blocked = plan_of([resource], [found], ROTATE)
    allowed = Allowances(lockouts={"oidcapplication/acme/shop/storefront": "x"})

    assert [block.code for block in blocked.blocks] == ["GUARD-CRITICAL"]
    assert plan_of([resource], [found], ROTATE, allowed).blocks == ()


@pytest.mark.parametrize(
    "ref",
    [
        pytest.param(a_ref(name="nope"), id="not declared"),
        pytest.param(a_ref(name="spa"), id="without a secret"),
        pytest.param(a_ref(organization="initech"), id="of another organization"),
    ],
)
def test_only_a_declared_application_with_a_secret_can_be_given_a_new_one(ref: ResourceRef) -> None:
    """A wrong name must not pass for done."""
    spa = declared(a_ref(name="spa"), a_public_application())

    with pytest.raises(UsageError, match=f"--rotate-missing {ref.path} is not a declared"):
        plan_of([declared(WEB), spa], [BASIC], Scope(rotate_missing=(ref.key,)))


def test_a_secret_of_another_shard_is_left_to_that_shard() -> None:
    """All jobs get the same flags."""
    other = next(Shard(i, 2) for i in (1, 2) if not Shard(i, 2).holds("initech"))
    scope = Scope(shard=other, rotate_missing=(a_ref(organization="initech").key,))

    assert build_plan(desired(), observed(), scope).changes == ()


def test_an_application_that_is_created_or_moved_gets_one_secret_only() -> None:
    """There is nothing to replace."""
    assert plan_of([declared(WEB)], [], ROTATE).changes == (Create(declared(WEB)),)
    (lacking,) = plan_of([declared(WEB)], [LACKING], ROTATE).changes
    assert field_changes(lacking) == (FieldChange("clientSecret", before=False, after=True),)
