"""Events: their names never change once a version is released, because old logs are read."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from reconciler.kinds.events import EVENTS
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import Added, Event, Renamed, side_stream, type_of
from reconciler.service.projections.objects import OF_EVERY_KIND, SIDE_EVENTS
from tests.rows import each_row

WORDS = {
    Kind.ORGANIZATION: "organization",
    Kind.PROJECT: "project",
    Kind.IDP_JWT_CONFIG: "provider",
    Kind.OIDC_APPLICATION: "application",
    Kind.ACTION: "action",
    Kind.ACTION_FLOW: "flow",
    Kind.PROJECT_ROLE: "role",
}
STORED = {
    "added": ["name", "project", "client_id", "secret_hash", "spec"],
    "renamed": ["name"],
    "changed": ["spec"],
    "deactivated": [],
    "reactivated": [],
    "context.recorded": [],
    "removed": [],
}
OWN = {
    "organization.tree.paused": ["tree", "reason", "until"],
    "organization.tree.resumed": ["tree"],
    "organization.tree.applied": ["tree", "commit", "outcome"],
    "organization.object.unmade": ["key", "undone"],
    "organization.object.remade": ["key"],
    "application.secret.changed": ["secret_hash"],
    "flow.trigger.set": ["flow", "trigger", "actions"],
    "flow.action.dropped": ["action"],
}
SIDE = {"application.secret.claimed": ["application", "made_at"]}


def fields(event: type[Event]) -> list[str]:
    """Return the names of the fields that are stored."""
    return [*event.__slots__]


def test_types_and_fields_are_those_of_every_stored_log() -> None:
    """A name that changes here makes the logs of earlier releases unreadable."""
    assert {kind: type_of(kind, "added") for kind in Kind} == {
        kind: f"{word}.added" for kind, word in WORDS.items()
    }
    assert {event.VERB: fields(event) for event in OF_EVERY_KIND} == STORED
    assert {
        type_of(kind, event.VERB): fields(event)
        for kind, row in EVENTS.items()
        for event in row.own
    } == OWN
    assert {
        type_of(kind, event.VERB): fields(event)
        for kind, row in EVENTS.items()
        for event in row.side
    } == SIDE
    assert SIDE.keys() == SIDE_EVENTS


@each_row("name", [*(f"project.{verb}" for verb in STORED), *OWN, *SIDE])
def test_a_type_is_words_with_dots(name: str) -> None:
    assert re.fullmatch(r"[a-z]+(?:\.[a-z]+)+", name)


def test_no_two_kinds_share_the_word_that_begins_a_type() -> None:
    assert len({type_of(kind, "added") for kind in Kind}) == len(Kind)


def test_an_event_is_a_fact_and_does_not_change() -> None:
    event: Any = Added(Kind.ACTION, "greet")

    with pytest.raises(FrozenInstanceError):
        event.name = "other"
    assert Renamed(Kind.ACTION, "greet").type == "action.renamed"


def test_side_events_stand_in_a_stream_of_their_own() -> None:
    assert side_stream("7") != "7"
    assert side_stream("7") != side_stream("77")
