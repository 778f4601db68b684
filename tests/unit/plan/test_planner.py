"""build_plan decides. It is tested on values alone: there is nothing to fake."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.diagnostics import SourceLocation, error
from reconciler.errors import InvalidManifestsError
from reconciler.plan.model import (
    Adopt,
    Change,
    Create,
    Delete,
    Plan,
    Scope,
    Summary,
    Unmanaged,
    Update,
)
from reconciler.plan.ordering import batches
from reconciler.plan.ownership import flag_to_delete
from reconciler.plan.planner import build_plan, match
from reconciler.resources.ref import Kind, ResourceRef, organization_ref, owner_of, project_ref
from reconciler.state import ObservedObject, Resource
from tests.builders import (
    ACME,
    GREET,
    HOUSE,
    NONE,
    OWNERS,
    PARTNER,
    SHOP,
    WEB,
    FakeSource,
    a_plan,
    a_public_application,
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
from tests.effort import cases


def test_an_empty_service_is_filled_owners_first() -> None:
    """The first apply of a tree."""
    resources = [declared(WEB), declared(GREET), declared(PARTNER), *OWNERS]

    plan = build_plan(desired(*resources), observed(instance=""))

    changes = [declared(ref) for ref in (ACME, SHOP, GREET, PARTNER, WEB)]
    assert plan == Plan(Scope(), "", ("acme",), tuple(Create(change) for change in changes))


@pytest.mark.parametrize(
    ("said", "before"),
    [
        pytest.param(an_application(devMode=True), an_application(), id="a scalar differs"),
        pytest.param(an_application(), an_application(redirectUris=[]), id="a list differs"),
        pytest.param(
            an_application(redirectUris=["https://a.example.com/", "https://b.example.com/"]),
            an_application(redirectUris=["https://b.example.com/", "https://a.example.com/"]),
            id="a list of URIs in another order",
        ),
        pytest.param(
            an_application(), an_application(devMode=True), id="held differs from an unsaid default"
        ),
        pytest.param(an_application(), an_application(clockSkew="1s"), id="a duration differs"),
    ],
)
def test_what_is_held_otherwise_is_updated(said: dict[str, Any], before: dict[str, Any]) -> None:
    """The update carries what it was based on, so that apply can refuse a newer one."""
    resource, found = declared(WEB, said), held(WEB, before, sequence=41)

    assert plan_of([resource], [found]) == a_plan(Update(resource, found))


@pytest.mark.parametrize(
    ("ref", "said", "before"),
    [
        pytest.param(WEB, an_application(), an_application(), id="the same"),
        pytest.param(
            WEB, an_application(devMode=False), an_application(), id="a default said is one unsaid"
        ),
        pytest.param(
            WEB, an_application(clockSkew="1.50s"), an_application(clockSkew="1.5s"),
            id="durations by value",
        ),
        pytest.param(
            WEB, an_application(responseTypes=[], grantTypes=[]), an_application(),
            id="an empty list of types means the default",
        ),
        pytest.param(
            WEB,
            an_application(
                grantTypes=["OIDC_GRANT_TYPE_REFRESH_TOKEN", "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"]
            ),
            an_application(
                grantTypes=["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_REFRESH_TOKEN"]
            ),
            id="grant types as a set",
        ),
        pytest.param(GREET, an_action(timeout="20s"), an_action(), id="the default of an action"),
    ],
)  # fmt: skip
def test_what_means_the_same_is_in_step(
    ref: ResourceRef, said: dict[str, Any], before: dict[str, Any]
) -> None:
    """A second run right after the first has nothing to write, however things are spelt."""
    assert plan_of([declared(ref, said)], [held(ref, before)]) == a_plan(
        in_step=tuple(sorted([ACME, SHOP, ref]))
    )


@pytest.mark.parametrize(
    ("resource", "before", "kind"),
    [
        pytest.param(
            declared(WEB, a_public_application()), held(WEB, trees=[]), Adopt,
            id="made by hand",
        ),
        pytest.param(
            declared(WEB, a_public_application()), held(WEB, trees=["other"]), Adopt,
            id="applied by another tree",
        ),
        pytest.param(
            declared(WEB, a_public_application()), held(WEB, trees=["other", "default"]), Update,
            id="applied by this tree too",
        ),
        pytest.param(
            declared(a_ref(name="Storefront")), held(WEB), Update, id="its name in another case"
        ),
        pytest.param(
            declared(a_ref(name="shopfront"), pinned_id="7"), held(WEB, object_id="7"), Update,
            id="a rename",
        ),
        pytest.param(
            declared(WEB, prevent_delete=True), held(WEB), Update, id="protection is new"
        ),
        pytest.param(
            declared(WEB), held(WEB, prevent_delete=True), Update, id="protection is lifted"
        ),
    ],
)  # fmt: skip
def test_an_object_is_updated_or_adopted(
    resource: Resource, before: ObservedObject, kind: type[Update | Adopt]
) -> None:
    """Taking over what somebody else made is said before it is done."""
    assert plan_of([resource], [before]) == a_plan(kind(resource, before))


def test_a_service_that_cannot_remember_protection_is_not_asked_to() -> None:
    """Otherwise every plan against it would show the same update for ever."""
    plan = plan_of([declared(WEB, prevent_delete=True)], [held(WEB, prevent_delete=None)])

    assert plan == a_plan(in_step=(WEB, ACME, SHOP))


OTHERS = held(a_ref(name="others"), trees=["other"])
OURS = held(WEB, client_id="7@shop")
GONE = [Delete(OURS)]


@pytest.mark.parametrize(
    ("scope", "deletes", "unmanaged"),
    [
        pytest.param(Scope(), [], [OTHERS, OURS], id="without being asked, nothing"),
        pytest.param(Scope(prune=True), [OURS], [OTHERS], id="--prune: what this tree applied"),
        pytest.param(
            Scope("other", prune=True), [OTHERS], [OURS], id="--prune of another tree: its own"
        ),
        pytest.param(
            Scope("third", prune=True), [], [OTHERS, OURS], id="--prune of a new tree: nothing"
        ),
        pytest.param(
            Scope(prune_unmanaged=True), [OTHERS, OURS], [], id="--prune-unmanaged: everything"
        ),
    ],
)
def test_what_is_declared_nowhere_is_deleted_only_as_far_as_was_asked(
    scope: Scope, deletes: Sequence[ObservedObject], unmanaged: Sequence[ObservedObject]
) -> None:
    """Silence in the manifests is never an order to write."""
    padding = [held(a_ref(name=f"kept{at}")) for at in range(9)]
    kept = [declared(found.ref) for found in padding]

    plan = plan_of(kept, [OURS, OTHERS, *padding], scope)

    assert plan == a_plan(
        *(Delete(found) for found in deletes),
        scope=scope,
        in_step=tuple(sorted([ACME, SHOP, *(found.ref for found in padding)])),
        unmanaged=tuple(
            Unmanaged(found.ref, found.id, None, flag_to_delete(found, scope.tree))
            for found in unmanaged
        ),
    )


@pytest.mark.parametrize("scope", [Scope(prune=True), Scope(prune_unmanaged=True)])
def test_organizations_and_projects_are_never_deleted(scope: Scope) -> None:
    """They own what others made; a project is told as unmanaged, an organization is not news."""
    plan = build_plan(desired(organizations=["acme"]), observed(*HOUSE), scope)

    assert plan == Plan(scope, "instance-1", ("acme",), unmanaged=(Unmanaged(SHOP, "pro--shop"),))


def test_a_delete_frees_the_name_for_a_rename() -> None:
    """Pruning the old application and giving its name to the new one is one plan."""
    scope = Scope(prune=True)
    padding = [held(a_ref(name=f"kept{at}")) for at in range(2)]
    new = declared(WEB, pinned_id="7")
    before = held(a_ref(name="storefront-next"), object_id="7")

    plan = plan_of([new, *(declared(p.ref) for p in padding)], [OURS, before, *padding], scope)

    assert plan.changes == (Delete(OURS), Update(new, before))


def test_a_name_that_an_unmanaged_object_has_is_an_error_of_the_manifest() -> None:
    """The service would refuse the rename half way through the apply."""
    source = FakeSource(lines={("metadata", "name"): 6})
    new = declared(WEB, pinned_id="7", source=source)
    before = held(a_ref(name="storefront-next"), object_id="7")

    with pytest.raises(InvalidManifestsError) as refused:
        plan_of([new], [OURS, before])

    assert refused.value.diagnostics == (
        error(
            "PLAN-NAME-TAKEN",
            "another object has the name",
            f"OidcApplication acme/shop/storefront is the object of id {OURS.id}, which is "
            "declared nowhere. Choose another name, or declare that object under another one.",
            SourceLocation("shop.yaml", 6, 3),
            WEB,
        ),
    )


def test_every_contradiction_is_told_in_one_run() -> None:
    """In the order of their places, however the states are ordered."""
    wrong = [
        declared(a_ref(name="b"), pinned_id="8", source=FakeSource("b.yaml")),
        declared(a_ref(name="a"), pinned_id="9", source=FakeSource("a.yaml")),
        declared(a_ref(project="blog"), source=FakeSource("c.yaml")),
    ]

    with pytest.raises(InvalidManifestsError) as refused:
        plan_of(wrong)

    found = [(finding.location.file, finding.code) for finding in refused.value.diagnostics
             if finding.location]  # fmt: skip
    assert found == [
        ("a.yaml", "PLAN-ID-NOT-HELD"),
        ("b.yaml", "PLAN-ID-NOT-HELD"),
        ("c.yaml", "REF-NOT-HELD"),
    ]


def test_the_summary_counts_everything_once() -> None:
    """The numbers a reviewer reads first."""
    objects = [
        held(GREET, an_action(timeout="1s")),
        held(PARTNER, trees=[]),
        held(a_ref(name="gone"), an_application(redirectUris=["https://gone.example.com/cb"])),
        held(a_ref(name="others"), trees=[]),
    ]
    partner = declared(PARTNER, {**declared(PARTNER).spec, "issuer": "https://x.example.com"})
    scope = Scope(prune=True)

    plan = plan_of([declared(WEB), declared(GREET), partner], objects, scope)

    assert plan.summary == Summary(
        create=1, update=1, adopt=1, delete=1, in_step=2, unmanaged=1, blocked=0
    )


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


def test_ids_of_builders_are_of_one_object_each() -> None:
    """The tests above tell objects apart by them."""
    refs = [ACME, SHOP, WEB, GREET, PARTNER, a_ref(project="blog")]

    assert len({id_of(ref) for ref in refs}) == len(refs)


LINES: dict[tuple[str | int, ...], int] = {
    ("metadata", "id"): 5,
    ("metadata", "name"): 6,
    ("metadata", "project"): 7,
}
SOURCE = FakeSource(lines=LINES)
OTHER = a_ref(name="other")


@pytest.mark.parametrize(
    ("resources", "objects", "pairs", "leftover"),
    [
        pytest.param([declared(WEB)], [], {WEB: ""}, [], id="nothing held"),
        pytest.param([declared(WEB)], [held(WEB)], {WEB: WEB}, [], id="by name"),
        pytest.param(
            [declared(a_ref(name="StoreFront"))],
            [held(WEB)],
            {a_ref(name="StoreFront"): WEB},
            [],
            id="by name, ignoring case",
        ),
        pytest.param(
            [declared(a_ref(name="Straße"))],
            [held(a_ref(name="STRASSE"))],
            {a_ref(name="Straße"): a_ref(name="STRASSE")},
            [],
            id="by name, ignoring case as Unicode folds it",
        ),
        pytest.param(
            [declared(WEB)], [held(a_ref(project="blog"))], {WEB: ""}, [a_ref(project="blog")],
            id="not across projects",
        ),
        pytest.param(
            [declared(GREET)], [held(a_ref(Kind.IDP_JWT_CONFIG, "greet"))], {GREET: ""},
            [a_ref(Kind.IDP_JWT_CONFIG, "greet")],
            id="not across kinds",
        ),
        pytest.param(
            [declared(WEB, pinned_id="7")], [held(WEB, object_id="7")], {WEB: WEB}, [],
            id="by pinned id under its own name",
        ),
        pytest.param(
            [declared(WEB, pinned_id="7")], [held(OTHER, object_id="7")], {WEB: OTHER}, [],
            id="by pinned id under another name: a rename",
        ),
        pytest.param(
            [declared(WEB, pinned_id="7")],
            [held(OTHER, object_id="7"), held(WEB)],
            {WEB: OTHER},
            [WEB],
            id="the pinned id wins over the name",
        ),
        pytest.param(
            [declared(WEB, pinned_id="7"), declared(OTHER)],
            [held(OTHER, object_id="7")],
            {WEB: OTHER, OTHER: ""},
            [],
            id="an object claimed by a pin is no longer found by its old name",
        ),
        pytest.param(
            [declared(OTHER), declared(WEB, pinned_id="7")],
            [held(OTHER, object_id="7")],
            {WEB: OTHER, OTHER: ""},
            [],
            id="whichever of the two was read first",
        ),
        pytest.param([], [held(WEB)], {}, [WEB], id="held and declared nowhere"),
    ],
)  # fmt: skip
def test_declared_and_held_are_paired(
    resources: Sequence[Resource],
    objects: Sequence[ObservedObject],
    pairs: dict[ResourceRef, ResourceRef | str],
    leftover: Sequence[ResourceRef],
) -> None:
    """By pinned id, otherwise by name; and nobody gets an object twice."""
    matching = match(desired(*OWNERS, *resources), observed(*HOUSE, *objects))

    found = {resource.ref: held.ref if held else "" for resource, held in matching.pairs}
    assert found == {ACME: ACME, SHOP: SHOP, **pairs}
    assert [held.ref for held in matching.leftover] == list(leftover)
    assert matching.findings == []


@pytest.mark.parametrize(
    ("resource", "objects", "code", "summary", "remedy", "line"),
    [
        pytest.param(
            declared(WEB, pinned_id="7", source=SOURCE),
            [],
            "PLAN-ID-NOT-HELD",
            "metadata.id names no object of this organization",
            "The service holds nothing under id 7 in acme. Take the id from the service, or leave "
            "metadata.id out to make a new object.",
            5,
            id="an id that nobody has",
        ),
        pytest.param(
            declared(WEB, pinned_id="7", source=SOURCE),
            [held(GREET, object_id="7")],
            "PLAN-ID-OTHER-OBJECT",
            "metadata.id names an object of another kind or owner",
            "Id 7 is Action acme/greet, and an object cannot move. Correct the id, or leave "
            "metadata.id out to make a new object.",
            5,
            id="the id of another kind",
        ),
        pytest.param(
            declared(WEB, pinned_id="7", source=SOURCE),
            [held(a_ref(project="blog"), object_id="7")],
            "PLAN-ID-OTHER-OBJECT",
            "metadata.id names an object of another kind or owner",
            "Id 7 is OidcApplication acme/blog/storefront, and an object cannot move. Correct the "
            "id, or leave metadata.id out to make a new object.",
            5,
            id="the id of another project's application",
        ),
        pytest.param(
            declared(PARTNER, pinned_id="7", source=SOURCE),
            [held(a_ref(Kind.IDP_JWT_CONFIG, "partner", "initech"), object_id="7")],
            "PLAN-ID-OTHER-OBJECT",
            "metadata.id names an object of another kind or owner",
            "Id 7 is IdpJwtConfig initech/partner, and an object cannot move. Correct the id, or "
            "leave metadata.id out to make a new object.",
            5,
            id="the id of another organization's object",
        ),
        pytest.param(
            declared(a_ref(project="blog"), source=SOURCE),
            [],
            "REF-NOT-HELD",
            "Project acme/blog is neither declared nor held",
            "Add a manifest for Project acme/blog, or correct the name (metadata.project).",
            7,
            id="a project that is nowhere",
        ),
        pytest.param(
            declared(a_ref(Kind.ACTION, "greet", "initech"), source=SOURCE),
            [],
            "REF-NOT-HELD",
            "Organization initech is neither declared nor held",
            "Add a manifest for Organization initech, or correct the name "
            "(metadata.organization).",
            1,
            id="an organization that is nowhere",
        ),
        pytest.param(
            declared(project_ref("acme", "Blog"), source=SOURCE),
            [held(project_ref("acme", "blog"))],
            "PLAN-NOT-RENAMABLE",
            "projects are not renamed",
            "The service holds it as 'blog': write that name in the manifests.",
            6,
            id="a project under another case of its name",
        ),
        pytest.param(
            declared(project_ref("acme", "news"), pinned_id="7", source=SOURCE),
            [held(project_ref("acme", "blog"), object_id="7")],
            "PLAN-NOT-RENAMABLE",
            "projects are not renamed",
            "The service holds it as 'blog': write that name in the manifests.",
            6,
            id="a project pinned to be renamed",
        ),
        pytest.param(
            declared(organization_ref("Initech"), source=SOURCE),
            [held(organization_ref("initech"))],
            "PLAN-NOT-RENAMABLE",
            "organizations are not renamed",
            "The service holds it as 'initech': write that name in the manifests.",
            6,
            id="an organization under another case of its name",
        ),
    ],
)  # fmt: skip
def test_a_manifest_that_contradicts_what_is_held_is_told_where_and_what_to_write(
    resource: Resource, objects: Sequence[ObservedObject], code: str, summary: str, remedy: str,
    line: int,
) -> None:  # fmt: skip
    """Only a plan can see these, so the plan must say them as well as validate says its own."""
    matching = match(desired(*OWNERS, resource), observed(*HOUSE, *objects))

    assert matching.findings == [
        error(code, summary, remedy, SourceLocation("shop.yaml", line, 3), resource.ref)
    ]


@pytest.mark.parametrize(
    ("resources", "objects"),
    [
        pytest.param([*OWNERS, declared(WEB)], [], id="declared beside it"),
        pytest.param([declared(WEB)], HOUSE, id="held already"),
        pytest.param(
            [declared(a_ref(organization="ACME", project="Shop"))], HOUSE, id="held, ignoring case"
        ),
    ],
)
def test_an_owner_may_be_declared_or_held(
    resources: Sequence[Resource], objects: Sequence[ObservedObject]
) -> None:
    """A team may keep its projects in another tree."""
    assert match(desired(*resources), observed(*objects)).findings == []
