"""Laws of the planner: whatever is declared and held, and in whatever order it was read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import InvalidManifestsError
from reconciler.plan.model import (
    Change,
    Create,
    Delete,
    Plan,
    Scope,
    Update,
)
from reconciler.plan.ordering import batches
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import Kind, ResourceRef, owner_of
from reconciler.state import ObservedObject, Resource
from tests.builders import (
    HOUSE,
    NONE,
    OWNERS,
    a_ref,
    an_action,
    an_application,
    declared,
    desired,
    held,
    observed,
    plan_of,
)
from tests.effort import cases

# Properties.

NAMES = ("a", "b", "c")


SPECS = {
    Kind.OIDC_APPLICATION: (
        an_application(),
        an_application(devMode=True, clockSkew="1s"),
        an_application(authMethodType=NONE),
    ),
    Kind.ACTION: (an_action(), an_action(timeout="1s"), an_action(script="let a;")),
}


KINDS = st.sampled_from(tuple(SPECS))


@st.composite
def states(draw: st.DrawFn) -> tuple[list[Resource], list[ObservedObject]]:
    """Draw what is declared and held: in step, otherwise, renamed, unmanaged."""
    objects: dict[ResourceRef, ObservedObject] = {}
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(KINDS)
        ref = a_ref(kind, draw(st.sampled_from([*NAMES, "A", "B"])))
        trees = draw(st.sampled_from([(), ("default",), ("other",), ("default", "other")]))
        objects[ref.key] = held(ref, draw(st.sampled_from(SPECS[kind])), trees=trees)
    resources: dict[ResourceRef, Resource] = {}
    pins: set[str] = set()
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(KINDS)
        ref = a_ref(kind, draw(st.sampled_from(NAMES)))
        candidates = [o.id for o in objects.values() if o.ref.kind is kind and o.id not in pins]
        pinned = draw(st.sampled_from(["", *candidates]))
        pins.add(pinned)
        resources[ref.key] = declared(
            ref,
            draw(st.sampled_from(SPECS[kind])),
            pinned_id=pinned,
            prevent_delete=draw(st.booleans()),
        )
    return list(resources.values()), list(objects.values())


SCOPES = st.sampled_from([Scope(), Scope(prune=True), Scope(prune_unmanaged=True)])


@settings(max_examples=cases(100), deadline=None)
@given(states=states(), scope=SCOPES, seed=st.integers())
def test_the_order_things_were_read_in_does_not_show(
    states: tuple[list[Resource], list[ObservedObject]], scope: Scope, seed: int
) -> None:
    """Two runs over the same files and the same service print the same plan."""
    resources, objects = states
    dice = random.Random(seed)

    def result(*, shuffled: bool) -> Plan | tuple[object, ...]:
        order = [*OWNERS, *resources], [*HOUSE, *objects]
        if shuffled:
            order = dice.sample(order[0], len(order[0])), dice.sample(order[1], len(order[1]))
        try:
            return build_plan(desired(*order[0]), observed(*order[1]), scope)
        except InvalidManifestsError as refused:
            return refused.diagnostics

    assert result(shuffled=True) == result(shuffled=False)


class Model:
    """What a service holds, with the rules that refuse a change: owners, names, sequences."""

    def __init__(self, objects: Sequence[ObservedObject]) -> None:
        self.objects = {found.id: found for found in objects}
        self._made = 0

    def apply(self, change: Change, tree: str) -> None:
        if isinstance(change, Delete):
            assert self.objects.pop(change.held.id) == change.held
            return
        resource = change.resource
        if isinstance(change, Create):
            self._made += 1
            owner = owner_of(resource.ref)
            assert owner is None or owner.key in self._names()
            found = replace(held(resource.ref), id=f"new-{self._made}", trees=frozenset())
        else:
            found = self.objects.pop(change.held.id)
            assert found == change.held
        assert resource.ref.key not in self._names()
        self.objects[found.id] = replace(
            found,
            ref=resource.ref,
            spec=resource.spec,
            sequence=found.sequence + 1,
            trees=found.trees | {tree},
            prevent_delete=resource.prevent_delete,
        )

    def _names(self) -> set[ResourceRef]:
        return {found.ref.key for found in self.objects.values()}


@settings(max_examples=cases(100), deadline=None)
@given(states=states(), scope=SCOPES, size=st.integers(1, 4), seed=st.integers())
def test_a_plan_that_is_carried_out_leaves_nothing_to_do(
    states: tuple[list[Resource], list[ObservedObject]], scope: Scope, size: int, seed: int
) -> None:
    """One run is enough, whatever was held before, and in whatever order a batch is made."""
    resources, objects = states
    wanted = desired(*OWNERS, *resources)
    try:
        plan = build_plan(wanted, observed(*HOUSE, *objects), scope)
    except InvalidManifestsError:
        return
    service = Model([*HOUSE, *objects])
    dice = random.Random(seed)

    for batch in batches(plan.changes, size):
        for change in dice.sample(batch, len(batch)):
            service.apply(change, scope.tree)

    again = build_plan(wanted, observed(*service.objects.values()), scope)
    assert again.changes == ()
    assert again.unmanaged == plan.unmanaged
    assert set(again.in_step) == {resource.ref for resource in wanted.resources.values()}


@pytest.mark.slow
def test_the_random_states_reach_every_kind_of_change() -> None:
    """A property that never meets a rename or a delete proves nothing about them."""
    met: set[str] = set()

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(states=states())
    def look(states: tuple[list[Resource], list[ObservedObject]]) -> None:
        try:
            plan = plan_of(*states, Scope(prune=True))
        except InvalidManifestsError as refused:
            met.update(finding.code for finding in refused.diagnostics)
            return
        met.update(type(change).__name__ for change in plan.changes)
        renamed = [c for c in plan.changes if isinstance(c, Update) and c.resource.pinned_id]
        met.update("rename" for c in renamed if c.held.ref.key != c.resource.ref.key)

    look()

    assert met == {
        "Create", "Update", "Adopt", "Delete", "rename", "PLAN-NAMES-SWAPPED", "PLAN-NAME-TAKEN",
    }  # fmt: skip
