"""Actions that a critical flow runs: as if each was critical."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reconciler.plan.guards import Allowances
from reconciler.plan.model import Scope
from reconciler.state import ObservedObject, Resource
from tests.builders import GREET, TOKEN, an_action, declared, held, plan_of

OTHER_SCRIPT = declared(GREET, an_action(script="function greet() { return 2; }"))
FLOW, HELD_FLOW = declared(TOKEN), held(TOKEN)
CRITICAL, HELD_CRITICAL = declared(TOKEN, critical=True), held(TOKEN, critical=True)


def summaries(
    resources: Sequence[Resource],
    objects: Sequence[ObservedObject],
    scope: Scope | None = None,
    lockouts: dict[str, str] | None = None,
) -> list[str]:
    plan = plan_of(resources, objects, scope, Allowances(deletes=9, lockouts=lockouts or {}))
    return [each.summary for each in plan.blocks if each.code == "GUARD-CRITICAL"]


CHANGED = "an action of a critical flow would be changed"


@pytest.mark.parametrize(
    ("flow", "held_flow", "expected"),
    [
        (CRITICAL, HELD_FLOW, [CHANGED]),
        (CRITICAL, HELD_CRITICAL, [CHANGED]),
        (FLOW, HELD_FLOW, []),
    ],
)
def test_a_critical_flow_keeps_the_scripts_of_its_actions(
    flow: Resource, held_flow: ObservedObject, expected: list[str]
) -> None:
    assert summaries([OTHER_SCRIPT, flow], [held(GREET), held_flow]) == expected


def test_a_held_critical_flow_keeps_its_actions_from_removal() -> None:
    found = summaries([], [held(GREET), HELD_CRITICAL], Scope(prune=True))

    assert "an action of a critical flow would be removed" in found


def test_breaking_the_glass_names_the_action() -> None:
    address = "action/acme/greet"

    found = summaries(
        [OTHER_SCRIPT, CRITICAL], [held(GREET), HELD_CRITICAL], lockouts={address: address}
    )

    assert found == []


def test_an_action_that_is_critical_itself_is_told_once() -> None:
    action = declared(GREET, an_action(script="function greet() { return 2; }"), critical=True)

    found = summaries([action, CRITICAL], [held(GREET, critical=True), HELD_CRITICAL])

    assert found == ["a critical object would be weakened"]


def test_a_change_without_a_risk_passes() -> None:
    slower = declared(GREET, an_action(timeout="5s"))

    assert summaries([slower, CRITICAL], [held(GREET), HELD_CRITICAL]) == []
