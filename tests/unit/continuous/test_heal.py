"""What is healed: values that were applied before, and nothing that is more than that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from reconciler.continuous.heal import CONTESTED, Heal, heal_of
from reconciler.plan.digest import hash_of
from reconciler.plan.drift import find_drift
from reconciler.plan.model import Plan, ref_of
from reconciler.plan.planner import build_plan
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.resources.undone import Undone
from reconciler.state import ObjectEvent, ObservedObject, Removal, Resource
from tests.builders import (
    GREET,
    HOUSE,
    OWNERS,
    WEB,
    a_ref,
    an_action,
    an_action_flow,
    an_application,
    declared,
    desired,
    held,
    id_of,
    observed,
)

TREE = "default"
BY_ANA: dict[str, Any] = {
    "changed_by": "ana",
    "changed_at": "noon",
    "trees": frozenset({TREE}),
    "owner": TREE,
}
FLOW = a_ref(Kind.ACTION_FLOW, "internal-authentication")


def applied(ref: ResourceRef, spec: dict[str, Any]) -> ObjectEvent:
    payload = {"name": ref.name, "spec": normal_form(ref.kind, spec)}
    return ObjectEvent("x.added", 1, "noon", "ci", {"tree": TREE}, payload)


def healing(
    resources: Sequence[Resource],
    objects: Sequence[ObservedObject],
    removals: Sequence[Removal] = (),
    contested: Sequence[str] = (),
) -> Heal:
    """Return what is healed of manifests that were applied just so."""
    state = observed(*HOUSE, *objects)
    plan = build_plan(desired(*OWNERS, *resources), state)
    histories = {
        id_of(each.ref): [ObjectEvent("x.added", 1, "", "ci", {"tree": TREE},
                                      {"name": each.ref.name, "spec": each.spec})]
        for each in resources
    }  # fmt: skip
    return heal_of(plan, find_drift(plan, state, histories, removals), contested)


def refs(plan: Plan) -> list[ResourceRef]:
    return [ref_of(change) for change in plan.changes]


def removed(ref: ResourceRef) -> Removal:
    event = ObjectEvent("x.removed", 9, "noon", "ana", {}, {})
    return Removal(ref, id_of(ref), frozenset({TREE}), event)


def test_a_field_that_was_changed_by_hand_is_healed() -> None:
    heal = healing([declared(GREET)], [held(GREET, an_action(timeout="1s"), **BY_ANA)])

    assert refs(heal.plan) == [GREET]
    assert heal.left == ()


def test_what_was_never_applied_is_no_part_of_a_heal() -> None:
    """Something new waits for an apply, also beside something that is healed."""
    new = a_ref(Kind.ACTION, "new")
    drifted = held(GREET, an_action(timeout="1s"), **BY_ANA)

    heal = healing([declared(GREET), declared(new)], [drifted])

    assert refs(heal.plan) == [GREET]


def test_a_deleted_object_is_not_made_again() -> None:
    """It would have another id, and an application another client id."""
    flow = declared(FLOW, an_action_flow(preCreation=["greet"]))
    rows: list[tuple[ResourceRef, list[Resource], list[ObservedObject]]] = [
        (WEB, [declared(WEB)], []),
        (GREET, [declared(GREET)], []),
        (FLOW, [declared(GREET), flow], [held(GREET)]),
    ]
    for ref, resources, objects in rows:
        heal = healing(resources, objects, [removed(ref)])

        assert heal.plan.changes == ()
        assert [(left.ref, "another object" in left.why) for left in heal.left] == [(ref, True)]


def test_a_risk_is_left_to_a_person() -> None:
    """What a responder switched off stays off; a script that was replaced is looked at."""
    changes: list[tuple[Resource, ObservedObject, str]] = [
        (
            replace(declared(GREET), active=True),
            held(GREET, an_action(), active=False, **BY_ANA),
            "reactivated",
        ),
        (
            declared(GREET),
            held(GREET, an_action(script="function greet(ctx, api) { api }"), **BY_ANA),
            "script-changed",
        ),
    ]
    for resource, found, risk in changes:
        heal = healing([resource], [found])

        assert heal.plan.changes == ()
        assert [risk in left.why for left in heal.left] == [True]


def test_a_client_secret_is_never_made_by_a_heal() -> None:
    basic = an_application(authMethodType="OIDC_AUTH_METHOD_TYPE_BASIC")
    public = an_application(authMethodType="OIDC_AUTH_METHOD_TYPE_NONE")

    heal = healing([declared(WEB, basic)], [held(WEB, public, **BY_ANA)])

    assert heal.plan.changes == ()
    assert ["client secret" in left.why for left in heal.left] == [True]


def test_a_contested_object_is_left() -> None:
    found = held(GREET, an_action(timeout="1s"), **BY_ANA)

    heal = healing([declared(GREET)], [found], contested=[found.id])

    assert heal.plan.changes == ()
    assert [left.why for left in heal.left] == [CONTESTED]


def test_what_needs_a_deleted_object_is_left() -> None:
    """It could not be written, or not whole."""
    flow = an_action_flow(preCreation=["greet"])
    other = held(FLOW, an_action_flow(preCreation=[]), **BY_ANA)

    heal = healing([declared(GREET), declared(FLOW, flow)], [other], [removed(GREET)])

    assert heal.plan.changes == ()
    assert GREET in {left.ref for left in heal.left}


def test_a_heal_keeps_the_blocks_of_the_whole_plan() -> None:
    """Guards judge what the whole plan would do: a heal is no way around them."""
    refs_of_many = [a_ref(Kind.ACTION, f"act{n}") for n in range(12)]
    resources = [declared(ref, an_action(script=f"function {ref.name}() {{}}"))
                 for ref in refs_of_many]  # fmt: skip
    objects = [
        held(ref, an_action(script=f"function {ref.name}() {{}}", timeout="1s"), **BY_ANA)
        for ref in refs_of_many
    ]

    heal = healing(resources, objects)

    assert len(heal.plan.changes) == 12
    assert heal.plan.blocks


def test_what_an_undo_took_back_is_left_and_stops_nothing_else() -> None:
    default = declared(GREET)
    mark = Undone("run-2", "run-1", "", {"timeout": hash_of(default.spec["timeout"])})
    undone = replace(held(GREET, an_action(timeout="1s"), **BY_ANA), undone=mark)
    changed = held(WEB, an_application(devMode=True), **BY_ANA)

    heal = healing([default, declared(WEB)], [undone, changed])

    assert refs(heal.plan) == [WEB]
    assert heal.plan.blocks == ()
    assert [(each.ref, each.why) for each in heal.left] == [(GREET, "undone by run run-2")]
