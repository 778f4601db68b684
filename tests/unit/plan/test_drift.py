"""Drift is what was changed on the service; what was declared differently is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.plan.diff import FieldChange
from reconciler.plan.drift import (
    Drift,
    DriftedObject,
    find_drift,
    owners_to_ask,
    selected,
    suspects,
)
from reconciler.plan.model import Cause, CauseKind, IgnoredField, Scope
from reconciler.plan.planner import build_plan
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind, ResourceRef, parse_pattern
from reconciler.state import ObjectEvent, ObservedObject, Removal, Resource
from tests.builders import (
    ACME,
    GREET,
    HOUSE,
    OWNERS,
    PARTNER,
    SHOP,
    WEB,
    a_plan,
    a_ref,
    an_action,
    an_application,
    an_owed_secret,
    declared,
    desired,
    held,
    observed,
)

BY_ANA: dict[str, Any] = {"changed_by": "ana", "changed_at": "noon", "sequence": 43}
APPLIED: dict[str, Any] = {"changed_by": "ci", "changed_in": "default", "changed_for": "sha256:x"}
ANA = Cause(CauseKind.SERVICE, "ana", "noon", 43)


def event(type_: str, tree: str = "", **payload: Any) -> ObjectEvent:
    return ObjectEvent(type_, 43, "noon", "ana", {"tree": tree} if tree else {}, payload)


def applied(**said: Any) -> ObjectEvent:
    spec = normal_form(Kind.ACTION, an_action(**said))
    return event("action.added", "default", name="greet", spec=spec)


def drift_of(
    resources: Sequence[Resource],
    objects: Sequence[ObservedObject],
    histories: dict[str, Sequence[ObjectEvent]] | None = None,
    removals: Sequence[Removal] = (),
) -> Drift:
    state = observed(*HOUSE, *objects)
    plan = build_plan(desired(*OWNERS, *resources), state)
    return find_drift(plan, state, histories or {}, removals)


def test_a_field_changed_on_the_service_is_drift_with_its_author() -> None:
    """Both sides, and whom to ask."""
    found = held(GREET, an_action(timeout="1s"), **BY_ANA)

    drift = drift_of([declared(GREET)], [found], {found.id: [applied()]})

    fields = (FieldChange("timeout", "20s", "1s"),)
    assert drift == Drift((DriftedObject(GREET, found.id, ANA, fields),))


def test_what_was_declared_differently_is_no_drift() -> None:
    """A pull request in flight does not raise an alarm."""
    drift = drift_of(
        [declared(GREET, an_action(timeout="5s"))], [held(GREET, an_action(), **APPLIED)]
    )

    assert drift.objects == ()


@pytest.mark.parametrize(
    ("wanted", "fields", "said"),
    [
        pytest.param(
            declared(GREET, an_action(allowedToFail=True)),
            (FieldChange("timeout", "20s", "1s"),),
            {},
            id="each in another field",
        ),
        pytest.param(
            declared(GREET, an_action(timeout="5s")),
            (FieldChange("timeout", "20s", "1s"),),
            {"timeout": "5s"},
            id="both in the same field",
        ),
        pytest.param(
            replace(declared(GREET, an_action(timeout="1s")), ignored=frozenset({"script"})),
            (FieldChange("metadata.ignore", [], ["allowedToFail"]),),
            {"metadata.ignore": ["script"]},
            id="both in a field that no event named when it was applied",
        ),
    ],
)
def test_of_an_object_changed_on_both_sides_only_the_service_s_fields_are_drift(
    wanted: Resource, fields: tuple[FieldChange, ...], said: dict[str, Any]
) -> None:
    """Three things are compared: declared, applied last, held now."""
    ignored = frozenset({"allowedToFail"}) if wanted.ignored else frozenset[str]()
    found = held(GREET, an_action(timeout="1s"), ignored=ignored, **BY_ANA)

    drift = drift_of([wanted], [found], {found.id: [applied()]})

    assert drift.objects == (DriftedObject(GREET, found.id, ANA, fields, said),)


def test_a_change_that_was_taken_back_on_the_service_is_no_drift() -> None:
    """The service holds what was applied; the difference was declared since."""
    found = held(GREET, an_action(), **BY_ANA)
    wanted = declared(GREET, an_action(timeout="5s"))

    assert drift_of([wanted], [found], {found.id: [applied()]}).objects == ()


def test_without_a_history_every_difference_counts() -> None:
    """Better one line too many than a change that nobody sees."""
    drift = drift_of([declared(GREET)], [held(GREET, an_action(timeout="1s"), **BY_ANA)])

    assert [field.name for field in drift.objects[0].fields] == ["timeout"]


def removal(ref: ResourceRef, *, trees: Sequence[str], tree: str = "") -> Removal:
    return Removal(ref, "9", frozenset(trees), event("action.removed", tree))


def test_what_somebody_removed_is_drift() -> None:
    """An application that is gone is the worst of drifts."""
    drift = drift_of([declared(GREET)], [], removals=[removal(GREET, trees=["default"])])

    assert drift.objects == (DriftedObject(GREET, "9", ANA, removed=True),)


def test_another_tree_that_removed_it_is_named() -> None:
    """That is whom to ask then."""
    gone = removal(GREET, trees=["default", "other"], tree="other")

    (drifted,) = drift_of([declared(GREET)], [], removals=[gone]).objects

    assert drifted.cause == ANA._replace(tree="other")


def test_what_this_tree_removed_or_never_applied_is_not() -> None:
    """A delete that was planned, and somebody else's object, are no news."""
    gone = [removal(GREET, trees=["other"]), removal(GREET, trees=["default"], tree="default")]

    assert drift_of([declared(GREET)], [], removals=gone).objects == ()


