"""What each event of an object changed, and what a tree left behind."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.plan.diff import FieldChange
from reconciler.plan.history import Step, since_applied, steps_of
from reconciler.state import ObjectEvent


def event(type_: str, context: dict[str, Any] | None = None, **payload: Any) -> ObjectEvent:
    return ObjectEvent(type_, 1, "noon", "ana", context or {}, payload)


EVENTS = [
    event("app.oidc.added", {"tree": "default"}, name="web", spec={"devMode": False}),
    event("app.renamed", name="shop"),
    event("app.oidc.config.changed", {"tree": "default"}, spec={"devMode": True}),
    event("app.oidc.secret.changed", {"tree": "default"}),
    event("context.recorded", {"tree": "other", "preventDelete": True}),
    event("app.oidc.config.changed", spec={"devMode": False}),
    event("app.removed"),
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
    made = event("app.oidc.added", name="web", spec={}, secret_hash="0" * 64)

    (step,) = steps_of([made])

    assert step == Step(made, (FieldChange("metadata.name", None, "web"),), secret=True)


def test_a_mark_is_told_from_when_it_was_first_set() -> None:
    """Every event says whether it is set; that it never was is no news."""
    said = [None, False, True, True, False, None]
    contexts = [{} if mark is None else {"critical": mark} for mark in said]
    steps = steps_of([event("context.recorded", context) for context in contexts])

    assert [[(f.before, f.after) for f in step.fields] for step in steps] == [
        [], [], [(None, True)], [], [(True, False)], [],
    ]  # fmt: skip


def test_what_a_tree_applied_last_is_what_its_last_write_left() -> None:
    """Everything before it included, nothing after it."""
    since = since_applied(EVENTS, "default")

    assert since is not None
    assert since.applied == {"metadata.name": "shop", "devMode": True}
    assert since_applied(EVENTS, "nobody") is None


@pytest.mark.parametrize("what", ["changed", "claimed"])
def test_a_secret_is_not_an_application_of_the_manifest(what: str) -> None:
    """Rotating or delivering a secret does not make what somebody else changed one's own."""
    events = [EVENTS[0], EVENTS[2], event("app.oidc.config.changed", spec={"devMode": False})]
    rotated = event(f"app.oidc.secret.{what}", {"tree": "default"})

    since = since_applied([*events, rotated], "default")

    assert since is not None
    assert since.applied == {"metadata.name": "web", "devMode": True}
    assert since.altered == {"devMode": events[-1]}
