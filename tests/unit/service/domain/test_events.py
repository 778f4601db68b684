"""Events: names that never change, because old logs are read for good."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from reconciler.service.domain.events import (
    EVENTS,
    SIDE_EVENTS,
    ActionAdded,
    side_stream,
)
from tests.rows import each_row

STORED = {
    "organization.added": ["name"],
    "project.added": ["name", "spec"],
    "project.changed": ["name", "spec"],
    "idp.jwt.added": ["name", "spec"],
    "idp.renamed": ["name"],
    "idp.jwt.config.changed": ["spec"],
    "idp.removed": [],
    "app.oidc.added": ["name", "project", "client_id", "secret_hash", "spec"],
    "app.renamed": ["name"],
    "app.oidc.config.changed": ["spec"],
    "app.oidc.secret.changed": ["secret_hash"],
    "app.removed": [],
    "action.added": ["name", "spec"],
    "action.changed": ["name", "spec"],
    "action.removed": [],
    "flow.trigger.set": ["flow", "trigger", "actions"],
    "flow.action.dropped": ["action"],
    "flow.removed": [],
    "context.recorded": [],
    **{
        f"{kind}.{state}": []
        for kind in ("project", "idp", "app", "action")
        for state in ("deactivated", "reactivated")
    },
}
SIDE = {"app.oidc.secret.claimed": ["application", "made_at"]}


def test_types_and_fields_are_those_of_every_stored_log() -> None:
    """A name that changes here makes the logs of earlier releases unreadable."""
    assert {name: [field.name for field in fields(event)] for name, event in EVENTS.items()} == (
        STORED
    )
    assert {name: [each.name for each in fields(event)] for name, event in SIDE_EVENTS.items()} == (
        SIDE
    )


@each_row("name", [*STORED, *SIDE])
def test_a_type_is_words_with_dots(name: str) -> None:
    assert re.fullmatch(r"[a-z]+(?:\.[a-z]+)+", name)


def test_an_event_is_a_fact_and_does_not_change() -> None:
    event: Any = ActionAdded("greet", {})

    with pytest.raises(FrozenInstanceError):
        event.name = "other"


def test_side_events_stand_in_a_stream_of_their_own() -> None:
    assert side_stream("7") != "7"
    assert side_stream("7") != side_stream("77")