def test_what_was_renamed_on_the_service_is_one_drift_and_not_unmanaged() -> None:
    """It is still the object that was applied, by its history."""
    renamed = held(a_ref(Kind.ACTION, "hello"), object_id="7", **BY_ANA)

    drift = drift_of([declared(GREET)], [renamed], {"7": [applied()]})

    fields = (FieldChange("metadata.name", "greet", "hello"),)
    assert drift == Drift((DriftedObject(GREET, "7", ANA, fields),))


def test_a_new_name_hides_no_other_change() -> None:
    """The script of a renamed action is compared with the one that was applied, as any."""
    script = "function hello(ctx, api) {}"
    hello = a_ref(Kind.ACTION, "hello")
    renamed = held(hello, an_action(script=script), object_id="7", **BY_ANA)

    (found,) = drift_of([declared(GREET)], [renamed], {"7": [applied()]}).objects

    assert [(each.name, each.after) for each in found.fields] == [
        ("metadata.name", "hello"),
        ("script", script),
    ]


@pytest.mark.parametrize(
    ("more", "history"),
    [
        pytest.param(BY_ANA, (), id="nothing is known of it"),
        pytest.param(BY_ANA, ("other",), id="this tree wrote none of its events"),
        pytest.param({**BY_ANA, "trees": ()}, ("default",), id="this tree never applied it"),
        pytest.param(APPLIED, ("default",), id="this tree wrote it last"),
    ],
)
def test_what_was_not_renamed_is_unmanaged(more: dict[str, Any], history: Sequence[str]) -> None:
    """It is declared nowhere, and no drift of what is."""
    found = held(a_ref(Kind.ACTION, "hello"), object_id="7", **more)
    events = [event("action.added", tree, name="greet") for tree in history]

    drift = drift_of([declared(GREET)], [found], {"7": events} if events else {})

    assert drift == Drift((), unmanaged=(found.ref,))


@pytest.mark.parametrize(
    ("marks", "was", "is_drift"),
    [
        ({"prevent_delete": True}, None, True),
        ({"prevent_delete": True}, True, False),
        ({"critical": True}, None, True),
    ],
)
def test_a_mark_that_was_never_set_was_not_set(
    marks: dict[str, Any], was: object, *, is_drift: bool
) -> None:
    """Who protected an object on the service changed it, and who declares it no longer did not."""
    found = held(GREET, **marks, **BY_ANA)
    context = {"tree": "default", **({} if was is None else {"preventDelete": was})}
    history = [replace(applied(), context=context)]

    drift = drift_of([declared(GREET)], [found], {found.id: history})

    name = "metadata.preventDelete" if "prevent_delete" in marks else "metadata.critical"
    fields = (FieldChange(name, before=False, after=True),)
    assert [one.fields for one in drift.objects] == ([fields] if is_drift else [])


def test_a_mark_that_is_declared_since_is_no_drift() -> None:
    """It never was set, neither when the object was applied nor now."""
    found = held(GREET, an_action(timeout="1s"), **BY_ANA)
    wanted = declared(GREET, prevent_delete=True, critical=True)

    (drifted,) = drift_of([wanted], [found], {found.id: [applied()]}).objects

    assert [field.name for field in drifted.fields] == ["timeout"]


def test_a_field_that_was_not_there_when_the_tree_applied_counts() -> None:
    """No event said a value of it; what is held now, somebody has filled in."""
    found = held(GREET, an_action(), **BY_ANA)
    before = event("action.added", "default", name="greet", spec={"script": "s"})

    (drifted,) = drift_of(
        [declared(GREET, an_action(allowedToFail=True))], [found], {found.id: [before]}
    ).objects

    assert drifted.fields == (FieldChange("allowedToFail", before=True, after=False),)


