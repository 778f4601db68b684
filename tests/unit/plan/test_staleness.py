"""What moved since a plan was approved is named, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.plan.model import Scope
from reconciler.plan.planner import build_plan
from reconciler.plan.staleness import moved, other_options
from reconciler.resources.ref import Kind
from reconciler.resources.shard import Shard
from reconciler.state import ObservedObject, Resource
from tests.builders import (
    GREET,
    HOUSE,
    OWNERS,
    a_plan,
    a_ref,
    an_action,
    declared,
    desired,
    held,
    observed,
)

BY_ANA: dict[str, Any] = {"changed_by": "ana", "changed_at": "noon"}
OTHER = a_ref(Kind.ACTION, "other")
Side = tuple[Sequence[Resource], Sequence[ObservedObject]]

SLOW, FAST = an_action(timeout="20s"), an_action(timeout="1s")
WANTED = declared(GREET, FAST)
HELD = held(GREET, SLOW, object_id="7", sequence=41)
LATER = held(GREET, SLOW, object_id="7", sequence=43, **BY_ANA)


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        pytest.param(([WANTED], [HELD]), ([WANTED], [HELD]), [], id="nothing"),
        pytest.param(
            ([WANTED], [HELD]),
            ([declared(GREET, an_action(timeout="2s"))], [HELD]),
            ["Action acme/greet: declared differently"],
            id="declared differently",
        ),
        pytest.param(
            ([WANTED], [HELD]),
            ([WANTED], [LATER]),
            ["Action acme/greet: changed on the service since, by ana at noon (sequence 41 -> 43)"],
            id="changed on the service",
        ),
        pytest.param(
            ([WANTED], [HELD]),
            ([WANTED], [held(GREET, FAST, object_id="7", sequence=43, **BY_ANA)]),
            ["Action acme/greet: in step since, changed on the service by ana (sequence 41 -> 43)"],
            id="somebody made it so",
        ),
        pytest.param(
            ([WANTED], [HELD]),
            ([WANTED], []),
            [
                (
                    "Action acme/greet: gone from the service (it was id 7); "
                    "it was to update, and is now to create"
                )
            ],
            id="gone",
        ),
        pytest.param(
            ([WANTED], [HELD]),
            ([WANTED], [held(GREET, SLOW, object_id="99")]),
            ["Action acme/greet: another object has the name: id 7 then, 99 now"],
            id="made anew by somebody",
        ),
        pytest.param(
            ([WANTED], []),
            ([WANTED], [LATER]),
            [
                (
                    "Action acme/greet: the service holds it since, made by ana at noon; "
                    "it was to create, and is now to update"
                )
            ],
            id="made by somebody",
        ),
        pytest.param(
            ([WANTED], [HELD]),
            ([], [HELD]),
            ["Action acme/greet: no longer declared"],
            id="no longer declared",
        ),
        pytest.param(
            ([WANTED], [HELD]),
            ([declared(GREET, SLOW)], [HELD]),
            ["Action acme/greet: declared as the service holds it"],
            id="declared as it is",
        ),
        pytest.param(
            ([], []),
            ([declared(OTHER)], []),
            ["Action acme/other: new in the plan, to create: declared since"],
            id="declared since",
        ),
        pytest.param(
            ([declared(GREET, SLOW)], [HELD]),
            ([declared(GREET, SLOW)], [held(GREET, FAST, object_id="7", sequence=43, **BY_ANA)]),
            [
                (
                    "Action acme/greet: new in the plan, to update: changed on the service since, "
                    "by ana at noon (sequence 43)"
                )
            ],
            id="was in step, and changed on the service",
        ),
        pytest.param(
            ([declared(GREET, SLOW)], [HELD]),
            ([declared(GREET, SLOW)], []),
            ["Action acme/greet: new in the plan, to create: gone from the service"],
            id="was in step, and is gone",
        ),
        pytest.param(
            ([declared(GREET, SLOW)], [HELD]),
            ([WANTED], [HELD]),
            ["Action acme/greet: new in the plan, to update: declared differently"],
            id="was in step, and declared differently",
        ),
        pytest.param(
            ([declared(GREET, SLOW)], [HELD]),
            ([], [HELD]),
            ["Action acme/greet: was in step, and is no longer declared"],
            id="was in step, and is no longer declared",
        ),
        pytest.param(
            ([], [HELD]),
            ([declared(GREET, SLOW)], [HELD]),
            ["Action acme/greet: declared since, and in step"],
            id="declared since, as the service holds it",
        ),
        pytest.param(
            ([WANTED], []),
            ([WANTED], [held(GREET, FAST, object_id="7", sequence=43)]),
            [
                (
                    "Action acme/greet: in step since, changed on the service by an unknown writer "
                    "(sequence none -> 43)"
                )
            ],
            id="somebody made it, and nobody tells who",
        ),
        pytest.param(
            ([WANTED], [HELD]),
            ([WANTED], [replace(LATER, changed_by="")]),
            ["Action acme/greet: changed on the service since, by somebody (sequence 41 -> 43)"],
            id="changed, and nobody tells who",
        ),
    ],
)
def test_what_moved_is_named_with_how(before: Side, after: Side, how: list[str]) -> None:
    """Whoever approved the plan can see what to look at again."""
    first, second = (
        build_plan(desired(*OWNERS, *resources), observed(*HOUSE, *objects))
        for resources, objects in (before, after)
    )

    found = moved(first, second, desired(*OWNERS, *after[0]), observed(*HOUSE, *after[1]))

    assert [str(each) for each in found] == how


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        pytest.param(
            ([], [HELD]), ([], []), ["Action acme/greet: gone from the service"], id="gone already"
        ),
        pytest.param(
            ([], [HELD]),
            ([declared(GREET, SLOW)], [HELD]),
            ["Action acme/greet: declared, or kept for another reason"],
            id="declared again",
        ),
        pytest.param(
            ([declared(GREET, SLOW)], [HELD]),
            ([], [HELD]),
            ["Action acme/greet: new in the plan, to delete: no longer declared"],
            id="was in step, and is to go",
        ),
        pytest.param(
            ([], []),
            ([], [HELD]),
            ["Action acme/greet: new in the plan, to delete: made since"],
            id="made by somebody",
        ),
    ],
)
def test_what_is_to_be_deleted_moves_as_well(before: Side, after: Side, how: list[str]) -> None:
    """Above all, nothing is deleted that nobody looked at."""
    scope = Scope(prune_unmanaged=True)
    first, second = (
        build_plan(desired(*OWNERS, *resources), observed(*HOUSE, *objects), scope)
        for resources, objects in (before, after)
    )

    found = moved(first, second, desired(*OWNERS, *after[0]), observed(*HOUSE, *after[1]))

    assert [str(each) for each in found] == how
    assert {each.ref for each in found} == {GREET}


def test_what_moved_is_told_once_for_each_object() -> None:
    """Of one that went out of the plan and of one that came into it, and of nothing else."""
    other = declared(OTHER, SLOW)
    found = moved(
        build_plan(desired(*OWNERS, WANTED), observed(*HOUSE, HELD)),
        build_plan(desired(*OWNERS, other), observed(*HOUSE)),
        desired(*OWNERS, other),
        observed(*HOUSE),
    )

    assert [(each.ref, each.how) for each in found] == [
        (GREET, "no longer declared"),
        (OTHER, "new in the plan, to create: declared since"),
    ]


def test_options_that_differ_are_named_as_flags() -> None:
    """The reader can type what was meant."""
    approved = a_plan(scope=Scope(tree="shop", prune=True))

    unmanaged = a_plan(scope=Scope(prune_unmanaged=True))
    assert other_options(unmanaged, a_plan()) == ("with --prune-unmanaged",)
    assert other_options(approved, a_plan()) == ("with --tree shop", "with --prune")
    assert other_options(a_plan(), approved) == ("with --tree default", "without --prune")
    assert other_options(approved, approved) == ()


def test_a_plan_of_another_shard_was_made_with_another_option() -> None:
    """So was a plan of the whole."""
    shard, other = (a_plan(scope=Scope(shard=Shard(index, 2))) for index in (1, 2))

    assert other_options(shard, other) == ("with --shard 1/2",)
    assert other_options(shard, a_plan()) == ("with --shard 1/2",)
    assert other_options(a_plan(), shard) == ("without --shard",)
