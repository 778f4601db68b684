"""Risks at a trigger: their names, which policies and labels are written against."""

from __future__ import annotations

from reconciler.plan.flow_risks import ORDER, SEVERE
from reconciler.plan.risk import is_severe


def test_what_weakens_a_protection_is_severe_and_an_order_is_not() -> None:
    assert [risk.name for risk in SEVERE] == [
        "trigger-emptied",
        "trigger-action-removed",
        "trigger-action-added",
    ]
    assert all(is_severe(risk.name) for risk in SEVERE)
    assert not is_severe(ORDER.name)


def test_a_new_flow_is_told_for_what_it_runs_only() -> None:
    assert [risk.name for risk in SEVERE if risk.also_new] == ["trigger-action-added"]