def test_what_is_declared_nowhere_is_listed_and_is_no_drift() -> None:
    """Somebody else may own it."""
    drift = drift_of([], [held(GREET, trees=(), **BY_ANA)])

    assert drift.objects == ()
    assert drift.unmanaged == (GREET,)


def test_differences_nobody_tells_the_author_of_are_told_apart() -> None:
    """A service that does not say who wrote is not said to be in step."""
    assert drift_of([declared(GREET)], [held(GREET, an_action(timeout="1s"))]).untold == (GREET,)
    known = held(GREET, an_action(timeout="1s"), **APPLIED)
    assert drift_of([declared(GREET), declared(WEB)], [known]).untold == ()


def test_the_history_is_asked_for_suspects_alone() -> None:
    """A thousand objects in step cost no call."""
    mine = held(WEB, **APPLIED)
    theirs = held(GREET, an_action(timeout="1s"), **BY_ANA)
    state = observed(*HOUSE, mine, theirs)
    plan = build_plan(desired(*OWNERS, declared(WEB), declared(GREET)), state)

    assert suspects(plan, state) == (theirs,)
    assert owners_to_ask(plan, state) == ()


def test_the_history_is_asked_for_of_what_may_have_been_renamed() -> None:
    """Only where something is missing, and of nothing that was declared differently."""
    renamed = held(a_ref(Kind.ACTION, "hello"), **BY_ANA)
    changed = held(WEB, **APPLIED)
    state = observed(*HOUSE, renamed, changed)
    wanted = declared(WEB, an_application(devMode=True))

    missing = build_plan(desired(*OWNERS, wanted, declared(GREET)), state)
    whole = build_plan(desired(*OWNERS, wanted), state)

    assert suspects(missing, state) == (renamed,)
    assert suspects(whole, state) == ()


def test_removals_are_asked_for_where_something_is_missing() -> None:
    """Only the organizations in which there is something to find."""
    state = observed(*HOUSE)

    assert owners_to_ask(build_plan(desired(*OWNERS, declared(GREET)), state), state) == (
        held(ACME).id,
    )


def test_a_rotated_secret_does_not_hide_what_was_changed_before_it() -> None:
    """The last event is of this tree, and applied nothing."""
    said = an_application(devMode=True)
    found = held(WEB, said, changed_by="ci", changed_in="default")
    added = event("application.added", "default", name="storefront", spec=declared(WEB).spec)
    history = [
        added,
        event("application.changed", spec=found.spec),
        event("application.secret.changed", "default"),
    ]
    state = observed(*HOUSE, found)
    plan = build_plan(desired(*OWNERS, declared(WEB)), state)

    assert [each.id for each in suspects(plan, state)] == [found.id]
    (drifted,) = find_drift(plan, state, {found.id: history}, ()).objects
    assert ([field.name for field in drifted.fields], drifted.cause) == (["devMode"], ANA)


def test_a_service_without_history_is_asked_for_none_and_judged_by_none() -> None:
    """What is missing there was never applied, or removed: the two look alike."""
    state = replace(observed(*HOUSE, held(WEB, trees=frozenset())), keeps_history=False)
    plan = build_plan(desired(*OWNERS, declared(WEB), declared(GREET)), state)

    drift = find_drift(plan, state, {}, ())

    assert owners_to_ask(plan, state) == ()
    assert drift.unjudged == (GREET,)
    assert (drift.objects, drift.untold, drift.keeps_history) == ((), (), False)


@pytest.mark.parametrize(
    ("trees", "removed", "ids"),
    [
        (frozenset(), removal(GREET, trees=["default"]), ["9"]),
        (frozenset(), removal(GREET, trees=["default"], tree="default"), []),
        (frozenset({"default"}), removal(GREET, trees=["default"]), []),
        (frozenset(), removal(WEB, trees=["default"]), []),
    ],
    ids=["made again by hand", "this tree removed it", "this tree made it again", "another one"],
)
def test_only_what_others_made_again_is_another_object(
    trees: frozenset[str], removed: Removal, ids: list[str]
) -> None:
    """Equal fields are no proof."""
    found = held(GREET, an_action(), trees=trees, changed_by="ana")

    drift = drift_of([declared(GREET)], [found], removals=[removed])

    assert [each.removed_id for each in drift.objects] == ids
    unjudged = [] if trees or ids else [GREET]
    assert list(drift.unjudged) == unjudged


MADE_AGAIN = a_ref(Kind.ACTION, "Greet")
RENAMED = FieldChange("metadata.name", "Greet", "greet")


