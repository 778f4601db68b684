"""The states that events lead to, and the events that updates mean."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.resources.ref import Kind
from reconciler.service.domain.events import (
    Added,
    Changed,
    ContextRecorded,
    Deactivated,
    Event,
    Held,
    ImpossibleHistoryError,
    Reactivated,
    Removed,
    Renamed,
    State,
    Unborn,
)
from reconciler.service.domain.refusal import Refusal
from reconciler.service.domain.state import change, evolve, switch
from reconciler.service.projections.objects import OF_EVERY_KIND
from tests.rows import each_row

UNBORN = Unborn("1", "acme")
ACTION = Held(Kind.ACTION, "1", "acme", "acme", "greet", {"script": "x"})
APP = Held(Kind.OIDC_APPLICATION, "1", "acme", "shop", "web", {}, "7", "hash")
SWITCHABLE = (
    Held(Kind.PROJECT, "1", "acme", "acme", "shop", {"projectRoleCheck": True}),
    Held(Kind.IDP_JWT_CONFIG, "1", "acme", "acme", "partner", {"issuer": "x"}),
    ACTION,
    APP,
)

HISTORY: list[tuple[State, Event, State]] = [
    (
        UNBORN,
        Added(Kind.ORGANIZATION, "acme"),
        Held(Kind.ORGANIZATION, "1", "acme", "", "acme", {}),
    ),
    (UNBORN, Added(Kind.ACTION, "greet", spec={"script": "x"}), ACTION),
    (UNBORN, Added(Kind.OIDC_APPLICATION, "web", "shop", "7", "hash"), APP),
    *((held, Renamed(held.kind, "new"), replace(held, name="new")) for held in SWITCHABLE),
    (ACTION, Changed(Kind.ACTION, {"script": "y"}), replace(ACTION, spec={"script": "y"})),
    *((held, ContextRecorded(held.kind), held) for held in SWITCHABLE),
    *((held, Deactivated(held.kind), replace(held, active=False)) for held in SWITCHABLE),
    *((replace(held, active=False), Reactivated(held.kind), held) for held in SWITCHABLE),
    *((held, Removed(held.kind), None) for held in SWITCHABLE),
]


@each_row(("before", "event", "after"), HISTORY)
def test_an_event_makes_of_an_object_what_it_says(
    before: State, event: Event, after: State
) -> None:
    """What an event does not speak of stays as it was."""
    assert evolve(before, event) == after


def test_every_event_there_is_has_a_row_above() -> None:
    """A new event joins the table, or this fails. What only one kind has is tested with it."""
    assert {type(event) for _, event, _ in HISTORY} == set(OF_EVERY_KIND)


@each_row("event", [event for _, event, _ in HISTORY])
def test_nothing_follows_a_removal(event: Event) -> None:
    """A log that says so is not one that this program wrote."""
    with pytest.raises(ImpossibleHistoryError):
        evolve(None, event)


@each_row("event", [event for _, event, _ in HISTORY])
def test_an_object_begins_by_being_added_and_is_added_once(event: Event) -> None:
    """Every other event needs an object, and adding needs there to be none."""
    begins = isinstance(event, Added)

    with pytest.raises(ImpossibleHistoryError):
        evolve(replace(ACTION, kind=event.kind) if begins else UNBORN, event)


@each_row("event", [event for before, event, _ in HISTORY if isinstance(before, Held)])
def test_an_event_of_another_kind_is_refused(event: Event) -> None:
    with pytest.raises(ImpossibleHistoryError):
        evolve(Held(Kind.ORGANIZATION, "1", "1", "", "acme", {}), event)


@each_row(
    ("decided", "wanted"),
    [
        (change(ACTION, name="greet", spec={"script": "x"}), ()),
        (change(ACTION, name="Greet"), (Renamed(Kind.ACTION, "Greet"),)),
        (change(ACTION, spec={"script": "y"}), (Changed(Kind.ACTION, {"script": "y"}),)),
        (
            change(ACTION, name="new", spec={"script": "y"}),
            (Renamed(Kind.ACTION, "new"), Changed(Kind.ACTION, {"script": "y"})),
        ),
        (
            change(
                replace(APP, spec={"redirectUris": ["a", "b"]}), spec={"redirectUris": ["b", "a"]}
            ),
            (Changed(Kind.OIDC_APPLICATION, {"redirectUris": ["b", "a"]}),),
        ),
        (switch(ACTION, active=False), (Deactivated(Kind.ACTION),)),
        (switch(replace(ACTION, active=False), active=True), (Reactivated(Kind.ACTION),)),
    ],
)
def test_only_a_difference_is_an_event(decided: object, wanted: object) -> None:
    """An apply with nothing to change writes nothing."""
    assert decided == wanted


@pytest.mark.parametrize("active", [False, True])
def test_a_state_that_is_there_already_is_refused(*, active: bool) -> None:
    with pytest.raises(Refusal):
        switch(replace(ACTION, active=active), active=active)
