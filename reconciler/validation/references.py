"""Rules between manifests: every resource once, every id once, owners that exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.diagnostics import Diagnostic, SourceLocation, error, warning
from reconciler.resources.flows import named_actions
from reconciler.resources.nearest import NearOwners, nearest
from reconciler.resources.ref import ACTION, ACTION_FLOW, Kind, ResourceRef, fold, owner_of
from reconciler.state import DesiredState, Resource
from reconciler.validation.problem import cut


def unique_resources(
    resources: Iterable[Resource],
) -> tuple[dict[ResourceRef, Resource], list[Diagnostic]]:
    """Return resources by key, and a finding for each that is declared again."""
    by_key: dict[ResourceRef, Resource] = {}
    findings = []
    for resource in resources:
        first = by_key.setdefault(resource.ref.key, resource)
        if first is not resource:
            findings.append(_declared_twice(first, resource))
    return by_key, findings


def _declared_twice(first: Resource, again: Resource) -> Diagnostic:
    before = first.source.place("metadata", "name")
    if first.ref == again.ref:
        remedy = f"Remove one of the two; the first is at {before}."
    else:
        remedy = f"Names are unique ignoring case; {first.ref} is at {before}. Rename one."
    place = again.source.place("metadata", "name")
    return error("REF-DUPLICATE", f"{again.ref} is declared twice", remedy, place, again.ref)


def shared_ids(resources: Iterable[Resource]) -> Iterator[Diagnostic]:
    """Yield a finding for each pinned id that two resources claim."""
    claimed: dict[str, Resource] = {}
    for resource in resources:
        if not resource.pinned_id:
            continue
        first = claimed.setdefault(resource.pinned_id, resource)
        if first is not resource:
            before: SourceLocation = first.source.place("metadata", "id")
            yield error(
                "REF-DUPLICATE-ID",
                f"id {resource.pinned_id[:60]} is pinned twice",
                f"An object is one resource; {first.ref} pins the id at {before}.",
                resource.source.place("metadata", "id"),
                resource.ref,
            )


def scope(resources: Iterable[Resource]) -> tuple[str, ...]:
    """Return the names of the organizations declared or referred to, in their first spelling."""
    names: dict[str, str] = {}
    for organization in dict.fromkeys(resource.ref.organization for resource in resources):
        names.setdefault(fold(organization), organization)
    return tuple(sorted(names.values()))


def undeclared_owners(desired: DesiredState) -> Iterator[Diagnostic]:
    """Yield a finding for each organization or project that is referred to and not declared.

    Offline nobody can say whether the service holds it. A plan can, and leaves this out.
    """
    told: set[ResourceRef] = set()
    near = NearOwners(resource.ref for resource in desired.resources.values())
    for key, resource in desired.resources.items():
        owner = owner_of(key)
        if owner is not None and owner not in desired.resources and owner not in told:
            told.add(owner)
            yield _undeclared(resource, near.name_for(owner))


def undeclared_actions(desired: DesiredState) -> Iterator[Diagnostic]:
    """Yield a finding for each action that a flow names and no manifest declares."""
    told: set[ResourceRef] = set()
    for resource in desired.resources.values():
        if resource.ref.kind is not ACTION_FLOW:
            continue
        for action, path in named_actions(resource.ref, resource.spec):
            if action.key not in desired.resources and action.key not in told:
                told.add(action.key)
                yield _undeclared_action(resource, action, path, desired)


def _undeclared_action(
    resource: Resource, action: ResourceRef, path: tuple[str | int, ...], desired: DesiredState
) -> Diagnostic:
    known = (each.ref for each in desired.resources.values())
    meant = nearest(action.name, [ref.name for ref in known if _is_beside(ref, action)])
    hint = f"Did you mean {cut(meant)}? Otherwise the" if meant else "The"
    return warning(
        "REF-UNDECLARED",
        f"{action} is declared nowhere",
        f"{hint} service must hold it already: declare it, or correct the name.",
        resource.source.place(*path),
        resource.ref,
    )


def _is_beside(ref: ResourceRef, action: ResourceRef) -> bool:
    return ref.kind is ACTION and fold(ref.organization) == fold(action.organization)


def _undeclared(resource: Resource, meant: str | None) -> Diagnostic:
    field = "project" if resource.ref.kind is Kind.OIDC_APPLICATION else "organization"
    hint = f"Did you mean {cut(meant)}? Otherwise the" if meant else "The"
    return warning(
        "REF-UNDECLARED",
        f"{owner_of(resource.ref)} is declared nowhere",
        f"{hint} service must hold it already: declare it, or correct the name.",
        resource.source.place("metadata", field),
        resource.ref,
    )
