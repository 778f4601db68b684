"""The history of an object: what each event changed, also at a trigger of a flow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.plan.causes import field_causes
from reconciler.plan.diff import FieldChange
from reconciler.plan.history import (
    Step,
    altered_between,
    lacks_names,
    names_by_id,
    since_applied,
    steps_of,
    with_specs,
)
from reconciler.plan.model import CauseKind, Update
from reconciler.resources.normal import LEFT_AS_HELD
from reconciler.resources.ref import Kind
from reconciler.state import ObjectEvent, Removal, completed
from tests.builders import GREET, SHOP, WEB, a_ref, declared, held

ANA: dict[str, Any] = {"changed_by": "ana", "changed_at": "2026-01-01T00:00:00Z", "sequence": 43}


def an_event(type_: str, context: dict[str, Any] | None = None, **payload: Any) -> ObjectEvent:
    return ObjectEvent(type_, 1, "noon", "ana", context or {}, payload)


def flags(**said: bool) -> dict[str, Any]:
    return {**LEFT_AS_HELD[Kind.PROJECT], **said}


EVENTS = [
    an_event("application.added", {"tree": "default"}, name="web", spec={"devMode": False}),
    an_event("application.renamed", name="shop"),
    an_event("application.changed", {"tree": "default"}, spec={"devMode": True}),
    an_event("application.secret.changed", {"tree": "default"}),
    an_event("application.context.recorded", {"tree": "other", "preventDelete": True}),
    an_event("application.changed", spec={"devMode": False}),
    an_event("application.removed"),
]


def test_each_event_is_told_by_what_it_changed() -> None:
    """The reader sees differences, not states."""
    fields = [step.fields for step in steps_of(EVENTS)]

    assert fields == [
        (
            FieldChange("metadata.name", None, "web"),
            FieldChange("devMode", before=None, after=False),
        ),
        (FieldChange("metadata.name", "web", "shop"),),
        (FieldChange("devMode", before=False, after=True),),
        (),
        (FieldChange("metadata.preventDelete", before=None, after=True),),
        (FieldChange("devMode", before=True, after=False),),
        (),
    ]


def test_new_secrets_and_removals_are_told_without_fields() -> None:
    """That it happened is all there is to tell of a secret."""
    steps = list(steps_of(EVENTS))

    assert [step.event for step in steps] == EVENTS
    assert [number for number, step in enumerate(steps) if step.secret] == [3]
    assert [number for number, step in enumerate(steps) if step.removed] == [6]


def test_an_application_that_is_made_with_a_secret_says_so() -> None:
    """Its hash is in the event, and is no field of it."""
    made = an_event("application.added", name="web", spec={}, secret_hash="0" * 64)

    (step,) = steps_of([made])

    name = FieldChange("metadata.name", None, "web")
    assert step == Step(made, (name,), {"metadata.name": "web"}, secret=True)


def test_a_mark_is_told_from_when_it_was_first_set() -> None:
    """Every event says whether it is set; that it never was is no news."""
    said = [None, False, True, True, False, None]
    contexts = [{} if mark is None else {"critical": mark} for mark in said]
    steps = steps_of([an_event("application.context.recorded", context) for context in contexts])

    assert [[(f.before, f.after) for f in step.fields] for step in steps] == [
        [], [], [(None, True)], [], [(True, False)], [],
    ]  # fmt: skip


def test_ignored_fields_are_told_from_when_there_were_first_any() -> None:
    said = [None, "", "a", "b,a,", "a,b", "", None]
    contexts = [{} if names is None else {"ignore": names} for names in said]
    steps = steps_of([an_event("application.context.recorded", context) for context in contexts])

    assert [[(f.name, f.after) for f in step.fields] for step in steps] == [
        [], [], [("metadata.ignore", ["a"])], [("metadata.ignore", ["a", "b"])],
        [], [("metadata.ignore", [])], [],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("types", "told"),
    [
        pytest.param(["deactivated"], [(True, False)], id="switched off for the first time"),
        pytest.param(
            ["deactivated", "renamed", "reactivated"], [(True, False), (False, True)], id="both"
        ),
    ],
)
def test_a_switch_is_told_from_the_state_before(
    types: list[str], told: list[tuple[bool, bool]]
) -> None:
    """Every object is made active, and no event says so."""
    steps = steps_of([an_event(f"app.{type_}") for type_ in types])

    assert [
        (field.before, field.after)
        for step in steps
        for field in step.fields
        if field.name == "metadata.active"
    ] == told


@pytest.mark.parametrize(
    ("first", "last", "altered"),
    [
        (2, 5, {"metadata.name": 2, "devMode": 3, "metadata.preventDelete": 5}),
        (3, 6, {"metadata.preventDelete": 5, "devMode": 6}),
        (4, 4, {}),
    ],
)
def test_what_altered_a_field_is_the_last_event_within_both_bounds(
    first: int, last: int, altered: dict[str, int]
) -> None:
    events = [replace(each, sequence=at) for at, each in enumerate(EVENTS, 1)]

    found = altered_between(events, first, last)

    assert {name: event.sequence for name, event in found.items()} == altered


def test_what_a_tree_applied_last_is_what_its_last_write_left() -> None:
    """Everything before it included, nothing after it."""
    since = since_applied(EVENTS, "default")

    assert since is not None
    assert since.applied == {"metadata.name": "shop", "devMode": True}
    assert since_applied(EVENTS, "nobody") is None


@pytest.mark.parametrize("what", ["changed", "claimed"])
def test_a_secret_is_not_an_application_of_the_manifest(what: str) -> None:
    """Rotating or delivering a secret does not make what somebody else changed one's own."""
    events = [EVENTS[0], EVENTS[2], an_event("application.changed", spec={"devMode": False})]
    rotated = an_event(f"application.secret.{what}", {"tree": "default"})

    since = since_applied([*events, rotated], "default")

    assert since is not None
    assert since.applied == {"metadata.name": "web", "devMode": True}
    assert since.altered == {"devMode": events[-1]}


