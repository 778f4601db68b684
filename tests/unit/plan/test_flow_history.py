"""Events of flows as what the flow was after each."""

from __future__ import annotations

from typing import Any

from reconciler.plan.causes import steps_of
from reconciler.plan.flow_history import action_names, all_names, with_specs
from reconciler.resources.ref import Kind
from reconciler.state import ObjectEvent, Removal
from tests.builders import GREET, WEB, a_ref, held, observed

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


def test_only_actions_are_named() -> None:
    assert action_names(observed(held(GREET, object_id="7"), held(WEB))) == {"7": "greet"}


def test_the_removals_are_asked_only_for_actions_that_are_not_held() -> None:
    """A removed object of another kind is no action of that id."""
    asked: list[int] = []
    gone = event("action.removed")
    log = Removal(a_ref(Kind.ACTION, "log"), "8", frozenset(), gone)
    other = Removal(WEB, "9", frozenset(), gone)

    def removals() -> list[Removal]:
        asked.append(1)
        return [log, other]

    held_only = all_names([trigger_set("A", "7")], {"7": "greet"}, removals)
    calls = len(asked)
    both = all_names([trigger_set("A", "7", "8", "9")], {"7": "greet"}, removals)

    assert (held_only, calls) == ({"7": "greet"}, 0)
    assert both == {"7": "greet", "8": "log"}
