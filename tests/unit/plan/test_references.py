"""Flows and the actions that they name, after the plan is carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import error, warning
from reconciler.errors import InvalidManifestsError
from reconciler.plan.diff import field_changes
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Adopt, Change, Create, Delete, Scope, Update, ref_of
from reconciler.plan.planner import build_plan
from reconciler.plan.references import needs_referring
from reconciler.resources.nearest import MOST_HINTS
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import ObservedObject, Resource
from tests.builders import (
    GREET,
    HOUSE,
    TOKEN,
    FakeSource,
    a_ref,
    an_action,
    declared,
    desired,
    held,
    observed,
    plan_of,
)
from tests.rows import each_row

LOG = a_ref(Kind.ACTION, "log")
FIRST = a_ref(Kind.ACTION_FLOW, "EXTERNAL_AUTHENTICATION")
PRUNES = Scope(prune=True)
USERINFO, ACCESS_TOKEN = "PRE_USERINFO_CREATION", "PRE_ACCESS_TOKEN_CREATION"


def flow(*names: str, trigger: str = USERINFO, **more: Any) -> Resource:
    return declared(TOKEN, {trigger: [*names]}, **more)


def a_held_flow(*names: str, trigger: str = USERINFO, **more: Any) -> ObservedObject:
    return held(TOKEN, {trigger: [*names]}, **more)


def changes(
    resources: Sequence[Resource], objects: Sequence[ObservedObject], scope: Scope | None = None
) -> Sequence[Change]:
    return plan_of(resources, objects, scope).changes


def test_a_flow_is_made_after_its_actions_and_ended_before_them() -> None:
    """A trigger takes the ids of actions that are there."""
    made = changes([flow("log", "greet"), declared(LOG), declared(GREET)], [])
    ended = changes([], [held(LOG), held(GREET), a_held_flow("log", "greet")], PRUNES)

    assert [ref_of(change) for change in made] == [GREET, LOG, TOKEN]
    assert [ref_of(change) for change in ended] == [TOKEN, GREET, LOG]


def test_a_flow_is_changed_before_an_action_it_ran_is_deleted() -> None:
    objects = [held(LOG), held(GREET), a_held_flow("log", "greet")]

    found = changes([flow("greet"), declared(GREET)], objects, PRUNES)

    assert [(type(change), ref_of(change)) for change in found] == [(Update, TOKEN), (Delete, LOG)]


def test_what_is_left_out_is_reset() -> None:
    objects = [held(GREET), a_held_flow("greet", trigger=ACCESS_TOKEN)]

    (change,) = changes([flow("greet"), declared(GREET)], objects)

    found = [(each.name, each.before, each.after, each.reset) for each in field_changes(change)]
    assert found == [
        (USERINFO, [], ["greet"], False),
        (ACCESS_TOKEN, ["greet"], [], True),
    ]


def test_the_order_matters_and_the_case_of_names_does_not() -> None:
    objects = [held(GREET), held(LOG), a_held_flow("greet", "log")]
    actions = [declared(GREET), declared(LOG)]

    assert changes([flow("GREET", "Log"), *actions], objects) == ()
    assert build_plan(desired(flow("greet", "LOG")), observed(*HOUSE, *objects)).changes == ()
    assert len(changes([flow("log", "greet"), *actions], objects)) == 1


def test_a_flow_that_another_tool_made_is_adopted() -> None:
    objects = [held(GREET), held(LOG), a_held_flow("log", trees=())]

    (change,) = changes([flow("greet"), declared(GREET), declared(LOG)], objects)

    assert isinstance(change, Adopt)


def test_a_flow_that_runs_nothing_is_not_held() -> None:
    """It is emptied once, and in step from then on."""
    resources = [flow(), declared(GREET)]

    (emptied,) = changes(resources, [held(GREET), a_held_flow("greet")])
    after = plan_of(resources, [held(GREET)])

    assert (type(emptied), ref_of(emptied)) == (Update, TOKEN)
    assert (after.changes, TOKEN in after.in_step) == ((), True)


@pytest.mark.parametrize(
    ("was", "said", "is_stopped"),
    [(True, True, True), (True, False, True), (None, True, True), (False, False, False),
     (None, False, False)],
)  # fmt: skip
def test_a_protected_flow_is_not_emptied(*, was: bool | None, said: bool, is_stopped: bool) -> None:
    """A flow that runs nothing is held no more. To lift the protection is an apply of its own."""
    objects = [held(GREET), a_held_flow("greet", prevent_delete=was)]

    emptied = plan_of([flow(prevent_delete=said), declared(GREET)], objects).blocks
    lifted = plan_of([flow("greet", prevent_delete=said), declared(GREET)], objects).blocks
    partly = flow("greet", trigger=ACCESS_TOKEN, prevent_delete=said)

    assert plan_of([partly, declared(GREET)], objects).blocks == lifted == ()
    protected = error(
        "GUARD-PREVENT-DELETE",
        "a flow with preventDelete would be emptied",
        f"{TOKEN} is protected, and to empty it is to delete it. Declare an action; to empty the "
        "flow, first apply it with metadata.preventDelete: false.",
        ref=TOKEN,
    )
    assert emptied == (protected,) * is_stopped


def test_a_new_flow_without_actions_is_not_protected_from_that() -> None:
    """There is nothing to lose."""
    assert plan_of([flow(prevent_delete=True)], []).blocks == ()


def test_the_rename_of_an_action_is_no_change_of_its_flows() -> None:
    objects = [held(GREET, object_id="7"), a_held_flow("greet")]
    welcome = a_ref(Kind.ACTION, "welcome")

    (change,) = changes([flow("welcome"), declared(welcome, an_action(), pinned_id="7")], objects)

    assert ref_of(change) == welcome


def test_another_action_of_the_same_name_is_a_change() -> None:
    """By its name alone the flow would go on running the action that is deleted."""
    objects = [held(GREET, object_id="7"), held(LOG, object_id="8"), a_held_flow("greet")]

    found = changes([flow("greet"), declared(GREET, an_action(), pinned_id="8")], objects, PRUNES)

    assert {(type(change), ref_of(change)) for change in found} == {
        (Delete, GREET),
        (Update, GREET),
        (Update, TOKEN),
    }
    update = next(change for change in found if ref_of(change) == TOKEN)
    assert [each.before for each in field_changes(update)] == [["greet (id 7)"]]


def test_a_flow_waits_for_an_action_that_waits_for_its_name() -> None:
    """The name of the new action is free only after the rename of the old one."""
    objects = [held(GREET, object_id="7"), a_held_flow("greet")]
    welcome = declared(a_ref(Kind.ACTION, "welcome"), an_action(), pinned_id="7")

    found = changes([flow("greet"), declared(GREET), welcome], objects)

    assert [ref_of(change) for change in found] == [welcome.ref, GREET, TOKEN]
    assert [type(change) for change in found] == [Update, Create, Update]


def refused(
    resources: Sequence[Resource], objects: Sequence[ObservedObject], scope: Scope | None = None
) -> tuple[str, str, int]:
    with pytest.raises(InvalidManifestsError) as caught:
        changes(resources, objects, scope)
    (finding,) = caught.value.diagnostics
    assert finding.location is not None
    assert finding.ref == TOKEN
    return finding.code, f"{finding.summary}. {finding.remedy}", finding.location.line


def test_an_action_that_is_neither_declared_nor_held_is_told_at_its_place() -> None:
    source = FakeSource(lines={("spec", USERINFO, 1): 9})

    code, text, line = refused([flow("log", "gret", source=source), declared(LOG)], [held(GREET)])

    assert (code, line) == ("REF-NOT-HELD", 9)
    assert text == (
        "Action acme/gret is neither declared nor held. Did you mean greet? Otherwise add a "
        "manifest for Action acme/gret, or correct the name."
    )


def test_not_every_missing_action_is_compared_with_all_others() -> None:
    """A service can hold thousands; the first get a hint."""
    missing = [flow(*(f"greet{at}" for at in range(MOST_HINTS + 5)))]

    with pytest.raises(InvalidManifestsError) as caught:
        changes(missing, [held(GREET)])

    hints = Counter(each.remedy.partition(" a manifest")[0] for each in caught.value.diagnostics)
    assert hints == {"Did you mean greet? Otherwise add": MOST_HINTS, "Add": 5}


def test_an_action_that_is_held_needs_no_manifest() -> None:
    assert changes([flow("greet")], [held(GREET), a_held_flow("greet")]) == ()


def test_the_former_name_of_a_renamed_action_is_not_held() -> None:
    welcome = declared(a_ref(Kind.ACTION, "welcome"), an_action(), pinned_id="7")

    code, text, _ = refused([flow("greet"), welcome], [held(GREET, object_id="7")])

    assert code == "REF-NOT-HELD"
    assert text == (
        "Action acme/greet would be renamed to welcome. Write its new name here as well: welcome."
    )


def test_an_action_of_a_declared_flow_is_not_pruned() -> None:
    code, text, _ = refused([flow("greet")], [held(GREET), a_held_flow("greet")], PRUNES)

    assert code == "PLAN-ACTION-IN-USE"
    assert text == (
        "an action would be deleted that a flow runs. No manifest declares Action "
        "acme/greet, so this run would delete it. Declare the action, or take its name out of "
        "ActionFlow acme/COMPLEMENT_TOKEN."
    )


def test_a_flow_that_no_manifest_declares_loses_pruned_actions() -> None:
    """The service takes a deleted action out of every flow."""
    first = held(FIRST, {"PRE_CREATION": ["greet"]}, owner="other")
    objects = [held(GREET), held(LOG), first, a_held_flow("log", "greet", owner="other")]

    plan = plan_of([declared(LOG)], objects, PRUNES)

    assert [each for each in plan.warnings if each.code == "PLAN-ACTION-IN-USE"] == [
        warning(
            "PLAN-ACTION-IN-USE",
            "a flow loses actions that would be deleted",
            f"This run reads no manifest of {ref}, which tree other owns and which runs greet: the "
            "service takes deleted actions out of it. Declare the actions to keep them.",
            ref=ref,
        )
        for ref in (TOKEN, FIRST)
    ]


def test_a_flow_that_no_tree_owns_loses_pruned_actions() -> None:
    objects = [held(GREET), held(LOG), a_held_flow("log", "greet", trees=())]

    plan = plan_of([declared(LOG)], objects, PRUNES)

    (told,) = (each for each in plan.warnings if each.code == "PLAN-ACTION-IN-USE")
    assert told.remedy.startswith(f"This run reads no manifest of {TOKEN}, which runs greet: ")


def test_an_action_that_a_flow_of_another_tree_runs_is_not_deleted_unawares() -> None:
    """That tree declares the flow, and sign-ins of its users would change without a plan of it."""
    objects = [held(GREET), held(LOG), a_held_flow("log", "greet", owner="other")]
    allowed = Allowances(deletes=9, lockouts={LOG.folded: LOG.address})

    plan = plan_of([], objects, PRUNES, allowed)

    assert plan.blocks == (
        error(
            "GUARD-ACTION-IN-USE",
            "an action would be deleted that a flow of another tree runs",
            f"{TOKEN}, which tree other owns, runs {GREET}: the service takes deleted actions out "
            "of it. Declare the action, or let tree other take its name out of the flow first. If "
            f"that is meant, allow just that: --break-glass {GREET.address}=REASON.",
            ref=GREET,
        ),
    )


@each_row(
    ("flow", "resources", "scope"),
    [
        pytest.param(a_held_flow("greet", owner=""), [], PRUNES, id="of no tree"),
        pytest.param(a_held_flow("greet", owner=None), [], PRUNES, id="of a ZITADEL"),
        pytest.param(a_held_flow("greet", owner="default"), [], PRUNES, id="of this tree"),
        pytest.param(a_held_flow("log", owner="other"), [], PRUNES, id="that runs another action"),
        pytest.param(a_held_flow("greet", owner="other"), [], Scope(), id="and nothing is deleted"),
        pytest.param(
            a_held_flow("greet", owner="other"), [flow("log")], PRUNES, id="that is declared here"
        ),
    ],
)
def test_other_flows_guard_no_action(
    flow: ObservedObject, resources: Sequence[Resource], scope: Scope
) -> None:
    objects = [held(GREET), held(LOG, trees=("other",), owner="other"), flow]

    plan = plan_of(resources, objects, scope, Allowances(deletes=9))

    assert "GUARD-ACTION-IN-USE" not in [each.code for each in plan.blocks]


@each_row(
    ("ref", "scope", "expected"),
    [
        (TOKEN, Scope(), True),
        (GREET, Scope(), False),
        (GREET, Scope(prune=True), True),
        (GREET, Scope(prune_unmanaged=True), True),
    ],
)
def test_flows_are_asked_for_where_one_is_declared_or_something_deleted(
    ref: ResourceRef, scope: Scope, *, expected: bool
) -> None:
    """A service may have to be asked for each."""
    assert needs_referring(desired(declared(ref)), scope) is expected


OTHER_SCRIPT = declared(GREET, an_action(script="function greet() { return 2; }"))
OTHER_CRITICAL = replace(OTHER_SCRIPT, critical=True)
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
    plan = plan_of([], [held(GREET), HELD_CRITICAL], PRUNES, Allowances(deletes=9))

    removed = error(
        "GUARD-CRITICAL",
        "an action of a critical flow would be removed",
        f"{TOKEN} was declared with metadata.critical, and runs {GREET}; its risks here: "
        f"action-removed. If that is meant, allow just that: --break-glass {GREET.address}=REASON.",
        ref=GREET,
    )
    assert removed in plan.blocks


def test_breaking_the_glass_names_the_action() -> None:
    address = "action/acme/greet"

    found = summaries(
        [OTHER_SCRIPT, CRITICAL], [held(GREET), HELD_CRITICAL], lockouts={address: address}
    )

    assert found == []


@each_row(
    ("resources", "action", "told"),
    [
        ([OTHER_CRITICAL, CRITICAL], held(GREET, critical=True), "weakened"),
        ([OTHER_CRITICAL, CRITICAL], held(GREET), "weakened"),
        ([OTHER_SCRIPT, CRITICAL], held(GREET, critical=True), "weakened"),
        ([], held(GREET, critical=True), "removed"),
    ],
)
def test_an_action_that_is_critical_itself_is_told_once(
    resources: Sequence[Resource], action: ObservedObject, told: str
) -> None:
    removed = [] if resources else ["a critical object would be removed"]

    found = summaries(resources, [action, HELD_CRITICAL], PRUNES)

    assert found == [*removed, f"a critical object would be {told}"]


def test_a_new_action_of_a_critical_flow_is_no_risk() -> None:
    """Nothing of the flow is lost."""
    assert summaries([declared(GREET), CRITICAL], []) == []


def test_a_change_without_a_risk_passes() -> None:
    slower = declared(GREET, an_action(timeout="5s"))

    assert summaries([slower, CRITICAL], [held(GREET), HELD_CRITICAL]) == []