def test_flags_of_a_project_are_changed_by_the_event_that_alters_them() -> None:
    """Each event has all of them; those that stay as they were are no change."""
    on, off = flags(projectRoleCheck=True), flags(hasProjectCheck=True)
    events = [
        an_event("project.added", name="shop", spec=flags()),
        an_event("project.changed", {"tree": "default"}, name="shop", spec=on),
        an_event("project.changed", name="shop", spec=off),
    ]

    first, *fields = [step.fields for step in steps_of(events)]
    found = held(SHOP, off, **ANA)
    change = Update(completed(declared(SHOP, {"projectRoleCheck": True}), found), found)
    ((field, cause),) = field_causes(change, events, "default").values()

    assert {each.name for each in first} == {"metadata.name", *flags()}
    assert fields == [
        (FieldChange("projectRoleCheck", before=False, after=True),),
        (
            FieldChange("projectRoleCheck", before=True, after=False),
            FieldChange("hasProjectCheck", before=False, after=True),
        ),
    ]
    assert (field.name, cause.kind, cause.by) == ("projectRoleCheck", CauseKind.SERVICE, "ana")


def test_a_flag_that_a_manifest_says_for_the_first_time_is_declared_differently() -> None:
    """The tree applied it at its default, and nobody has changed it since."""
    events = [an_event("project.added", {"tree": "default"}, name="shop", spec=flags())]
    found = held(SHOP, flags(), changed_by="ana", changed_in="default")
    change = Update(completed(declared(SHOP, {"projectRoleCheck": True}), found), found)

    ((field, cause),) = field_causes(change, events, "default").values()

    assert (field.name, cause.kind) == ("projectRoleCheck", CauseKind.DECLARED)


NAMES = {"7": "greet", "8": "log"}


def event(kind: str, **payload: Any) -> ObjectEvent:
    return ObjectEvent(kind, 1, "2026-01-02T03:04:05Z", "ana", {}, payload)


def trigger_set(trigger: str, *actions: str) -> ObjectEvent:
    return event("flow.trigger.set", flow="COMPLEMENT_TOKEN", trigger=trigger, actions=[*actions])


def test_each_event_tells_what_the_flow_runs_by_the_names_of_actions() -> None:
    events = [
        trigger_set("A", "7", "8"),
        trigger_set("B", "9"),
        event("flow.action.dropped", action="7"),
        event("flow.removed"),
        trigger_set("A", "7"),
    ]

    told = [each.payload["spec"] for each in with_specs(events, NAMES)]

    assert told == [
        {"A": ["greet", "log"]},
        {"A": ["greet", "log"], "B": ["(action of id 9)"]},
        {"A": ["log"], "B": ["(action of id 9)"]},
        {"A": [], "B": []},
        {"A": ["greet"], "B": []},
    ]


def test_the_steps_of_a_flow_name_the_triggers_that_changed() -> None:
    events = [trigger_set("A", "7"), trigger_set("B", "8"), event("flow.removed")]

    steps = list(steps_of(with_specs(events, NAMES)))

    assert [[field.name for field in step.fields] for step in steps] == [["A"], ["B"], ["A", "B"]]
    assert [step.removed for step in steps] == [False, False, True]


def test_other_events_stay_as_they_are() -> None:
    events = [event("action.changed", name="greet", spec={"script": "x"})]

    assert with_specs(events, NAMES) == events


def test_an_event_of_a_flow_that_is_damaged_is_told_all_the_same() -> None:
    """A later version may say it in another way."""
    odd = [event("flow.trigger.set", actions="7"), event("flow.trigger.set", actions=["7"])]

    renamed = event("flow.renamed")
    told = with_specs([renamed, *odd], NAMES)
    assert told[0] is renamed
    assert [each.payload for each in told[1:]] == [{"spec": {"": []}}, {"spec": {"": ["greet"]}}]


def test_only_actions_are_named() -> None:
    assert names_by_id([held(GREET, object_id="7"), held(WEB)]) == {"7": "greet"}


def test_names_of_actions_that_are_not_held_are_those_of_removed_ones() -> None:
    """A removed object of another kind is no action of that id."""
    gone = event("action.removed")
    log = Removal(a_ref(Kind.ACTION, "log"), "8", frozenset(), gone)

    assert not lacks_names([trigger_set("A", "7")], {"7": "greet"})
    assert lacks_names([trigger_set("A", "7", "8")], {"7": "greet"})
    assert names_by_id([log, Removal(WEB, "9", frozenset(), gone)]) == {"8": "log"}
