"""What the planner tells, each finding whole: its words, its place in the manifest, its object."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import SourceLocation, error, warning
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Scope, Update
from reconciler.plan.ordering import in_order
from reconciler.plan.planner import build_plan, match
from reconciler.resources.ref import Kind, ResourceRef, fold, project_ref
from tests.builders import (
    ACME,
    GREET,
    HOUSE,
    NONE,
    OWNERS,
    SHOP,
    WEB,
    FakeSource,
    a_jwt_config,
    a_ref,
    an_action,
    an_application,
    declared,
    desired,
    held,
    id_of,
    observed,
    plan_of,
)

LINES: dict[tuple[str | int, ...], int] = {("metadata", "name"): 4, ("spec",): 9}
SOURCE = FakeSource("shop.yaml", LINES)
NAME = SourceLocation("shop.yaml", 4, 3)
PRUNE = Scope(prune=True)
OLD, NEW = a_ref(name="old"), a_ref(name="new")


def allowing(**more: Any) -> Allowances:
    """Return allowances under which only the guards that are asked speak."""
    return Allowances(**{"updates": 99, "deletes": 99, **more})


def test_the_deprecated_operation() -> None:
    """Every manifest by its object, file and line; the finding at the spec of the first."""
    moved = a_jwt_config(issuer="https://other.example.com", audience="us")
    refs = [a_ref(Kind.IDP_JWT_CONFIG, f"p{at:02}") for at in range(20)]
    plan = plan_of(
        [declared(ref, moved, source=SOURCE) for ref in refs],
        [held(ref, a_jwt_config(audience="us")) for ref in refs],
        allowed=allowing(),
    )

    told = ", ".join(f"{ref} (shop.yaml:4:3)" for ref in refs)
    assert plan.warnings == (
        warning(
            "PLAN-DEPRECATED-OPERATION",
            "the plan uses a deprecated operation of the service",
            "UpdateOrgIDPJWTConfig may be removed in a future version of the service. It is used "
            f"for {told}. Nothing is wrong today; keep it in mind before the service is upgraded.",
            SourceLocation("shop.yaml", 9, 2),
        ),
    )


@pytest.mark.parametrize(
    ("names", "told", "them"), [(["Old"], "Old", "it"), (["Old", "Bad"], "Bad, Old", "them")]
)
def test_organizations_that_were_left_behind(names: list[str], told: str, them: str) -> None:
    """One or several, in words that fit."""
    state = replace(observed(*HOUSE), elsewhere=dict.fromkeys(names, frozenset({"default"})))

    assert build_plan(desired(*OWNERS), state).warnings == (
        warning(
            "PLAN-ORGANIZATION-LEFT",
            "the tree no longer names an organization it applied before",
            f"Tree default applied objects to {told}, and no manifest names {them} any more. What "
            "is there is neither compared nor deleted. Declare the Organization again to see it "
            "in the plan, and to let --prune delete what is in it.",
        ),
    )


def test_glass_that_is_broken_for_nothing() -> None:
    """As it was given, not as it is compared."""
    given = "Action/acme/TYPO"

    assert plan_of([], allowed=allowing(lockouts={fold(given): given})).warnings == (
        warning(
            "PLAN-BREAK-GLASS-UNUSED",
            "--break-glass names what this plan does not touch",
            f"Nothing is planned for {given}. Correct the name, or leave the flag out.",
        ),
    )


def test_two_objects_of_one_name() -> None:
    """At the name, which is where the id must be written."""
    name_clashes = (held(WEB, object_id="2"), held(WEB, object_id="3"))
    state = replace(observed(*HOUSE, held(WEB, object_id="1")), name_clashes=name_clashes)

    assert build_plan(desired(*OWNERS, declared(WEB, source=SOURCE)), state).blocks == (
        error(
            "GUARD-SAME-NAME",
            "the service holds several objects of one name",
            f"{WEB} could be id 1 or id 2 or id 3. Write the one that is meant as metadata.id in "
            "the manifest.",
            NAME,
            WEB,
        ),
    )


def test_an_object_that_would_be_adopted() -> None:
    """At the name, because the manifest is what is taken out."""
    theirs = held(GREET, an_action(timeout="1s"), trees=())

    plan = plan_of([declared(GREET, source=SOURCE)], [theirs], allowed=allowing(adopt=False))

    assert [(block.location, block.ref) for block in plan.blocks] == [(NAME, GREET)]


def test_a_critical_object_that_would_be_removed() -> None:
    """Removed and weakened are told apart; what is before it in the plan hides nothing."""
    weaker = declared(WEB, an_application(authMethodType=NONE), critical=True)
    lockouts = {fold(WEB.address): WEB.address}

    plan = plan_of(
        [weaker],
        [held(WEB, critical=True), held(GREET, critical=True)],
        PRUNE,
        allowing(lockouts=lockouts),
    )

    assert plan.blocks == (
        error(
            "GUARD-CRITICAL",
            "a critical object would be removed",
            f"{GREET} was declared with metadata.critical; its risks here: action-removed. If that "
            f"is meant, allow just that: --break-glass {GREET.address}=REASON.",
            ref=GREET,
        ),
    )


def test_what_the_caller_signs_in_with() -> None:
    """By its id: the reader knows the key file by it."""
    mine = held(GREET, object_id="7")
    state = replace(observed(*HOUSE, mine), caller_objects=frozenset({"7"}))

    assert build_plan(desired(*OWNERS), state, PRUNE, allowing()).blocks == (
        error(
            "GUARD-OWN-ACCESS",
            "the plan touches what its own caller signs in with",
            f"{GREET} (id 7) is what this run signs in with; its risks here: action-removed. If "
            f"that is meant, allow just that: --break-glass {GREET.address}=REASON.",
            ref=GREET,
        ),
    )


@pytest.mark.parametrize(
    ("project", "instead"),
    [
        ("shop", "To rename it and keep both, write metadata.id: '42' in the manifest."),
        ("blog", "An application cannot move to another project and keep it."),
    ],
)
def test_an_application_that_would_be_made_anew(project: str, instead: str) -> None:
    """Elsewhere there is no way to keep it; in its project there is."""
    made = a_ref(name="OLD" if project == "blog" else "new", project=project)
    resources = [declared(project_ref("acme", "blog")), declared(made, source=SOURCE)]
    gone = held(OLD, object_id="42", client_id="c")

    plan = plan_of(resources, [gone], PRUNE, allowing())

    assert plan.blocks == (
        error(
            "GUARD-MADE-ANEW",
            "an application would be deleted and created again",
            f"{OLD} would be deleted and {made} created in its place: its client id c and its "
            "secret would end, and whatever is deployed with them could no longer sign in. "
            f"{instead} If that is meant, allow just that: --break-glass {OLD.address}=REASON.",
            NAME,
            OLD,
        ),
    )


def test_names_that_are_swapped_are_told_at_the_first_of_them() -> None:
    """Each manifest has lines of its own."""
    sources = {name: FakeSource(f"{name}.yaml") for name in ("old", "new")}
    swapped = [
        Update(
            declared(ref, pinned_id=before.id, source=sources[ref.name]),
            before,
        )
        for ref, before in ((OLD, held(NEW)), (NEW, held(OLD)))
    ]

    (finding,) = in_order(swapped)[1]

    assert (str(finding.location), finding.ref) == ("new.yaml:1:3", NEW)


@pytest.mark.parametrize(
    ("ref", "pinned", "code"),
    [
        (ACME, id_of(ACME), ""),
        (ACME, id_of(SHOP), "PLAN-ID-OTHER-OBJECT"),
        (WEB, "404", "PLAN-ID-NOT-HELD"),
    ],
)
def test_a_wrong_id_is_never_made_up_for_by_the_name(
    ref: ResourceRef, pinned: str, code: str
) -> None:
    """Who writes an id means that object and no other."""
    wanted = declared(ref, pinned_id=pinned)
    resources = [wanted, *(owner for owner in OWNERS if owner.ref != ref)]

    matching = match(desired(*resources), observed(*HOUSE, held(WEB)))

    assert [finding.code for finding in matching.findings] == ([code] if code else [])
    (found,) = [held for resource, held in matching.pairs if resource is wanted]
    assert (found is None) is bool(code)
