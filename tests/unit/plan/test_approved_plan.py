"""What moved since a plan was approved, and how much of an approved plan is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.plan.approved_plan import (
    PartlyApplied,
    Traces,
    moved,
    other_options,
    owners_of_gone,
    partly_applied,
    perhaps_renewed,
    traces_of,
    written_for,
)
from reconciler.plan.model import Adopt, Change, Create, Delete, Scope, Update, ref_of
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import Kind, Shard
from reconciler.state import ObjectEvent, ObservedObject, Removal, Resource
from tests.builders import (
    GREET,
    HOUSE,
    OWNERS,
    TOKEN,
    WEB,
    a_plan,
    a_ref,
    an_action,
    an_application,
    declared,
    desired,
    held,
    observed,
    plan_of,
)
from tests.rows import each_row

BY_ANA: dict[str, Any] = {"changed_by": "ana", "changed_at": "noon"}
CHANGED = "changed on the service since"
OTHER = a_ref(Kind.ACTION, "other")
Side = tuple[Sequence[Resource], Sequence[ObservedObject]]

SLOW, FAST = an_action(timeout="20s"), an_action(timeout="1s")
WANTED = declared(GREET, FAST)
HELD = held(GREET, SLOW, object_id="7", sequence=41)
LATER = held(GREET, SLOW, object_id="7", sequence=43, **BY_ANA)


@each_row(
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
            [
                f"Action acme/greet: {CHANGED}, by an unknown writer (sequence 41 -> 43)",
            ],
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
    assert other_options(a_plan(scope=Scope(environment="prod")), a_plan()) == ("with --env prod",)
    taken = a_plan(scope=Scope(other_tree=("a", "b"), rotate_missing=(WEB, OTHER)))
    assert set(other_options(taken, a_plan())) == {
        "with --other-tree a --other-tree b",
        f"with --rotate-missing {WEB.address} --rotate-missing {OTHER.address}",
    }


def test_a_plan_of_another_shard_was_made_with_another_option() -> None:
    """So was a plan of the whole."""
    shard, other = (a_plan(scope=Scope(shard=Shard(index, 2))) for index in (1, 2))

    assert other_options(shard, other) == ("with --shard 1/2",)
    assert other_options(shard, a_plan()) == ("with --shard 1/2",)
    assert other_options(a_plan(), shard) == ("without --shard",)


FIRST, SECOND = "PRE_USERINFO_CREATION", "PRE_ACCESS_TOKEN_CREATION"
DIGEST = "sha256:" + "d" * 64
OURS: dict[str, Any] = {"changed_by": "ci", "changed_in": "default", "changed_for": DIGEST}
THEIRS: dict[str, Any] = {"changed_by": "ana", "sequence": 9}
AT_NINE = {"sequence": 9, **OURS}
OLD = a_ref(Kind.ACTION, "old")
DECLARED_FAST = declared(GREET, an_action(timeout="5s"))
HELD_SLOW = held(GREET, changed_by="ci")
DONE = held(GREET, an_action(timeout="5s"), **AT_NINE)
NO_DELETE: Traces = Traces()


def state(
    approved: Sequence[Change], objects: Sequence[ObservedObject], traces: Traces = NO_DELETE
) -> tuple[PartlyApplied, bool]:
    """Return what is done of a plan, and whether what is left is as it was approved."""
    resources = [change.resource for change in approved if not isinstance(change, Delete)]
    now = plan_of(resources, objects)
    seen = observed(*HOUSE, *objects)
    found = partly_applied(a_plan(*approved), DIGEST, now, seen, traces)
    wanted = desired(*OWNERS, *resources)
    return found, not moved(found.expected, found.left, wanted, seen)


@each_row(
    ("change", "now", "done", "as_approved"),
    [
        pytest.param(Update(DECLARED_FAST, HELD_SLOW), DONE, 1, True, id="updated by this plan"),
        pytest.param(Update(DECLARED_FAST, HELD_SLOW), HELD_SLOW, 0, True, id="not tried"),
        pytest.param(
            Update(DECLARED_FAST, HELD_SLOW),
            held(GREET, an_action(timeout="5s"), **THEIRS),
            0,
            False,
            id="as planned, by another hand",
        ),
        pytest.param(
            Update(DECLARED_FAST, HELD_SLOW),
            held(GREET, an_action(timeout="1s"), **THEIRS),
            0,
            False,
            id="something else, by another hand",
        ),
        pytest.param(
            Update(DECLARED_FAST, HELD_SLOW), held(GREET, **AT_NINE), 0, True, id="half done"
        ),
        pytest.param(
            Adopt(DECLARED_FAST, held(GREET, trees=(), changed_by="ana")),
            DONE,
            1,
            True,
            id="adopted",
        ),
        pytest.param(
            Adopt(DECLARED_FAST, held(GREET, trees=(), changed_by="ana")),
            held(GREET, **AT_NINE),
            0,
            True,
            id="half adopted, now an update",
        ),
        pytest.param(
            Update(replace(DECLARED_FAST, ignored=frozenset({"allowedToFail"})), held(GREET)),
            held(
                GREET,
                an_action(timeout="5s", allowedToFail=True),
                ignored=frozenset({"allowedToFail"}),
                owner="default",
                **THEIRS,
            ),
            1,
            True,
            id="updated by this plan, and an ignored field by another hand since",
        ),
        pytest.param(Create(DECLARED_FAST), DONE, 1, True, id="created by this plan"),
        pytest.param(
            Create(DECLARED_FAST),
            held(GREET, an_action(timeout="5s"), **THEIRS),
            0,
            False,
            id="created by another hand",
        ),
    ],
)
def test_a_change_is_done_where_the_last_event_is_of_this_plan(
    change: Change, now: ObservedObject, done: int, *, as_approved: bool
) -> None:
    """An equal object that somebody else wrote last is not what this plan did."""
    found, is_same = state([change], [now])

    assert (found.done, is_same) == (done, as_approved)


def test_a_create_that_never_happened_is_left() -> None:
    """A kill before the request left nothing behind."""
    found, is_same = state([Create(DECLARED_FAST), Create(declared(WEB))], [held(WEB, **AT_NINE)])

    assert (found.done, found.was_begun, is_same) == (1, True, True)
    assert [ref_of(change) for change in found.left.changes] == [GREET]


@pytest.mark.parametrize(
    ("removed", "done"),
    [
        pytest.param(frozenset({held(OLD).id}), 1, id="removed by this plan"),
        pytest.param(frozenset(), 0, id="removed by another hand"),
        pytest.param(None, 1, id="the service does not tell"),
    ],
)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Delete(held(OLD)), id="a delete"),
        pytest.param(
            Update(declared(TOKEN, {}), held(TOKEN, object_id=held(OLD).id)), id="an emptied flow"
        ),
    ],
)
def test_a_delete_is_done_where_this_plan_removed_it(
    change: Change, removed: frozenset[str] | None, done: int
) -> None:
    """An object that somebody else removed was not there to be removed."""
    found, is_same = state([change], [], Traces(removed))

    assert found.done == done
    assert is_same is bool(done)


def test_without_writers_a_change_is_done_where_it_is_as_planned() -> None:
    """A service that keeps no events has no other trace."""
    found, is_same = state(
        [Update(DECLARED_FAST, held(GREET))], [held(GREET, an_action(timeout="5s"))]
    )

    assert (found.done, is_same) == (1, True)


@pytest.mark.parametrize(("renewed", "done"), [(frozenset({held(WEB).id}), 1), (frozenset(), 0)])
def test_a_secret_is_replaced_once(renewed: frozenset[str], done: int) -> None:
    """The same command asks for it again, and the history tells that it was made."""
    update = Update(declared(WEB), held(WEB, changed_by="ci"), new_secret=True)
    found_now = held(WEB, **AT_NINE)
    now = a_plan(Update(declared(WEB), found_now, new_secret=True))
    seen = observed(*HOUSE, found_now)

    found = partly_applied(a_plan(update), DIGEST, now, seen, Traces(renewed=renewed))

    assert found.done == done
    assert len(found.left.changes) == 1 - done
    assert not moved(found.expected, found.left, desired(*OWNERS, declared(WEB)), seen)


def test_without_writers_a_change_of_which_only_kept_lists_are_left_was_carried_out() -> None:
    """It goes on as what the lists leave; a change that never was more than that has moved."""
    emptied = an_application(redirectUris=[])
    kept = frozenset({"redirectUris"})
    wanted = declared(WEB, {**emptied, "devMode": True})
    before = held(WEB, an_application(), object_id="7", sequence=41)
    after = held(WEB, an_application(devMode=True), object_id="7", sequence=43)
    old, new = Adopt(wanted, before, kept=kept), Adopt(wanted, after, kept=kept)
    now, seen = a_plan(new), observed(*HOUSE, after)

    found = partly_applied(a_plan(old), DIGEST, now, seen, Traces())
    alone = replace(new, held=replace(after, sequence=41))
    moved_on = partly_applied(a_plan(alone), DIGEST, now, seen, Traces())

    assert (found.done, found.was_begun, found.expected.changes) == (0, True, (new,))
    assert (moved_on.was_begun, moved_on.expected.changes) == (False, (alone,))


ENDED = Update(declared(TOKEN, {}), held(TOKEN, {FIRST: ["greet"], SECOND: ["other"]}))


@each_row(
    ("old", "left", "is_begun"),
    [
        pytest.param(ENDED, {FIRST: ["greet"], SECOND: ["other"]}, False, id="not begun"),
        pytest.param(ENDED, {SECOND: ["other"]}, True, id="one of two triggers is emptied"),
        pytest.param(ENDED, {SECOND: ["greet"]}, False, id="and another one changed"),
        pytest.param(
            replace(ENDED, resource=declared(TOKEN, {FIRST: ["other"]})),
            {SECOND: ["other"]},
            False,
            id="a flow that is not to be emptied",
        ),
    ],
)
def test_without_writers_a_flow_that_is_emptied_in_part_goes_on(
    old: Update, left: dict[str, Any], *, is_begun: bool
) -> None:
    """Each trigger is a call of its own, and a kill may come between two."""
    new = replace(old, held=held(TOKEN, left))

    found = partly_applied(a_plan(old), DIGEST, a_plan(new), observed(new.held), Traces())

    assert (found.done, found.was_begun) == (0, is_begun)
    assert found.expected.changes == (new if is_begun else old,)


def event(type_: str, plan: str) -> ObjectEvent:
    return ObjectEvent(type_, 1, "noon", "ci", {"plan": plan}, {})


def test_what_an_earlier_run_may_have_done_is_found_without_a_history() -> None:
    """The history is only asked for where something points to such a run."""
    renewed = Update(declared(WEB), held(WEB, **AT_NINE), new_secret=True)
    now = a_plan(
        Create(declared(OTHER)),
        renewed,
        replace(renewed, new_secret=False),
        replace(renewed, held=held(WEB, object_id="8")),
        Delete(DONE),
    )
    gone = [
        held(a_ref(Kind.ACTION, name), organization_id=organization)
        for name, organization in (("a", "1"), ("b", "2"), ("c", "1"))
    ]
    there = observed(*HOUSE, DONE, held(WEB))
    deletes = a_plan(Delete(DONE), *map(Delete, gone), Update(DECLARED_FAST, gone[0]))

    assert perhaps_renewed(now, DIGEST) == (held(WEB).id,)
    assert written_for(there, DIGEST) == 1
    assert owners_of_gone(deletes, there) == ("1", "2")
    assert owners_of_gone(a_plan(), there) == ()


def test_several_changes_may_go_on_and_their_count_does_not_matter() -> None:
    """Each was begun by an earlier run, and is carried out to its end."""
    refs = [WEB, a_ref(name="second")]
    old = [Update(declared(ref), held(ref, changed_by="ci"), new_secret=True) for ref in refs]
    new = [replace(each, held=held(each.held.ref, **AT_NINE)) for each in old]
    seen = observed(*HOUSE, *(each.held for each in new))

    for count in (1, 2):
        begun = partly_applied(a_plan(*old[:count]), DIGEST, a_plan(*new), seen, Traces())
        assert (begun.done, begun.was_begun) == (0, True)
        assert begun.expected.changes == tuple(new[:count])


WRITTEN = replace(HELD_SLOW, **AT_NINE)


@each_row(
    ("old", "now", "new"),
    [
        pytest.param(Create(DECLARED_FAST), [], Create(DECLARED_FAST), id="still to be created"),
        pytest.param(Delete(HELD_SLOW), [HELD_SLOW], Delete(HELD_SLOW), id="still to be deleted"),
        pytest.param(
            Delete(HELD_SLOW), [WRITTEN], Update(DECLARED_FAST, WRITTEN), id="declared again"
        ),
        pytest.param(
            Update(DECLARED_FAST, HELD_SLOW),
            [HELD_SLOW],
            Update(DECLARED_FAST, HELD_SLOW),
            id="still to be updated",
        ),
        pytest.param(
            Update(DECLARED_FAST, HELD_SLOW),
            [WRITTEN],
            Update(declared(GREET, an_action(timeout="9s")), WRITTEN),
            id="written by this plan, and declared differently since",
        ),
        pytest.param(
            Update(DECLARED_FAST, HELD_SLOW),
            [replace(WRITTEN, id="99")],
            Update(DECLARED_FAST, replace(WRITTEN, id="99")),
            id="another object of this name, written by this plan",
        ),
    ],
)
def test_a_change_that_no_run_began_is_left_as_it_was_approved(
    old: Change, now: Sequence[ObservedObject], new: Change
) -> None:
    """It is compared with the plan of now, so that what moved is noticed."""
    found = partly_applied(a_plan(old), DIGEST, a_plan(new), observed(*HOUSE, *now), Traces())

    assert (found.done, found.was_begun) == (0, False)
    assert (found.expected.changes, found.left.changes) == ((old,), (new,))


def test_traces_are_events_that_carry_the_digest() -> None:
    """Removals and secrets of other plans count for nothing."""
    removals = [
        Removal(OLD, "1", frozenset(), event("action.removed", DIGEST)),
        Removal(OLD, "2", frozenset(), event("action.removed", "sha256:x")),
    ]
    histories = {
        "3": [event("application.secret.changed", DIGEST)],
        "4": [event("application.secret.changed", "")],
        "5": [event("application.changed", DIGEST)],
    }

    assert traces_of(DIGEST, removals, histories) == Traces(frozenset({"1"}), frozenset({"3"}))
    assert traces_of(DIGEST, None, {}).removed is None
