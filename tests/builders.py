"""Resources, objects and states, sound by default: a test states its subject alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.diagnostics import SourceLocation
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope
from reconciler.plan.planner import build_plan
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind, ResourceRef, organization_ref, owner_of, project_ref
from reconciler.state import DesiredState, ObservedObject, ObservedState, Resource

BASIC = "OIDC_AUTH_METHOD_TYPE_BASIC"
NONE = "OIDC_AUTH_METHOD_TYPE_NONE"
TREE = "default"


def an_application(**spec: Any) -> dict[str, Any]:
    """Return what a manifest says of a web application, which has a client secret."""
    return {"redirectUris": ["https://shop.example.com/callback"], **spec}


def a_public_application(**spec: Any) -> dict[str, Any]:
    """Return what a manifest says of an application without a client secret."""
    return an_application(authMethodType=NONE, **spec)


def an_action(**spec: Any) -> dict[str, Any]:
    """Return what a manifest says of an action."""
    return {"script": "function greet(ctx, api) {\n  return 1;\n}\n", **spec}


def a_jwt_config(**spec: Any) -> dict[str, Any]:
    """Return what a manifest says of a JWT identity provider."""
    return {
        "jwtEndpoint": "https://login.example.com/jwt",
        "issuer": "https://login.example.com",
        "keysEndpoint": "https://login.example.com/keys",
        "headerName": "x-token",
        **spec,
    }


_SAID = {
    Kind.OIDC_APPLICATION: an_application,
    Kind.ACTION: an_action,
    Kind.IDP_JWT_CONFIG: a_jwt_config,
}


def a_ref(
    kind: Kind = Kind.OIDC_APPLICATION,
    name: str = "storefront",
    organization: str = "acme",
    project: str = "shop",
) -> ResourceRef:
    """Return a ref; kinds without a project take no notice of it."""
    if kind is Kind.ORGANIZATION:
        return organization_ref(organization)
    return ResourceRef(kind, organization, project if kind is Kind.OIDC_APPLICATION else "", name)


ACME = organization_ref("acme")
SHOP = project_ref("acme", "shop")
WEB = a_ref()
GREET = a_ref(Kind.ACTION, "greet")
PARTNER = a_ref(Kind.IDP_JWT_CONFIG, "partner")


@dataclass(frozen=True)
class FakeSource:
    """A place for every value: the line of a path is told by a table, and is 1 otherwise."""

    file: str = "shop.yaml"
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict, hash=False)

    def place(self, *path: str | int) -> SourceLocation:
        """Return the place of a path."""
        return SourceLocation(self.file, self.lines.get(path, 1), 1 + len(path))


def declared(
    ref: ResourceRef = WEB,
    said: Mapping[str, Any] | None = None,
    *,
    pinned_id: str = "",
    prevent_delete: bool = False,
    source: FakeSource | None = None,
) -> Resource:
    """Return a resource as judging leaves it: complete, and knowing what its manifest says."""
    said = _said(ref.kind, said)
    return Resource(
        ref=ref,
        spec=normal_form(ref.kind, said),
        written=frozenset(said),
        source=source or FakeSource(),
        pinned_id=pinned_id,
        prevent_delete=prevent_delete,
    )


def held(
    ref: ResourceRef = WEB,
    said: Mapping[str, Any] | None = None,
    *,
    object_id: str = "",
    trees: Iterable[str] = (TREE,),
    prevent_delete: bool | None = False,
    **more: Any,
) -> ObservedObject:
    """Return an object as the service lists it, at sequence 1 unless told otherwise."""
    project = owner_of(ref) if ref.kind is Kind.OIDC_APPLICATION else None
    fields: dict[str, Any] = {
        "sequence": 1,
        "organization_id": id_of(organization_ref(ref.organization)),
        "project_id": id_of(project) if project else "",
        "client_id": f"{object_id or id_of(ref)}@shop" if project else "",
        **more,
    }
    return ObservedObject(
        ref=ref,
        id=object_id or id_of(ref),
        spec=normal_form(ref.kind, _said(ref.kind, said)),
        trees=frozenset(trees),
        prevent_delete=prevent_delete,
        **fields,
    )


def id_of(ref: ResourceRef) -> str:
    """Return the id that an object has unless a test gives it another."""
    return "-".join([ref.kind.value[:3].lower(), *ref.key[2:]])


def _said(kind: Kind, said: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return said if said is not None else _SAID.get(kind, dict)()


def desired(
    *resources: Resource, organizations: Iterable[str] | None = None, whole: bool = True
) -> DesiredState:
    """Return everything declared; its scope is what it names, unless it is told."""
    named = {resource.ref.organization for resource in resources}
    return DesiredState(
        {resource.ref.key: resource for resource in resources},
        tuple(sorted(named if organizations is None else organizations)),
        whole,
    )


def observed(
    *objects: ObservedObject, instance: str = "instance-1", incomplete: tuple[str, ...] = ()
) -> ObservedState:
    """Return everything held."""
    return ObservedState(instance, {found.ref.key: found for found in objects}, incomplete)


HOUSE = (held(ACME), held(SHOP))
"""What most tests take for granted: the organization acme and its project shop, both held."""

OWNERS = (declared(ACME), declared(SHOP))
"""The same two, declared."""


def plan_of(
    resources: Iterable[Resource],
    objects: Iterable[ObservedObject] = (),
    scope: Scope | None = None,
    allowed: Allowances | None = None,
) -> Plan:
    """Return the plan for these resources and objects, in a house that is in step."""
    return build_plan(desired(*OWNERS, *resources), observed(*HOUSE, *objects), scope, allowed)


def a_plan(*changes: Any, **fields: Any) -> Plan:
    """Return the plan with these changes, in a house that is in step."""
    return Plan(
        **{
            "scope": Scope(),
            "instance": "instance-1",
            "organizations": ("acme",),
            "changes": changes,
            "in_step": (ACME, SHOP),
            **fields,
        }
    )
