"""Organizations: who may make one."""

from __future__ import annotations

from reconciler.service.operations.callers import Caller, Role
from tests.unit.service.asking import Asking


def test_an_organization_is_made_only_by_a_caller_who_would_see_it(ask: Asking) -> None:
    bound = Caller("ci", Role.ADMIN, frozenset({ask.organization}))

    assert ask.refused("AddOrg", by=bound, name="globex").code == 7
