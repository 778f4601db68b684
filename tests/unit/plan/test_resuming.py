"""How much of an approved plan is done, told from the last event of each object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reconciler.plan.model import Adopt, Change, Create, Delete, Update, ref_of
from reconciler.plan.resuming import Begun, Traces, begun, traces_of
from reconciler.plan.staleness import moved
from reconciler.resources.ref import Kind
from reconciler.state import ObjectEvent, ObservedObject, Removal
from tests.builders import (
    GREET,
    HOUSE,
    OWNERS,
    WEB,
    a_plan,
    a_ref,
    an_action,
    declared,
    desired,
    held,
    observed,
    plan_of,
)

DIGEST = "sha256:" + "d" * 64
OURS: dict[str, Any] = {"changed_by": "ci", "changed_in": "default", "changed_for": DIGEST}
THEIRS: dict[str, Any] = {"changed_by": "ana", "sequence": 9}
LATER = {"sequence": 9, **OURS}
OLD = a_ref(Kind.ACTION, "old")
FAST = declared(GREET, an_action(timeout="5s"))
SLOW = held(GREET, changed_by="ci")
DONE = held(GREET, an_action(timeout="5s"), **LATER)
NO_DELETE: Traces = Traces()


def state(
    approved: Sequence[Change], objects: Sequence[ObservedObject], traces: Traces = NO_DELETE
) -> tuple[Begun, bool]:
    """Return what is done of a plan, and whether what is left is as it was approved."""
    resources = [change.resource for change in approved if not isinstance(change, Delete)]
    now = plan_of(resources, objects)
    seen = observed(*HOUSE, *objects)
    found = begun(a_plan(*approved), DIGEST, now, seen, traces)
    wanted = desired(*OWNERS, *resources)
    return found, not moved(found.expected, found.left, wanted, seen)


@pytest.mark.parametrize(
    ("change", "now", "done", "as_approved"),
    [
        pytest.param(Update(FAST, SLOW), DONE, 1, True, id="updated by this plan"),
        pytest.param(Update(FAST, SLOW), SLOW, 0, True, id="not tried"),
        pytest.param(
            Update(FAST, SLOW),
            held(GREET, an_action(timeout="5s"), **THEIRS),
            0,
            False,
            id="as planned, by another hand",
        ),
        pytest.param(
            Update(FAST, SLOW),
            held(GREET, an_action(timeout="1s"), **THEIRS),
            0,
            False,
            id="something else, by another hand",
        ),
        pytest.param(Update(FAST, SLOW), held(GREET, **LATER), 0, True, id="half done"),
        pytest.param(
            Adopt(FAST, held(GREET, trees=(), changed_by="ana")), DONE, 1, True, id="adopted"
        ),
        pytest.param(
            Adopt(FAST, held(GREET, trees=(), changed_by="ana")),
            held(GREET, **LATER),
            0,
            True,
            id="half adopted, now an update",
        ),
        pytest.param(Create(FAST), DONE, 1, True, id="created by this plan"),
        pytest.param(
            Create(FAST),
            held(GREET, an_action(timeout="5s"), **THEIRS),
            0,
            False,
            id="created by another hand",
        ),
    ],
)
def test_a_change_is_done_where_the_last_event_is_of_this_plan(
    change: Change, now: ObservedObject, done: int, *, as_approved: bool
) -> None:
    """An equal object that somebody else wrote last is not what this plan did."""
    found, is_same = state([change], [now])

    assert (found.done, is_same) == (done, as_approved)


def test_a_create_that_never_happened_is_left() -> None:
    """A kill before the request left nothing behind."""
    found, is_same = state([Create(FAST), Create(declared(WEB))], [held(WEB, **LATER)])

    assert (found.done, found.was_begun, is_same) == (1, True, True)
    assert [ref_of(change) for change in found.left.changes] == [GREET]


@pytest.mark.parametrize(
    ("removed", "done"),
    [
        pytest.param(frozenset({held(OLD).id}), 1, id="removed by this plan"),
        pytest.param(frozenset(), 0, id="removed by another hand"),
        pytest.param(None, 1, id="the service does not tell"),
    ],
)
def test_a_delete_is_done_where_this_plan_removed_it(
    removed: frozenset[str] | None, done: int
) -> None:
    """An object that somebody else removed was not there to be removed."""
    found, is_same = state([Delete(held(OLD))], [], Traces(removed))

    assert found.done == done
    assert is_same is bool(done)


def test_without_writers_a_change_is_done_where_it_is_as_planned() -> None:
    """A service that keeps no events has no other trace."""
    found, is_same = state([Update(FAST, held(GREET))], [held(GREET, an_action(timeout="5s"))])

    assert (found.done, is_same) == (1, True)


@pytest.mark.parametrize(("renewed", "done"), [(frozenset({held(WEB).id}), 1), (frozenset(), 0)])
def test_a_secret_is_replaced_once(renewed: frozenset[str], done: int) -> None:
    """The same command asks for it again, and the history tells that it was made."""
    update = Update(declared(WEB), held(WEB, changed_by="ci"), new_secret=True)
    found_now = held(WEB, **LATER)
    now = a_plan(Update(declared(WEB), found_now, new_secret=True))
    seen = observed(*HOUSE, found_now)

    found = begun(a_plan(update), DIGEST, now, seen, Traces(renewed=renewed))

    assert found.done == done
    assert len(found.left.changes) == 1 - done
    assert not moved(found.expected, found.left, desired(*OWNERS, declared(WEB)), seen)


def event(type_: str, plan: str) -> ObjectEvent:
    return ObjectEvent(type_, 1, "noon", "ci", {"plan": plan}, {})


def test_traces_are_events_that_carry_the_digest() -> None:
    """Removals and secrets of other plans count for nothing."""
    removals = [
        Removal(OLD, "1", frozenset(), event("action.removed", DIGEST)),
        Removal(OLD, "2", frozenset(), event("action.removed", "sha256:x")),
    ]
    histories = {
        "3": [event("app.oidc.secret.changed", DIGEST)],
        "4": [event("app.oidc.secret.changed", "")],
        "5": [event("app.oidc.config.changed", DIGEST)],
    }

    assert traces_of(DIGEST, removals, histories) == Traces(frozenset({"1"}), frozenset({"3"}))
    assert traces_of(DIGEST, None, {}).removed is None
