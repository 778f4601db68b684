"""The next step of a tree, from every mode and every reason to hold a commit back."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.continuous.decision import (
    Condition,
    Hold,
    Mode,
    Situation,
    blocked,
    conditions_of,
    holds_of,
    next_step,
)
from reconciler.diagnostics import error
from tests.builders import a_plan
from tests.rows import each_row

OLD, NEW = "a" * 40, "b" * 40
HELD = (Hold(Condition.INVALID, "problem", "remedy"),)


def situation(mode: Mode, **more: Any) -> Situation:
    known: dict[str, Any] = {"tip": NEW, "applied": OLD, **more}
    return Situation(mode, **known)


@each_row(
    ("mode", "more", "step"),
    [
        (Mode.OBSERVE, {}, Mode.OBSERVE),
        (Mode.HEAL, {}, Mode.HEAL),
        (Mode.APPLY, {}, Mode.APPLY),
        (Mode.APPLY, {"applied": ""}, Mode.APPLY),
        (Mode.APPLY, {"tip": OLD}, Mode.HEAL),
        (Mode.APPLY, {"tip": ""}, Mode.HEAL),
        (Mode.APPLY, {"holds": HELD}, Mode.HEAL),
        (Mode.APPLY, {"holds": HELD, "applied": ""}, Mode.OBSERVE),
        (Mode.APPLY, {"is_due": False}, Mode.HEAL),
        (Mode.APPLY, {"is_paused": True}, Mode.OBSERVE),
        (Mode.APPLY, {"applied_counts": False}, Mode.APPLY),
        (Mode.APPLY, {"applied_counts": False, "holds": HELD}, Mode.OBSERVE),
        (Mode.APPLY, {"is_protected": True}, Mode.OBSERVE),
        (Mode.APPLY, {"is_protected": True, "heals_protected": True}, Mode.HEAL),
        (Mode.HEAL, {"applied": ""}, Mode.OBSERVE),
        (Mode.HEAL, {"applied_counts": False}, Mode.OBSERVE),
        (Mode.HEAL, {"is_paused": True}, Mode.OBSERVE),
        (Mode.HEAL, {"is_protected": True}, Mode.OBSERVE),
        (Mode.OBSERVE, {"is_protected": True, "heals_protected": True}, Mode.OBSERVE),
    ],
)
def test_the_step_of_a_situation(mode: Mode, more: dict[str, Any], step: Mode) -> None:
    assert next_step(situation(mode, **more)) is step


_SITUATIONS = st.builds(
    Situation,
    mode=st.sampled_from(Mode),
    tip=st.sampled_from(["", OLD, NEW]),
    applied=st.sampled_from(["", OLD, NEW]),
    applied_counts=st.booleans(),
    holds=st.sampled_from([(), HELD]),
    is_protected=st.booleans(),
    heals_protected=st.booleans(),
    is_paused=st.booleans(),
    is_due=st.booleans(),
)


@given(_SITUATIONS)
def test_nothing_is_written_that_is_not_allowed(found: Situation) -> None:
    """The laws of a run, whatever comes together."""
    step = next_step(found)

    if found.is_paused or found.mode is Mode.OBSERVE:
        assert step is Mode.OBSERVE
    if found.is_protected:
        assert step is not Mode.APPLY
        assert step is Mode.OBSERVE or found.heals_protected
    if step is Mode.APPLY:
        assert found.mode is Mode.APPLY
        assert not found.holds
        assert found.tip not in {"", found.applied}
        assert found.is_due
    if step is Mode.HEAL:
        assert found.applied
        assert found.applied_counts


def test_a_commit_is_held_for_each_reason() -> None:
    """Each is said with the option that lets it through, where there is one."""
    for rewritten, unsigned, changed in product((True, False), repeat=3):
        holds = [
            *holds_of(
                NEW,
                OLD if rewritten else "",
                signature="no signature" if unsigned else "",
                differences=("protected of environment production",) if changed else (),
            )
        ]
        expected = [
            *([Condition.REWRITTEN] if rewritten else []),
            *([Condition.UNSIGNED] if unsigned else []),
            *([Condition.UNTRUSTED] if changed else []),
        ]

        assert [hold.why for hold in holds] == expected
        assert all(NEW in hold.problem or NEW in hold.remedy for hold in holds)


def test_a_rewritten_ref_is_accepted_at_one_commit_only() -> None:
    """What is pushed there next has to be looked at again."""
    assert not [*holds_of(NEW, OLD, accepted=NEW)]
    assert [*holds_of(NEW, OLD, accepted=OLD)]


def test_a_blocked_plan_holds_its_commit_back() -> None:
    first, second = error("GUARD-A", "too much", "Allow it."), error("GUARD-B", "more", "Do.")

    assert blocked(a_plan()) is None
    assert blocked(a_plan(blocks=(first,))) == Hold(
        Condition.BLOCKED, "GUARD-A: too much", "Allow it."
    )
    held = blocked(a_plan(blocks=(first, second)))
    assert held is not None
    assert "and 1 more" in held.problem


def test_conditions_are_what_somebody_may_have_to_do_something_about() -> None:
    """In step means none at all."""
    calm = situation(Mode.APPLY, tip=OLD)
    assert conditions_of(calm, differing=(), drifted=(), contested=(), owed=0) == ()
    assert conditions_of(calm, differing=[1], drifted=(), contested=(), owed=0) == (
        Condition.DIFFERING,
    )

    busy = situation(Mode.APPLY, holds=HELD, is_paused=True)
    found = conditions_of(busy, differing=[1], drifted=[1], contested=[1], owed=1)
    assert found == (
        Condition.PENDING,
        Condition.INVALID,
        Condition.DRIFTED,
        Condition.CONTESTED,
        Condition.PAUSED,
        Condition.OWED,
    )
