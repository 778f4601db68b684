"""States beside a plan: notes about what is inactive, and refusals of what cannot be so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.errors import InvalidManifestsError
from reconciler.plan.diff import field_changes
from reconciler.plan.digest import declared_digest, plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Update
from reconciler.plan.planner import build_plan
from reconciler.plan.risk import risks_of
from reconciler.resources.ref import Kind
from reconciler.state import ObservedObject, Resource
from tests.builders import GREET, HOUSE, WEB, declared, desired, held, observed


def web(*, active: bool | None) -> Resource:
    """Declare an application with a state."""
    return replace(declared(WEB), active=active)


def test_an_inactive_object_is_a_note_and_no_change() -> None:
    """Declared without a state or not declared at all: it stays, and the plan stays empty."""
    plan = build_plan(desired(declared(WEB)), observed(*HOUSE, _off(held(WEB)), _off(held(GREET))))

    assert (plan.changes, plan.inactive) == ((), (GREET, WEB))
    as_said = build_plan(desired(web(active=False)), observed(*HOUSE, _off(held(WEB))))
    assert (as_said.changes, as_said.inactive) == ((), ())


def _off(one: ObservedObject) -> ObservedObject:
    return replace(one, active=False)


@pytest.mark.parametrize(
    ("wanted", "name"), [(True, "reactivated"), (False, "deactivated")], ids=["on", "off"]
)
def test_a_switch_is_a_field_and_a_risk(name: str, *, wanted: bool) -> None:
    """Each way has a class of its own, and a critical object is not switched by itself."""
    change = Update(web(active=wanted), replace(held(WEB), active=not wanted))

    (field,) = field_changes(change)
    assert (field.name, field.before, field.after) == ("metadata.active", not wanted, wanted)
    assert [risk.name for risk in risks_of(change)] == [name]

    critical = replace(change.resource, critical=True)
    there = observed(*HOUSE, replace(change.held, critical=True))
    blocked = build_plan(desired(critical), there).blocks
    assert [block.code for block in blocked] == ["GUARD-CRITICAL"]
    assert blocked[0].summary == f"a critical object would be {name}"
    allowed = Allowances(lockouts={WEB.address.lower(): WEB.address})
    assert build_plan(desired(critical), there, allowed=allowed).blocks == ()


def test_a_state_that_is_not_said_leaves_digests_as_they_were() -> None:
    """Plans that were approved before there were states stay approved."""
    changed = declared(WEB)
    before = held(WEB, {**held(WEB).spec, "devMode": True})

    active, inactive = (
        build_plan(desired(changed), observed(*HOUSE, one)) for one in (before, _off(before))
    )
    assert plan_digest(active) == plan_digest(inactive)
    said = {declared_digest(desired(web(active=active))) for active in (None, True, False)}
    assert len(said) == 3
    assert len({plan_digest(build_plan(desired(web(active=one)), observed(*HOUSE, before)))
                for one in (None, True, False)}) == 3  # fmt: skip


@pytest.mark.parametrize("is_held", [True, False], ids=["held", "new"])
@pytest.mark.parametrize("keeps_history", [True, False], ids=["ours", "a ZITADEL"])
def test_what_the_service_cannot_deactivate_is_refused(
    *, is_held: bool, keeps_history: bool
) -> None:
    """At its own place, before anything is written; to reactivate is always possible."""
    objects = [*HOUSE]
    objects += [replace(held(WEB), can_be_inactive=False)] if is_held else []
    there = replace(
        observed(*objects),
        only_active=frozenset({Kind.OIDC_APPLICATION}),
        keeps_history=keeps_history,
    )

    with pytest.raises(InvalidManifestsError) as refused:
        build_plan(desired(web(active=False)), there)
    (finding,) = refused.value.diagnostics
    assert (finding.code, finding.ref) == ("PLAN-NOT-DEACTIVATABLE", WEB)
    assert ("upgrade it" in finding.remedy) is keeps_history
    assert build_plan(desired(web(active=True)), there).blocks == ()
