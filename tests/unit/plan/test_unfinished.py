"""Objects that an interrupted run made and was about to deactivate: what guards let pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.plan.guards import Allowances, deactivates
from reconciler.plan.model import Plan, Scope
from reconciler.plan.risk import risks_of
from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind
from reconciler.state import ObservedObject, Resource
from tests.builders import (
    GREET,
    TOKEN,
    WEB,
    a_ref,
    an_action,
    an_application,
    declared,
    held,
    plan_of,
)
from tests.rows import each_row

OFF = replace(declared(WEB, critical=True), active=False)
BEGUN = {held(WEB).id: OFF.spec}
OTHER = an_application(devMode=True)


def codes(plan: Plan) -> list[str]:
    return [block.code for block in plan.blocks]


def after_a_kill(resource: Resource = OFF, begun: Mapping[str, Spec] = BEGUN, **found: Any) -> Plan:
    """Return the plan of a run that comes after; the object is held as it was made."""
    objects = [held(WEB, **{"critical": True, **found})]
    return plan_of([resource], objects, allowed=Allowances(begun=begun))


def test_the_second_half_of_a_create_needs_no_break_glass() -> None:
    """The plan still shows it."""
    plan = after_a_kill(owner="default")

    assert codes(plan) == []
    assert [risk.name for risk in risks_of(*plan.changes)] == ["deactivated"]


def test_a_service_that_tells_no_owners_is_believed_the_content() -> None:
    assert codes(after_a_kill(trees=(), owner=None, critical=None)) == []


@each_row(
    ("resource", "begun", "found"),
    [
        pytest.param(OFF, {}, {}, id="no run began it"),
        pytest.param(OFF, {held(GREET).id: OFF.spec}, {}, id="a run began another"),
        pytest.param(
            OFF, {held(WEB).id: declared(WEB, OTHER).spec}, {}, id="it is not as it was made"
        ),
        pytest.param(
            replace(OFF, spec=declared(WEB, OTHER).spec), BEGUN, {}, id="more is declared"
        ),
        pytest.param(OFF, BEGUN, {"owner": "other"}, id="another tree owns it"),
        pytest.param(
            replace(OFF, pinned_id="9"), BEGUN, {"object_id": "9"}, id="another of its name"
        ),
        pytest.param(replace(OFF, active=True), BEGUN, {"active": False}, id="switched on"),
    ],
)
def test_any_other_switch_of_a_critical_object_is_stopped(
    resource: Resource, begun: Mapping[str, Spec], found: dict[str, Any]
) -> None:
    """What the interrupted run was not about to do, it is no reason for."""
    assert codes(after_a_kill(resource, begun, **found)) == ["GUARD-CRITICAL"]


def test_a_delete_is_no_half_of_a_create() -> None:
    plan = plan_of([], [held(WEB, critical=True)], Scope(prune=True), Allowances(begun=BEGUN))

    assert "GUARD-CRITICAL" in codes(plan)


@pytest.mark.parametrize(
    ("is_begun", "expected"), [(1, []), (0, ["GUARD-MANY-UPDATES", "GUARD-CRITICAL"])]
)
def test_many_halves_of_creates_are_not_many_updates(is_begun: int, expected: list[str]) -> None:
    """A batch of creates may be cut all at once; an action of a critical flow may be among them."""
    refs = [GREET, *(a_ref(Kind.ACTION, f"a{at}") for at in range(11))]
    resources = [replace(declared(ref), active=False) for ref in refs]
    flow = declared(TOKEN, {"PRE_USERINFO_CREATION": ["greet"]}, critical=True)
    begun = {held(ref).id: declared(ref, an_action()).spec for ref in refs} if is_begun else {}

    plan = plan_of([*resources, flow], [held(ref) for ref in refs], allowed=Allowances(begun=begun))

    assert codes(plan) == expected


@each_row(
    ("resource", "found", "deactivated"),
    [
        pytest.param(OFF, held(WEB), True, id="active, declared inactive"),
        pytest.param(OFF, held(WEB, active=False), False, id="inactive already"),
        pytest.param(OFF, None, False, id="not held"),
        pytest.param(replace(OFF, active=None), held(WEB), False, id="no state declared"),
        pytest.param(replace(OFF, active=True), held(WEB), False, id="declared active"),
    ],
)
def test_only_what_would_be_deactivated_can_be_the_rest_of_a_create(
    resource: Resource, found: ObservedObject | None, *, deactivated: bool
) -> None:
    assert deactivates([(declared(GREET), held(GREET)), (resource, found)]) is deactivated
