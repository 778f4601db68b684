"""Two states of one service are compared by the ids of objects, with who changed what and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reconciler.plan.between import Moments, changed_between, with_field_causes
from reconciler.plan.causes import cause_in_plan, causes_in_words
from reconciler.plan.diff import FieldChange, field_changes
from reconciler.plan.model import Cause, CauseKind, Create, Delete, Plan, Update, ref_of, word
from reconciler.resources.ref import Kind
from reconciler.state import FeedEvent, ObjectEvent, ObservedObject
from tests.builders import GREET, HOUSE, WEB, a_ref, an_action, an_application, held, observed

SIGNS_IN = an_application(authMethodType="OIDC_AUTH_METHOD_TYPE_BASIC")
MOMENTS = Moments("then", "", {"acme": 10}, {"acme": 20})
SAID: dict[str, Any] = {
    "tree": "shop",
    "run": "r1",
    "revision": "c0ffee",
    "plan": "p",
    "reason": "why",
    "x": "y",
}
WHY = "run r1, revision c0ffee, plan p, reason why"


def logged(of: ObservedObject, verb: str, sequence: int = 15, **context: Any) -> FeedEvent:
    """Return an event of the feed about an object."""
    about = (of.ref.kind.value, of.id, of.project_id, of.ref.name)
    return FeedEvent(f"x.{verb}", sequence, "noon", "ana", context, *about)


def between(before: list[ObservedObject], after: list[ObservedObject], *events: FeedEvent) -> Plan:
    by_id: dict[str, list[FeedEvent]] = {}
    for event in events:
        by_id.setdefault(event.id, []).append(event)
    return changed_between(observed(*HOUSE, *before), observed(*HOUSE, *after), MOMENTS, by_id)


def test_what_was_made_removed_changed_and_left_is_told() -> None:
    made, gone = held(a_ref(Kind.ACTION, "new"), object_id="8"), held(WEB)
    then, now = held(GREET), held(GREET, an_action(timeout="5s"))

    plan = between(
        [gone, then], [made, now],
        logged(made, "added", **SAID), logged(made, "changed", 16), logged(gone, "changed", 12),
        logged(gone, "removed", 17),
    )  # fmt: skip

    told = [(word(change), ref_of(change).name) for change in plan.changes]
    assert sorted(told) == [("create", "new"), ("delete", "storefront"), ("update", "greet")]
    assert plan.in_step == tuple(sorted(each.ref for each in HOUSE))
    causes = {ref_of(change).name: cause_in_plan(plan, change) for change in plan.changes}
    assert causes["new"] == Cause(CauseKind.EVENT, "ana", "noon", 15, "shop", WHY)
    assert causes["storefront"] == Cause(CauseKind.EVENT, "ana", "noon", 17)


def test_a_rename_is_an_update_and_an_object_made_again_is_two_changes() -> None:
    """Ids decide, not names: a new object has another client id and no secret of the old one."""
    then = held(GREET, object_id="4")
    renamed = replace(then, ref=a_ref(Kind.ACTION, "hello"))
    again = held(GREET, object_id="9")

    (update,) = between([then], [renamed]).changes
    plan = between([then], [again], logged(then, "removed", 12), logged(again, "added", 13))
    swapped = between([then], [renamed, again], logged(again, "added", 13))

    assert field_changes(update) == (FieldChange("metadata.name", "greet", "hello"),)
    kinds = {type(change): cause_in_plan(plan, change).sequence for change in plan.changes}
    assert kinds == {Delete: 12, Create: 13}
    assert {type(change) for change in swapped.changes} == {Update, Create}
    assert cause_in_plan(between([then], [renamed]), update) == Cause(CauseKind.UNKNOWN)
    told = {type(change): [*causes_in_words(plan, change)] for change in plan.changes}
    assert told == {
        Delete: ["by ana at noon (sequence 12)"],
        Create: ["by ana at noon (sequence 13)"],
    }


def test_marks_states_owners_and_secrets_are_differences() -> None:
    then = held(WEB, SIGNS_IN, owner="shop", has_secret=True)
    now = replace(
        then, prevent_delete=True, critical=True, active=False, owner="other",
        ignored=frozenset({"devMode"}),
    )  # fmt: skip

    plan = between([replace(then, critical=False, ignored=frozenset())], [now])
    rotated = between([then], [then], logged(then, "secret.changed"))

    assert {each.name: (each.before, each.after) for each in field_changes(plan.changes[0])} == {
        "metadata.preventDelete": (False, True),
        "metadata.critical": (False, True),
        "metadata.ignore": ([], ["devMode"]),
        "metadata.active": (True, False),
        "owner": ("shop", "other"),
    }
    (secret,) = rotated.changes
    assert [each.name for each in field_changes(secret)] == ["clientSecret"]
    assert between([then], [then]).changes == ()


def test_each_field_has_the_event_that_changed_it_last() -> None:
    """Also where it was changed several times; what happened before and after does not count."""
    then = held(GREET, an_action(timeout="1s"))
    now = held(GREET, an_action(timeout="4s", allowedToFail=True))

    def event(sequence: int, **context: Any) -> ObjectEvent:
        spec = {**then.spec, "timeout": f"{sequence % 10}s", "allowedToFail": sequence > 12}
        writer = f"by{30 - sequence}"  # the last of them comes first by name
        return ObjectEvent("x.changed", sequence, "noon", writer, context, {"spec": spec})

    events = [event(9), event(11), event(13, **SAID), event(14), event(25)]

    plan = with_field_causes(between([then], [now]), {then.id: events}, MOMENTS)

    (change,) = plan.changes
    assert [*causes_in_words(plan, change)] == [
        "timeout: by by16 at noon (sequence 14)",
        f"allowedToFail: by by17 for tree shop at noon (sequence 13), {WHY}",
    ]
    assert cause_in_plan(plan, change).sequence == 14


def test_a_comparison_is_never_a_plan_to_apply() -> None:
    plan = between([held(GREET)], [])

    assert (plan.compared_with, plan.scope.environment, plan.is_of_moments) == ("then", "", True)
    assert plan.blocks == plan.warnings == ()
