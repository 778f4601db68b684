"""Drift is what was changed on the service; what was declared differently is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.plan.diff import FieldChange
from reconciler.plan.drift import Drift, find_drift, owners_to_ask, suspects
from reconciler.plan.planner import build_plan
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import ObjectEvent, ObservedObject, Removal, Resource
from tests.builders import (
    ACME,
    GREET,
    HOUSE,
    OWNERS,
    WEB,
    a_ref,
    an_action,
    declared,
    desired,
    held,
    observed,
)

BY_ANA: dict[str, Any] = {"changed_by": "ana", "changed_at": "noon", "sequence": 43}
APPLIED: dict[str, Any] = {"changed_by": "ci", "changed_in": "default"}


def event(type_: str, tree: str = "", **payload: Any) -> ObjectEvent:
    return ObjectEvent(type_, 43, "noon", "ana", {"tree": tree} if tree else {}, payload)


def applied(**said: Any) -> ObjectEvent:
    spec = normal_form(Kind.ACTION, an_action(**said))
    return event("action.added", "default", name="greet", spec=spec)


def drift_of(
    resources: Sequence[Resource],
    objects: Sequence[ObservedObject],
    histories: dict[str, Sequence[ObjectEvent]] | None = None,
    removals: Sequence[Removal] = (),
) -> Drift:
    state = observed(*HOUSE, *objects)
    plan = build_plan(desired(*OWNERS, *resources), state)
    return find_drift(plan, state, histories or {}, removals)


def test_a_field_changed_on_the_service_is_drift_with_its_author() -> None:
    """Both sides, and whom to ask."""
    found = held(GREET, an_action(timeout="1s"), **BY_ANA)

    drift = drift_of([declared(GREET)], [found], {found.id: [applied()]})

    (drifted,) = drift.objects
    assert drifted.fields == (FieldChange("timeout", "20s", "1s"),)
    assert (drifted.cause.by, drifted.cause.at, drifted.cause.sequence) == ("ana", "noon", 43)


def test_what_was_declared_differently_is_no_drift() -> None:
    """A pull request in flight does not raise an alarm."""
    drift = drift_of(
        [declared(GREET, an_action(timeout="5s"))], [held(GREET, an_action(), **APPLIED)]
    )

    assert drift.objects == ()


def test_of_an_object_changed_on_both_sides_only_the_service_s_fields_are_drift() -> None:
    """Three things are compared: declared, applied last, held now."""
    found = held(GREET, an_action(timeout="1s"), **BY_ANA)
    wanted = declared(GREET, an_action(allowedToFail=True))

    drift = drift_of([wanted], [found], {found.id: [applied()]})

    assert [field.name for field in drift.objects[0].fields] == ["timeout"]


def test_a_change_that_was_taken_back_on_the_service_is_no_drift() -> None:
    """The service holds what was applied; the difference was declared since."""
    found = held(GREET, an_action(), **BY_ANA)
    wanted = declared(GREET, an_action(timeout="5s"))

    assert drift_of([wanted], [found], {found.id: [applied()]}).objects == ()


def test_without_a_history_every_difference_counts() -> None:
    """Better one line too many than a change that nobody sees."""
    drift = drift_of([declared(GREET)], [held(GREET, an_action(timeout="1s"), **BY_ANA)])

    assert [field.name for field in drift.objects[0].fields] == ["timeout"]


def removal(ref: ResourceRef, *, trees: Sequence[str], tree: str = "") -> Removal:
    return Removal(ref, "9", frozenset(trees), event("action.removed", tree))


def test_what_somebody_removed_is_drift() -> None:
    """An application that is gone is the worst of drifts."""
    drift = drift_of([declared(GREET)], [], removals=[removal(GREET, trees=["default"])])

    (drifted,) = drift.objects
    assert (drifted.removed, drifted.id, drifted.cause.by) == (True, "9", "ana")


def test_what_this_tree_removed_or_never_applied_is_not() -> None:
    """A delete that was planned, and somebody else's object, are no news."""
    gone = [removal(GREET, trees=["other"]), removal(GREET, trees=["default"], tree="default")]

    assert drift_of([declared(GREET)], [], removals=gone).objects == ()


def test_what_was_renamed_on_the_service_is_one_drift_and_not_unmanaged() -> None:
    """It is still the object that was applied, by its history."""
    renamed = held(a_ref(Kind.ACTION, "hello"), object_id="7", **BY_ANA)

    drift = drift_of([declared(GREET)], [renamed], {"7": [applied()]})

    (drifted,) = drift.objects
    assert drifted.fields == (FieldChange("metadata.name", "greet", "hello"),)
    assert drift.unmanaged == ()


def test_what_is_declared_nowhere_is_listed_and_is_no_drift() -> None:
    """Somebody else may own it."""
    drift = drift_of([], [held(GREET, trees=(), **BY_ANA)])

    assert drift.objects == ()
    assert drift.unmanaged == (GREET,)


def test_differences_nobody_tells_the_author_of_are_told_apart() -> None:
    """A service that does not say who wrote is not said to be in step."""
    assert drift_of([declared(GREET)], [held(GREET, an_action(timeout="1s"))]).untold == (GREET,)


def test_the_history_is_asked_for_suspects_alone() -> None:
    """A thousand objects in step cost no call."""
    mine = held(WEB, **APPLIED)
    theirs = held(GREET, an_action(timeout="1s"), **BY_ANA)
    state = observed(*HOUSE, mine, theirs)
    plan = build_plan(desired(*OWNERS, declared(WEB), declared(GREET)), state)

    assert suspects(plan, state) == (theirs,)
    assert owners_to_ask(plan, state) == ()


def test_removals_are_asked_for_where_something_is_missing() -> None:
    """Only the organizations in which there is something to find."""
    state = observed(*HOUSE)

    assert owners_to_ask(build_plan(desired(*OWNERS, declared(GREET)), state), state) == (
        held(ACME).id,
    )
