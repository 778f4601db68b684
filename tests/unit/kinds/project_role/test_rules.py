"""What a plan says of roles: one is not deleted by accident, and a ZITADEL folds their keys."""

from __future__ import annotations

import pytest

from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope
from reconciler.plan.risk import is_severe, risks_of
from reconciler.resources.ref import Kind
from tests.builders import MANAGER, a_ref, declared, held, plan_of
from tests.unit.kinds.project_role.keys import PLAIN_KEYS, REWRITTEN_KEYS

ADMIN, SHOUTED = a_ref(Kind.PROJECT_ROLE, "admin"), a_ref(Kind.PROJECT_ROLE, "ADMIN")
PRUNE = Scope(prune=True)


def pruned(*named: str) -> Plan:
    allowed = Allowances(deletes=9, lockouts={name: name for name in named})
    return plan_of([declared(ADMIN)], [held(ADMIN), held(MANAGER)], PRUNE, allowed)


def test_a_role_is_deleted_only_by_its_name() -> None:
    """Users lose it, whether or not its manifest called it critical."""
    plan = pruned()

    assert [block.code for block in plan.blocks] == ["GUARD-ROLE-REMOVED"]
    assert "--break-glass ProjectRole/acme/shop/orders.manage=REASON" in plan.blocks[0].remedy
    ((risk,),) = map(risks_of, plan.changes)
    assert (risk.name, is_severe(risk.name)) == ("role-removed", True)
    assert pruned(MANAGER.folded).blocks == ()


def test_the_name_that_lets_one_pass_knows_its_case() -> None:
    allowed = Allowances(deletes=9, lockouts={SHOUTED.folded: SHOUTED.address})

    plan = plan_of([], [held(ADMIN), held(SHOUTED)], PRUNE, allowed)

    (block,) = [each for each in plan.blocks if each.code == "GUARD-ROLE-REMOVED"]
    assert block.ref == ADMIN


def test_keys_that_differ_in_case_are_two_roles() -> None:
    plan = plan_of([declared(ADMIN), declared(SHOUTED)], [held(ADMIN)])

    assert [change.resource.ref for change in plan.changes if hasattr(change, "resource")] == [
        SHOUTED
    ]
    assert ADMIN.key != SHOUTED.key
    assert a_ref(Kind.PROJECT_ROLE, "admin", "ACME", "Shop").key == ADMIN.key


@pytest.mark.parametrize("key", REWRITTEN_KEYS)
def test_a_role_whose_address_a_proxy_could_rewrite_is_not_written(key: str) -> None:
    """Such a request could remove the project; no flag allows it. What sends nothing is left be."""
    ref = a_ref(Kind.PROJECT_ROLE, key)
    allowed = Allowances(deletes=9, lockouts={ref.folded: ref.address})
    made = plan_of([declared(ref)], [])
    changed = plan_of([declared(ref, {"displayName": "Other", "group": ""})], [held(ref)])
    removed = plan_of([], [held(ref)], PRUNE, allowed)
    in_step = plan_of([declared(ref)], [held(ref)])

    for plan in (made, changed, removed):
        assert [(block.code, block.ref) for block in plan.blocks] == [("GUARD-ROLE-KEY", ref)]
        assert "--break-glass" not in plan.blocks[0].remedy
    for plan in (made, changed):
        assert plan.blocks[0].location is not None
    assert in_step.blocks == ()


@pytest.mark.parametrize("key", PLAIN_KEYS)
def test_a_role_of_any_other_key_is_written(key: str) -> None:
    assert plan_of([declared(a_ref(Kind.PROJECT_ROLE, key))], []).blocks == ()
