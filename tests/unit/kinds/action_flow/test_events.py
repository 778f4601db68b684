"""Flows as their events make them, and the events that a change means."""

from __future__ import annotations

import pytest

from reconciler.kinds.action_flow.events import ActionDropped, TriggerSet, change_flow
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import (
    Event,
    Held,
    ImpossibleHistoryError,
    Removed,
    State,
    Unborn,
)
from reconciler.service.domain.state import evolve
from tests.rows import each_row

FLOW = Kind.ACTION_FLOW
UNBORN = Unborn("1", "acme")


def flow(**triggers: list[str]) -> Held:
    return Held(FLOW, "1", "acme", "acme", "LOGIN", triggers)


def trigger_set(trigger: str, *actions: str) -> TriggerSet:
    return TriggerSet(FLOW, "LOGIN", trigger, actions)


@each_row(
    ("before", "event", "after"),
    [
        (UNBORN, trigger_set("PRE", "7", "8"), flow(PRE=["7", "8"])),
        (flow(PRE=["7"]), trigger_set("POST", "8"), flow(PRE=["7"], POST=["8"])),
        (flow(PRE=["7"], POST=["8"]), trigger_set("PRE"), flow(POST=["8"])),
        (flow(PRE=["7", "8"], POST=["7"]), ActionDropped(FLOW, "7"), flow(PRE=["8"])),
        (flow(PRE=["7"]), Removed(FLOW), None),
    ],
)
def test_an_event_makes_of_a_flow_what_it_says(before: State, event: Event, after: State) -> None:
    assert evolve(before, event) == after


def test_nothing_is_dropped_from_a_flow_that_is_not_there() -> None:
    for state in (UNBORN, None, Held(Kind.ACTION, "1", "acme", "acme", "greet", {})):
        with pytest.raises(ImpossibleHistoryError):
            evolve(state, ActionDropped(FLOW, "7"))


@each_row(
    ("decided", "wanted"),
    [
        (change_flow({"PRE": ["7"]}, trigger_set("PRE", "7")), ()),
        (change_flow({}, trigger_set("PRE")), ()),
        (change_flow({"PRE": ["7"]}, ActionDropped(FLOW, "8")), ()),
        (
            change_flow({"PRE": ["7", "8"]}, trigger_set("PRE", "8", "7")),
            (trigger_set("PRE", "8", "7"),),
        ),
        (change_flow({"PRE": ["7"]}, trigger_set("PRE")), (Removed(FLOW),)),
        (change_flow({"PRE": ["7"]}, ActionDropped(FLOW, "7")), (Removed(FLOW),)),
    ],
)
def test_only_a_difference_is_an_event(decided: object, wanted: object) -> None:
    assert decided == wanted