@pytest.mark.parametrize(
    ("history", "fields", "said"),
    [
        pytest.param(
            [], (RENAMED, FieldChange("timeout", "20s", "1s")), {}, id="as far as it is declared"
        ),
        pytest.param(
            [applied(timeout="2s")],
            (FieldChange("timeout", "2s", "1s"),),
            {"timeout": "20s"},
            id="since the one that was deleted was applied",
        ),
    ],
)
def test_what_others_made_again_is_told_with_its_author_and_every_difference(
    history: list[ObjectEvent], fields: tuple[FieldChange, ...], said: dict[str, Any]
) -> None:
    """Under the name that its manifest has, also after others that were never applied."""
    never = held(a_ref(Kind.ACTION, "adopted"), trees=())
    found = held(GREET, an_action(timeout="1s"), trees=(), object_id="10", **BY_ANA)
    again = a_ref(Kind.ACTION, "again")
    same = held(again, object_id="11", trees=(), **BY_ANA)
    gone = [removal(ref, trees=["default"]) for ref in (MADE_AGAIN, again)]

    resources = [declared(never.ref), declared(MADE_AGAIN, an_action()), declared(again)]
    drift = drift_of(resources, [never, found, same], {"9": history}, gone)

    assert set(drift.objects) == {
        DriftedObject(again, "11", ANA, removed_id="9"),
        DriftedObject(MADE_AGAIN, "10", ANA, fields, said, removed_id="9"),
    }
    assert drift.unjudged == (never.ref,)


def test_the_drift_of_an_object_is_told_with_the_last_change_of_a_field() -> None:
    """The last event of the object, of this tree, changed none."""
    first = replace(applied(), sequence=1)
    altered = [
        replace(applied(timeout="1s"), context={}, sequence=5, writer="ana"),
        replace(applied(timeout="1s", allowedToFail=True), context={}, sequence=4, writer="bob"),
    ]
    rotated = replace(event("application.secret.changed", "default"), sequence=9)
    ours = {**BY_ANA, "changed_by": "ci", "changed_in": "default", "sequence": 9}
    found = held(GREET, an_action(timeout="1s", allowedToFail=True), **ours)
    wanted = declared(GREET, an_action(allowedToFail=False))

    (told,) = drift_of([wanted], [found], {found.id: [first, *altered, rotated]}).objects

    assert told.cause == Cause(CauseKind.SERVICE, "ana", "noon", 5)


def test_what_is_left_inactive_or_to_others_is_told_with_the_drift() -> None:
    """It is no drift, and somebody may wonder."""
    off = replace(held(GREET, an_action(timeout="1s"), **APPLIED), active=False)
    wanted = replace(declared(GREET), ignored=frozenset({"timeout"}))

    drift = drift_of([wanted], [replace(off, ignored=wanted.ignored)])

    ignored = (IgnoredField(GREET, "timeout", "20s", "1s"),)
    assert drift == Drift((), inactive=(GREET,), ignored=ignored)


def test_the_drift_of_the_whole_tree_is_the_drift_itself() -> None:
    drift = Drift((), unmanaged=(GREET,))

    assert selected(drift, a_plan()) is drift


def test_of_a_part_only_its_own_drift_is_told_and_the_rest_is_counted() -> None:
    """What others deliver is counted as it is: it is not of this tree at all."""
    outside = [a_ref(name=f"app-{number}") for number in range(2)]
    other = a_ref(Kind.IDP_JWT_CONFIG, "other")
    scope = Scope(target=(parse_pattern(WEB.address), parse_pattern(PARTNER.address)))
    owed = tuple(an_owed_secret(ref) for ref in (WEB, *outside))
    plan = a_plan(in_step=(ACME, SHOP, WEB, PARTNER, *outside, other), scope=scope, owed=owed)

    def parts(*refs: ResourceRef) -> dict[str, Any]:
        return {
            "unmanaged": refs,
            "unjudged": refs,
            "inactive": refs,
            "ignored": tuple(IgnoredField(ref, "timeout", "20s", "1s") for ref in refs),
        }

    whole = Drift(
        tuple(DriftedObject(ref, "1", ANA) for ref in (WEB, *outside)),
        untold=(PARTNER, other),
        keeps_history=False,
        owed=3,
        owed_elsewhere=4,
        **parts(WEB, other),
    )

    assert selected(whole, plan) == Drift(
        (DriftedObject(WEB, "1", ANA),),
        untold=(PARTNER,),
        keeps_history=False,
        owed=1,
        owed_elsewhere=4,
        scope=scope,
        left_out=3,
        **parts(WEB),
    )
