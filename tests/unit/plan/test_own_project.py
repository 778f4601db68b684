"""The project of a service's own console: never deleted, and not news."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.plan.model import Scope
from reconciler.plan.own_project import unidentified
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import Kind
from tests.builders import (
    HOUSE,
    OWNERS,
    SHOP,
    WEB,
    a_ref,
    an_application,
    declared,
    desired,
    held,
    observed,
)

ALL = Scope(prune=True, prune_unmanaged=True)
CONSOLE = replace(held(WEB, an_application()), project_id="own")
OWN = replace(observed(held(SHOP, object_id="own"), CONSOLE, *HOUSE[:1]), own_project="own")


@pytest.mark.parametrize("scope", [Scope(), ALL])
def test_it_is_neither_deleted_nor_unmanaged(scope: Scope) -> None:
    """Whatever flag deletes."""
    plan = build_plan(desired(*OWNERS[:1]), OWN, scope)

    assert (plan.changes, plan.unmanaged, plan.blocks) == ((), (), ())


def test_what_a_manifest_declares_of_it_is_updated() -> None:
    """It was asked for by name."""
    plan = build_plan(desired(*OWNERS, declared(WEB, an_application(devMode=True))), OWN)

    assert len(plan.changes) == 1


def test_another_object_cannot_take_a_name_of_it() -> None:
    """It stays, and so does its name."""
    assert OWN.is_own(OWN.objects[WEB.key])
    assert not OWN.is_own(held(a_ref(Kind.ACTION, "greet")))
    assert not observed(CONSOLE).is_own(CONSOLE)


def test_while_it_is_not_known_no_application_is_deleted() -> None:
    """The warning says why, and other deletes go on."""
    action = held(a_ref(Kind.ACTION, "old"))
    some = replace(observed(*HOUSE, held(WEB), action), unidentified="It refused: no.")
    others = replace(some, objects=observed(*HOUSE, action).objects)

    (told,) = unidentified(some)
    assert told.code == "SERVICE-NOT-IDENTIFIED"
    assert list(unidentified(OWN)) == []
    codes = [
        {block.code for block in build_plan(desired(*OWNERS), state, ALL).blocks}
        for state in (some, others)
    ]
    assert ["GUARD-OWN-PROJECT" in found for found in codes] == [True, False]
