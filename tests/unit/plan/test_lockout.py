"""Guards against locking people out, adoption, shared names: what blocks, and what allows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import Diagnostic
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Delete, Plan, Scope, Update
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import fold, project_ref
from reconciler.state import ObservedObject, Resource
from tests.builders import (
    GREET,
    HOUSE,
    NONE,
    OWNERS,
    PARTNER,
    WEB,
    FakeSource,
    a_jwt_config,
    a_ref,
    an_action,
    an_application,
    declared,
    desired,
    held,
    observed,
    plan_of,
)

PRUNE = Scope(prune=True)
WEAKER = an_application(authMethodType=NONE)
OTHER = an_application(redirectUris=["https://other.example.com/cb"], clockSkew="1s")
MANY = 99


def allowing(*refs: str, **more: Any) -> Allowances:
    """Return allowances under which only the guards of this file speak."""
    glass = {fold(ref): ref for ref in refs}
    return Allowances(**{"updates": MANY, "deletes": MANY, "glass": glass, **more})


def codes(plan: Plan) -> list[str]:
    return [block.code for block in plan.blocks]


@pytest.mark.parametrize(
    ("resources", "objects", "expected"),
    [
        pytest.param([declared(WEB, WEAKER)], [held(WEB)], [], id="weakened, and not critical"),
        pytest.param(
            [declared(WEB, WEAKER, critical=True)],
            [held(WEB, critical=True)],
            ["GUARD-CRITICAL"],
            id="weakened",
        ),
        pytest.param(
            [declared(WEB, WEAKER, critical=True)],
            [held(WEB)],
            ["GUARD-CRITICAL"],
            id="weakened by the change that makes it critical",
        ),
        pytest.param(
            [declared(WEB)],
            [held(WEB, critical=True)],
            ["GUARD-CRITICAL"],
            id="no longer declared as critical",
        ),
        pytest.param(
            [declared(WEB, critical=True)], [held(WEB)], [], id="declared as critical from now on"
        ),
        pytest.param(
            [declared(WEB, an_application(clockSkew="1s"), critical=True)],
            [held(WEB, critical=True)],
            [],
            id="changed without a risk",
        ),
        pytest.param(
            [declared(WEB, WEAKER, critical=True)],
            [held(WEB, critical=None)],
            ["GUARD-CRITICAL"],
            id="on a service that remembers nothing",
        ),
        pytest.param([], [held(GREET, critical=True)], ["GUARD-CRITICAL"], id="removed"),
        pytest.param([], [held(GREET)], [], id="removed, and not critical"),
        pytest.param(
            [declared(WEB, an_application(devMode=True), critical=True)], [], [], id="created"
        ),
        pytest.param(
            [declared(PARTNER, a_jwt_config(issuer="https://x.example"), critical=True)],
            [held(PARTNER, critical=True, trees=())],
            ["GUARD-CRITICAL"],
            id="adopted and weakened",
        ),
    ],
)
def test_a_critical_object_is_neither_removed_nor_weakened(
    resources: Sequence[Resource], objects: Sequence[ObservedObject], expected: list[str]
) -> None:
    """People are locked out when it breaks, and it is remembered when its manifest is gone."""
    assert codes(plan_of(resources, objects, PRUNE, allowing())) == expected


def test_the_guard_says_what_is_risky_and_how_to_allow_just_that() -> None:
    """Whoever reads it can copy the flag."""
    ref = a_ref(name="it's web")
    plan = plan_of(
        [declared(ref, WEAKER, critical=True)], [held(ref, critical=True)], PRUNE, allowing()
    )

    (block,) = plan.blocks
    assert (block.summary, block.ref) == ("a critical object would be weakened", ref)
    assert block.remedy == (
        "OidcApplication acme/shop/it's web was declared with metadata.critical; its risks here: "
        "credential-weaker. If that is meant, allow just that: --break-glass "
        "'OidcApplication/acme/shop/it'\"'\"'s web=REASON'."
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("OidcApplication/acme/shop/storefront", []),
        ("oidcapplication/ACME/Shop/STOREFRONT", []),
        ("OidcApplication/acme/shop/other", ["GUARD-CRITICAL"]),
        ("Action/acme/storefront", ["GUARD-CRITICAL"]),
        ("OidcApplication/acme/shop", ["GUARD-CRITICAL"]),
    ],
)
def test_breaking_the_glass_allows_the_object_that_is_named_and_no_other(
    given: str, expected: list[str]
) -> None:
    """There is no flag that allows everything."""
    plan = plan_of(
        [declared(WEB, WEAKER, critical=True)], [held(WEB, critical=True)], PRUNE, allowing(given)
    )

    assert codes(plan) == expected


def test_the_glass_can_be_broken_by_the_old_name_of_an_object_that_is_renamed() -> None:
    """Its new name is nowhere yet when somebody reads what is held."""
    new = declared(a_ref(name="new"), WEAKER, critical=True, pinned_id="7")
    before = held(a_ref(name="old"), critical=True, object_id="7")

    blocked = plan_of([new], [before], PRUNE, allowing())
    for name in ("old", "new"):
        named = allowing(f"OidcApplication/acme/shop/{name}")
        assert codes(plan_of([new], [before], PRUNE, named)) == []
    assert codes(blocked) == ["GUARD-CRITICAL"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Delete(held(GREET, object_id="7")), ["GUARD-OWN-ACCESS"]),
        (Update(declared(GREET, an_action(script="x")), held(GREET, object_id="7")),
         ["GUARD-OWN-ACCESS"]),
        (Update(declared(GREET, an_action(timeout="1s")), held(GREET, object_id="7")), []),
        (Delete(held(GREET, object_id="8")), []),
    ],
)  # fmt: skip
def test_what_the_caller_signs_in_with_is_not_pulled_from_under_it(
    change: Delete | Update, expected: list[str]
) -> None:
    """Where the service tells what that is: the run could not be repeated, or undone."""
    resources = [] if isinstance(change, Delete) else [change.resource]
    state = replace(observed(*HOUSE, change.held), caller_objects=frozenset({"7"}))

    plan = build_plan(desired(*OWNERS, *resources), state, PRUNE, allowing())

    assert codes(plan) == expected
    broken = allowing("Action/acme/greet")
    assert codes(build_plan(desired(*OWNERS, *resources), state, PRUNE, broken)) == []


OLD, NEW = a_ref(name="old"), a_ref(name="new")


@pytest.mark.parametrize(
    ("gone", "made", "expected"),
    [
        pytest.param(held(OLD), declared(NEW), ["GUARD-MADE-ANEW"], id="renamed"),
        pytest.param(
            held(OLD, an_application(redirectUris=[])),
            declared(NEW, an_application(redirectUris=[])),
            ["GUARD-MADE-ANEW"],
            id="renamed, without any redirect URI",
        ),
        pytest.param(
            held(OLD),
            declared(NEW, an_application(devMode=True, clockSkew="1s")),
            ["GUARD-MADE-ANEW"],
            id="renamed and changed",
        ),
        pytest.param(
            held(OLD),
            declared(a_ref(name="Old", project="blog"), OTHER),
            ["GUARD-MADE-ANEW"],
            id="moved to another project",
        ),
        pytest.param(held(OLD), declared(NEW, OTHER), [], id="one goes, another comes"),
        pytest.param(
            held(OLD), declared(a_ref(name="new", project="blog")), [], id="alike in two projects"
        ),
    ],
)
def test_an_application_is_not_deleted_and_made_anew_unawares(
    gone: ObservedObject, made: Resource, expected: list[str]
) -> None:
    """Its client id would change, and whatever is deployed with the old one would stop."""
    blog = declared(project_ref("acme", "blog"))

    plan = plan_of([blog, made], [gone], PRUNE, allowing())

    assert codes(plan) == expected
    for ref in (gone.ref, made.ref):
        assert codes(plan_of([blog, made], [gone], PRUNE, allowing(ref.address))) == []


def test_the_guard_says_how_to_rename_instead() -> None:
    """The id is what makes a rename of it."""
    source = FakeSource("new.yaml", {("metadata", "name"): 7})
    gone = held(OLD, object_id="42", client_id="42@shop")
    (block,) = plan_of([declared(NEW, source=source)], [gone], PRUNE, allowing()).blocks

    assert block.remedy == (
        "OidcApplication acme/shop/old would be deleted and OidcApplication acme/shop/new created "
        "in its place: its client id 42@shop and its secret would end, and whatever is deployed "
        "with them could no longer sign in. To rename it and keep both, write metadata.id: '42' "
        "in the manifest. If that is meant, allow just that: --break-glass "
        "OidcApplication/acme/shop/old=REASON."
    )
    assert (str(block.location), block.ref) == ("new.yaml:7:3", OLD)


def test_nothing_but_applications_is_missed_by_its_id() -> None:
    """An action that is renamed by its name alone is made anew, and that is all there is to it."""
    plan = plan_of([declared(a_ref(GREET.kind, "new"))], [held(GREET)], PRUNE, allowing())

    assert codes(plan) == []


def test_no_adopt_leaves_what_others_made_as_it_is() -> None:
    """One finding for each object, at the place of its manifest."""
    objects = [held(WEB, trees=()), held(GREET, trees=("other",)), held(PARTNER, trees=())]
    resources = [
        declared(WEB, OTHER),
        declared(GREET, an_action(timeout="1s"), source=FakeSource("greet.yaml")),
        declared(PARTNER),
    ]

    plan = plan_of(resources, objects, PRUNE, allowing(adopt=False))

    assert codes(plan) == ["GUARD-ADOPT", "GUARD-ADOPT"]
    assert plan.summary.adopt == 2
    assert plan.blocks[0] == Diagnostic(
        plan.blocks[0].severity,
        "GUARD-ADOPT",
        "an object would be adopted",
        "Action acme/greet (id act--greet) was never applied by this tree, and --no-adopt says to "
        "leave such objects as they are. To take it over, leave --no-adopt out; otherwise take "
        "its manifest out.",
        FakeSource("greet.yaml").place("metadata", "name"),
        GREET,
    )
    assert codes(plan_of(resources, objects, PRUNE, allowing())) == []


FIRST, SECOND = held(WEB, object_id="1"), held(a_ref(name="STOREFRONT"), OTHER, object_id="2")


def plan_with_doubles(*resources: Resource, scope: Scope = PRUNE) -> Plan:
    state = replace(observed(*HOUSE, FIRST), doubles=(SECOND,))
    return build_plan(desired(*OWNERS, *resources), state, scope, allowing())


def test_two_objects_of_one_name_stop_with_both_ids() -> None:
    """Nobody can say which of them the manifest means."""
    (block,) = plan_with_doubles(declared(WEB), scope=Scope()).blocks

    assert (block.code, block.ref) == ("GUARD-SAME-NAME", WEB)
    assert block.remedy == (
        "OidcApplication acme/shop/storefront could be id 1 or id 2. Write the one that is meant "
        "as metadata.id in the manifest."
    )


@pytest.mark.parametrize("pinned", ["1", "2"])
def test_an_id_says_which_of_two_objects_is_meant(pinned: str) -> None:
    """The other is declared nowhere, and left alone."""
    name = "storefront" if pinned == "1" else "STOREFRONT"
    said = None if pinned == "1" else OTHER
    plan = plan_with_doubles(declared(a_ref(name=name), said, pinned_id=pinned), scope=Scope())

    assert (plan.blocks, plan.changes) == ((), ())
    assert [found.ref.name for found in plan.unmanaged] == [
        "STOREFRONT" if pinned == "1" else "storefront"
    ]


def test_two_objects_of_one_name_that_nobody_declares_stop_nothing() -> None:
    """They are listed as what they are."""
    plan = plan_with_doubles(scope=Scope())

    assert (plan.blocks, len(plan.unmanaged)) == ((), 2)


def test_both_of_one_name_are_deleted_each_by_its_own_id() -> None:
    """What is to go goes, whatever it is called."""
    plan = plan_with_doubles()

    assert {change.held.id for change in plan.changes if isinstance(change, Delete)} == {"1", "2"}
