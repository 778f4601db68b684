"""build_plan decides. It is tested on values alone: there is nothing to fake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import SourceLocation, error
from reconciler.errors import InvalidManifestsError
from reconciler.plan.diff import field_changes
from reconciler.plan.model import (
    Adopt,
    Create,
    Delete,
    Plan,
    Scope,
    Summary,
    Unmanaged,
    Update,
)
from reconciler.plan.ownership import flag_to_delete
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import ResourceRef
from reconciler.state import ObservedObject, Resource
from tests.builders import (
    ACME,
    GREET,
    HOUSE,
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


def test_an_empty_service_is_filled_owners_first() -> None:
    """The first apply of a tree."""
    partner = declared(PARTNER, a_jwt_config(audience="us"))
    resources = [declared(WEB), declared(GREET), partner, *OWNERS]

    plan = build_plan(desired(*resources), observed(instance=""))

    changes = [declared(ACME), declared(SHOP), declared(GREET), partner, declared(WEB)]
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
