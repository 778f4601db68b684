"""build_plan decides. It is tested on values alone: there is nothing to fake."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.diagnostics import SourceLocation, error, warning
from reconciler.errors import InvalidManifestsError
from reconciler.plan.diff import field_changes
from reconciler.plan.guards import Allowances
from reconciler.plan.matching import match
from reconciler.plan.model import (
    Adopt,
    Change,
    Create,
    Delete,
    IgnoredField,
    Plan,
    Scope,
    Summary,
    Unmanaged,
    Update,
    makes_secret,
    ref_of,
    word,
)
from reconciler.plan.ordering import batches, in_order
from reconciler.plan.ownership import flag_to_delete
from reconciler.plan.planner import build_plan, compare
from reconciler.resources.capabilities import uses
from reconciler.resources.ref import Kind, ResourceRef, fold, owner_of, project_ref
from reconciler.state import Need, ObservedObject, Resource
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
    a_jwt_config,
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
from tests.rows import each_row


def test_an_empty_service_is_filled_owners_first() -> None:
    """The first apply of a tree."""
    partner = declared(PARTNER, a_jwt_config(audience="us"))
    resources = [declared(WEB), declared(GREET), partner, *OWNERS]

    new = replace(observed(instance=""), new_store="/srv/identity.db")

    plan = build_plan(desired(*resources), new)

    changes = [declared(ACME), declared(SHOP), declared(GREET), partner, declared(WEB)]
    assert plan == Plan(
        Scope(), "", ("acme",), tuple(map(Create, changes)), new_store=new.new_store
    )


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


@each_row(
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


@each_row(
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


def test_ids_of_builders_are_of_one_object_each() -> None:
    """The tests above tell objects apart by them."""
    refs = [ACME, SHOP, WEB, GREET, PARTNER, a_ref(project="blog")]

    assert len({id_of(ref) for ref in refs}) == len(refs)


def test_an_update_sends_kept_fields_that_the_manifest_leaves_out_as_they_are_held() -> None:
    found = held(GREET, an_action(timeout="1s", allowedToFail=True))
    said = replace(
        declared(GREET), spec={"script": found.spec["script"], "timeout": "2s"}, written=frozenset()
    )

    (change,) = plan_of([said], [found]).changes

    assert isinstance(change, Update)
    assert change.resource.spec == {**found.spec, "timeout": "2s"}
    assert [field.name for field in field_changes(change)] == ["timeout"]


ENVIRONMENTS = ("staging", "production")


def compared(one: list[Resource], other: list[Resource]) -> Plan:
    return compare(desired(*one), desired(*other), ENVIRONMENTS)


def test_what_only_one_declares_is_told_as_a_create_or_a_delete() -> None:
    """Organizations and projects too, which a plan never deletes."""
    plan = compared(
        [declared(ACME), declared(SHOP)], [declared(ACME), declared(GREET, an_action())]
    )

    assert [(word(change), ref_of(change)) for change in plan.changes] == [
        ("create", GREET),
        ("delete", SHOP),
    ]
    assert (plan.in_step, plan.compared_with, plan.scope.environment) == ((ACME,), *ENVIRONMENTS)
    assert plan.scope.tree == ""  # two trees, which may have other names
    # Nothing is of a service: the objects of the first body have no ids, events or owners.
    held_shop = ObservedObject(SHOP, "", 0, declared(SHOP).spec, "", prevent_delete=False)
    assert plan.changes[1] == Delete(replace(held_shop, critical=False, ignored=frozenset()))
    assert (plan.instance, plan.organizations) == ("", ("acme",))


def test_the_protection_of_an_object_is_compared_and_what_follows_a_new_object_too() -> None:
    """A create before it hides nothing."""
    marked = declared(SHOP, prevent_delete=True)
    one, other = [marked, declared(WEB)], [declared(GREET, an_action()), marked, declared(WEB)]

    plan = compared(one, [*other[:2], declared(WEB, prevent_delete=True)])

    assert [(word(change), ref_of(change)) for change in plan.changes] == [
        ("create", GREET),
        ("update", WEB),
    ]
    assert plan.in_step == (SHOP,)
    (field,) = field_changes(plan.changes[1])
    assert (field.name, field.before, field.after) == ("metadata.preventDelete", False, True)


LOGIN: dict[str, Any] = {"loginVersion": {"loginV1": {}}}
NO_HEADER = {"headerName": ""}


@pytest.mark.parametrize(
    ("ref", "said", "capabilities", "keeps_history", "title"),
    [
        pytest.param(WEB, LOGIN, "source", True, "this project's own service", id="ours"),
        pytest.param(WEB, LOGIN, "source", False, "this old ZITADEL", id="an old ZITADEL"),
        pytest.param(WEB, LOGIN, "zitadel-4", False, None, id="a ZITADEL that takes it"),
        pytest.param(PARTNER, NO_HEADER, "source", True, None, id="ours takes an empty text"),
        pytest.param(PARTNER, NO_HEADER, "source", False, "this old ZITADEL", id="it does not"),
    ],
)
def test_what_the_service_does_not_take_is_refused_by_its_name(
    ref: ResourceRef,
    said: dict[str, Any],
    capabilities: str,
    title: str | None,
    *,
    keeps_history: bool,
) -> None:
    """The manifest may be meant for another one."""
    place = SourceLocation("shop.yaml", 4, 2)
    [use] = uses(ref.kind, said)
    need = Need(ref, place, use)
    wanted = replace(desired(*OWNERS), needs=(need,))
    state = replace(observed(*HOUSE), capabilities=capabilities, keeps_history=keeps_history)

    if title is None:
        assert build_plan(wanted, state).changes == ()
        return
    with pytest.raises(InvalidManifestsError) as refused:
        build_plan(wanted, state)
    (finding,) = refused.value.diagnostics
    assert (finding.location, finding.ref) == (place, ref)
    assert title in finding.summary + finding.remedy


@pytest.mark.parametrize(
    ("scope", "whole", "count"),
    [
        pytest.param(Scope(), True, 2, id="the whole tree"),
        pytest.param(Scope(), False, 0, id="a part of it"),
        pytest.param(Scope("other"), True, 1, id="another tree"),
    ],
)
def test_secrets_that_are_owed_where_nothing_is_declared_any_more_are_counted(
    scope: Scope, count: int, *, whole: bool
) -> None:
    """Nobody else would deliver them."""
    left = {"initech": {"default": 2, "other": 1}}
    state = replace(observed(*HOUSE), owed_left=left)

    assert build_plan(desired(*OWNERS, whole=whole), state, scope).owed_left == count


def test_a_difference_has_both_values_and_no_reset() -> None:
    """That a manifest does not say a field is nothing that a full update takes back here."""
    plan = compared([declared(WEB, {"devMode": True})], [declared(WEB, {"appType": "WEB"})])

    (field,) = field_changes(plan.changes[0])
    assert (field.name, field.before, field.after, field.reset) == ("devMode", True, False, False)


def test_a_kept_field_that_only_one_says_is_a_difference() -> None:
    """Neither body is a service, which has a value of the other one's."""
    whole = declared(GREET, an_action())
    part = replace(whole, spec={**an_action(), "timeout": whole.spec["timeout"]})

    for one, other, values in ((whole, part, (False, None)), (part, whole, (None, False))):
        (change,) = compared([one], [other]).changes
        (field,) = field_changes(change)
        assert (field.name, field.before, field.after) == ("allowedToFail", *values)
        assert not field.reset


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"said": {"appType": "WEB"}}, {"said": {"appType": "OIDC_APP_TYPE_WEB"}}),
        ({"said": {"devMode": False}}, {"said": {}}),
        ({"pinned_id": "7"}, {"pinned_id": "8"}),
    ],
)
def test_what_means_the_same_is_no_difference(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Each service has ids of its own."""
    plan = compared([declared(WEB, **one)], [declared(WEB, **other)])

    assert plan.changes == ()
    assert plan.in_step == (WEB,)


def test_a_mark_and_the_case_of_a_name_are_differences() -> None:
    other = declared(WEB._replace(name="Storefront"), critical=True)
    (change,) = compared([declared(WEB)], [other]).changes

    assert [(each.name, each.after) for each in field_changes(change)] == [
        ("metadata.name", "Storefront"),
        ("metadata.critical", True),
    ]


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        (None, False, (True, False)),
        (False, None, (False, True)),
        (None, True, ()),
        (True, None, ()),
        (False, False, ()),
    ],
)
def test_a_new_object_is_active_unless_a_manifest_says_otherwise(
    values: tuple[bool, ...], *, one: bool | None, other: bool | None
) -> None:
    """There is no service whose state could be left as it is."""
    changes = compared(
        [replace(declared(WEB), active=one)], [replace(declared(WEB), active=other)]
    ).changes

    fields = [field for change in changes for field in field_changes(change)]
    assert [(field.name, field.before, field.after) for field in fields] == (
        [("metadata.active", *values)] if values else []
    )


# Properties.

SOME_NAMES = ("a", "b", "c")


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
        ref = a_ref(kind, draw(st.sampled_from([*SOME_NAMES, "A", "B"])))
        trees = draw(st.sampled_from([(), ("default",), ("other",), ("default", "other")]))
        objects[ref.key] = held(ref, draw(st.sampled_from(SPECS[kind])), trees=trees)
    resources: dict[ResourceRef, Resource] = {}
    pins: set[str] = set()
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(KINDS)
        ref = a_ref(kind, draw(st.sampled_from(SOME_NAMES)))
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


@settings(max_examples=cases(25), deadline=None)
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


@settings(max_examples=cases(25), deadline=None)
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


ORIGINS = ["https://theirs.example.com"]


def test_an_ignored_field_is_no_difference_and_is_listed() -> None:
    """A value that a manifest declares is for a new object only, which leaves none to others."""
    wanted = replace(declared(WEB), ignored=frozenset({"additionalOrigins"}))
    found = held(WEB, an_application(additionalOrigins=ORIGINS), ignored=wanted.ignored)
    new = replace(wanted, ref=a_ref(name="new"))

    plan = plan_of([wanted, new], [found])

    assert (plan.changes, plan.in_step) == ((Create(new),), (WEB, ACME, SHOP))
    assert plan.ignored == (IgnoredField(WEB, "additionalOrigins", [], ORIGINS),)


def test_what_the_ignored_value_brings_with_it_is_nobodys_difference() -> None:
    """An emptied list that a ZITADEL keeps, and a secret that is lacking, are theirs as well."""
    wanted = replace(
        declared(WEB, an_application(devMode=True)),
        ignored=frozenset({"authMethodType", "additionalOrigins"}),
    )
    found = held(
        WEB,
        an_application(additionalOrigins=ORIGINS, authMethodType="OIDC_AUTH_METHOD_TYPE_POST"),
        ignored=wanted.ignored,
        has_secret=False,
    )

    house = replace(observed(*HOUSE, found), generation=4)
    (change,) = build_plan(desired(*OWNERS, wanted), house).changes

    assert [field.name for field in field_changes(change)] == ["devMode"]
    assert isinstance(change, Update)
    assert change.resource.spec == {**found.spec, "devMode": True}
    assert not change.kept
    assert not makes_secret(change)


def test_a_field_that_is_no_longer_ignored_is_compared_again() -> None:
    found = held(
        WEB, an_application(additionalOrigins=ORIGINS), ignored=frozenset({"additionalOrigins"})
    )

    (change,) = plan_of([declared(WEB)], [found]).changes

    assert [(each.name, each.before, each.after) for each in field_changes(change)] == [
        ("metadata.ignore", ["additionalOrigins"], []),
        ("additionalOrigins", ORIGINS, []),
    ]


def test_a_service_that_keeps_no_marks_shows_none() -> None:
    wanted = replace(declared(WEB), ignored=frozenset({"devMode"}))

    assert plan_of([wanted], [held(WEB, ignored=None)]).changes == ()
