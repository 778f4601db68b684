"""What is declared and what is held, paired; and manifests that contradict what is held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.diagnostics import SourceLocation, error
from reconciler.errors import InvalidManifestsError
from reconciler.plan.diff import field_changes
from reconciler.plan.digest import declared_digest, plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.matching import match
from reconciler.plan.model import Scope, Update
from reconciler.plan.planner import build_plan
from reconciler.plan.risk import risks_of
from reconciler.resources.ref import Kind, ResourceRef, organization_ref, project_ref
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
    a_ref,
    declared,
    desired,
    held,
    observed,
)
from tests.rows import each_row

LINES: dict[tuple[str | int, ...], int] = {
    ("metadata", "id"): 5,
    ("metadata", "name"): 6,
    ("metadata", "project"): 7,
    ("metadata", "active"): 8,
}


SOURCE = FakeSource(lines=LINES)


OTHER = a_ref(name="other")


@each_row(
    ("resources", "objects", "pairs", "leftover"),
    [
        pytest.param([declared(WEB)], [], {WEB: ""}, [], id="nothing held"),
        pytest.param(
            [replace(declared(WEB), ignored=frozenset({"devMode"}))], [], {WEB: ""}, [],
            id="nothing held, and a field left to others",
        ),
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


@each_row(
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


def test_an_id_of_another_environment_is_told_where_it_belongs() -> None:
    """Without the id, the environment would get a second object, with a new client id."""
    resource = declared(WEB, pinned_id="7", source=SOURCE)

    (told,) = match(desired(*OWNERS, resource), observed(*HOUSE), "production").findings

    assert told.code == "PLAN-ID-NOT-HELD"
    assert told.remedy == (
        "The service of environment production holds nothing under id 7 in acme. Each environment "
        "has ids of its own: write that of this one into its overlay, or as a variable. Leave "
        "metadata.id out only to make a new object."
    )
    with pytest.raises(InvalidManifestsError) as refused:
        build_plan(desired(*OWNERS, resource), observed(*HOUSE), Scope(environment="production"))
    assert refused.value.diagnostics == (told,)


@pytest.mark.parametrize("is_held", [True, False], ids=["held", "declared"])
def test_an_owner_that_is_misspelt_is_told_with_the_one_that_is_meant(*, is_held: bool) -> None:
    """Whether that one is held or declared."""
    wrong = declared(a_ref(project="shopp"), source=SOURCE)
    resources, objects = ([wrong], HOUSE) if is_held else ([*OWNERS, wrong], ())

    (told,) = match(desired(*resources), observed(*objects)).findings
    assert told.remedy.startswith("Did you mean shop? Otherwise add a manifest for Project acme/")


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


def web(*, active: bool | None) -> Resource:
    """Declare an application with a state."""
    return replace(declared(WEB), active=active)


def test_an_inactive_object_is_a_note_and_no_change() -> None:
    """Declared without a state or not declared at all: it stays, and the plan stays empty."""
    plan = build_plan(desired(declared(WEB)), observed(*HOUSE, _off(held(WEB)), _off(held(GREET))))

    assert (plan.changes, plan.inactive) == ((), (GREET, WEB))
    as_said = build_plan(desired(web(active=False)), observed(*HOUSE, _off(held(WEB))))
    assert (as_said.changes, as_said.inactive) == ((), ())


def _off(one: ObservedObject) -> ObservedObject:
    return replace(one, active=False)


@pytest.mark.parametrize(
    ("wanted", "name"), [(True, "reactivated"), (False, "deactivated")], ids=["on", "off"]
)
def test_a_switch_is_a_field_and_a_risk(name: str, *, wanted: bool) -> None:
    """Each way has a class of its own, and a critical object is not switched by itself."""
    change = Update(web(active=wanted), replace(held(WEB), active=not wanted))

    (field,) = field_changes(change)
    assert (field.name, field.before, field.after) == ("metadata.active", not wanted, wanted)
    assert [risk.name for risk in risks_of(change)] == [name]

    critical = replace(change.resource, critical=True)
    there = observed(*HOUSE, replace(change.held, critical=True))
    blocked = build_plan(desired(critical), there).blocks
    assert [block.code for block in blocked] == ["GUARD-CRITICAL"]
    assert blocked[0].summary == f"a critical object would be {name}"
    allowed = Allowances(lockouts={WEB.address.lower(): WEB.address})
    assert build_plan(desired(critical), there, allowed=allowed).blocks == ()


def test_a_state_that_is_not_said_leaves_digests_as_they_were() -> None:
    """Plans that were approved before there were states stay approved."""
    changed = declared(WEB)
    before = held(WEB, {**held(WEB).spec, "devMode": True})

    active, inactive = (
        build_plan(desired(changed), observed(*HOUSE, one)) for one in (before, _off(before))
    )
    assert plan_digest(active) == plan_digest(inactive)
    said = {declared_digest(desired(web(active=active))) for active in (None, True, False)}
    assert len(said) == 3
    assert len({plan_digest(build_plan(desired(web(active=one)), observed(*HOUSE, before)))
                for one in (None, True, False)}) == 3  # fmt: skip


@pytest.mark.parametrize("is_held", [True, False], ids=["held", "new"])
def test_what_the_service_cannot_deactivate_is_refused(*, is_held: bool) -> None:
    """At its own place, before anything is written; to reactivate is always possible."""
    objects = [*HOUSE, held(OTHER)]
    objects += [replace(held(WEB), can_be_inactive=False)] if is_held else []
    there = replace(observed(*objects), only_active=frozenset({Kind.OIDC_APPLICATION}))

    with pytest.raises(InvalidManifestsError) as refused:
        build_plan(desired(declared(OTHER), replace(web(active=False), source=SOURCE)), there)
    (finding,) = refused.value.diagnostics
    assert finding == error(
        "PLAN-NOT-DEACTIVATABLE",
        "the service cannot deactivate the object",
        finding.remedy,
        SourceLocation("shop.yaml", 8, 3),
        WEB,
    )
    assert finding.remedy.endswith(f"Leave metadata.active out, or remove {WEB} instead.")
    assert match(desired(replace(declared(OTHER), active=False)), there).findings == []
    assert build_plan(desired(web(active=True)), there).blocks == ()


def test_of_what_an_organization_lacks_its_name_is_told_alone() -> None:
    """The actions of a flow are there as soon as the organization is the right one."""
    flow = declared(
        a_ref(Kind.ACTION_FLOW, "COMPLEMENT_TOKEN", "initech"), {"PRE_USERINFO_CREATION": ["greet"]}
    )

    found = match(desired(*OWNERS, flow), observed(*HOUSE)).findings

    assert [each.summary for each in found] == ["Organization initech is neither declared nor held"]
