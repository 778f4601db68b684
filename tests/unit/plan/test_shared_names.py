"""Names that several held objects have: what an id in a manifest tells apart, and what it does not.

What a service keeps apart by ids, a manifest refers to by name. Names that a service compares in
another way than this tool are one name here: ``straße`` and ``STRASSE``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.diagnostics import Diagnostic, SourceLocation, error
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import ObservedObject, Resource
from tests.builders import (
    ACME,
    GREET,
    HOUSE,
    OWNERS,
    SHOP,
    TOKEN,
    WEB,
    FakeSource,
    a_ref,
    declared,
    desired,
    held,
    observed,
)

RUNS = ("spec", "PRE_USERINFO_CREATION", 0)
SOURCE = FakeSource("token.yaml", {("metadata", "project"): 4, RUNS: 7})
FLOW = declared(TOKEN, {"PRE_USERINFO_CREATION": ["greet"]}, source=SOURCE)


def blocks(
    resources: Sequence[Resource], ref: ResourceRef, others: Sequence[ObservedObject] = HOUSE
) -> Sequence[Diagnostic]:
    """Return what stops a plan where the ids 1 and 2 have one name."""
    first, second = held(ref, object_id="1"), held(ref, object_id="2")
    state = replace(observed(*others, first), name_clashes=(second,))
    return build_plan(desired(*resources), state).blocks


@pytest.mark.parametrize("pinned", ["1", "2", None])
def test_a_flow_cannot_say_which_of_two_actions_it_runs(pinned: str | None) -> None:
    """It would get the id of the first one, which may be that of the other script."""
    action = [declared(GREET, pinned_id=pinned)] if pinned else []

    assert blocks([*OWNERS, *action, FLOW], GREET) == (
        error(
            "GUARD-SAME-NAME",
            "the service holds several objects of one name",
            f"{TOKEN} refers to {GREET}, which could be id 1 or id 2: metadata.id does not decide "
            "it there. Give all but one of them another name, then plan again.",
            SourceLocation("token.yaml", 7, 4),
            TOKEN,
        ),
    )


@pytest.mark.parametrize("pinned", ["1", "2", None])
def test_nothing_can_say_in_which_of_two_projects_it_is(pinned: str | None) -> None:
    """An application would be created in the first one."""
    web = declared(WEB, source=SOURCE)
    project = [declared(SHOP, pinned_id=pinned)] if pinned else []

    (block,) = blocks([declared(ACME), *project, web], SHOP, [held(ACME)])

    assert block.remedy.startswith(f"{WEB} refers to {SHOP}, which could be id 1 or id 2: ")
    assert (block.location, block.ref) == (SourceLocation("token.yaml", 4, 3), WEB)


def test_an_action_that_no_flow_names_is_told_apart_by_its_id() -> None:
    """A flow of another action is not concerned."""
    log = declared(a_ref(Kind.ACTION, "log"))
    flow = declared(TOKEN, {"PRE_USERINFO_CREATION": ["log"]})

    assert blocks([*OWNERS, declared(GREET, pinned_id="2"), log, flow], GREET) == ()


def test_one_name_is_one_error() -> None:
    """The id is asked for first; then the first of many mentions is enough."""
    (unsaid,) = blocks([*OWNERS, declared(GREET), FLOW], GREET)
    webs = [declared(a_ref(name=f"web{at}")) for at in range(3)]
    (mentioned,) = blocks([declared(ACME), *webs], SHOP, [held(ACME)])

    assert unsaid.ref == GREET
    assert mentioned.ref == webs[0].ref
