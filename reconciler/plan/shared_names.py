"""The guard of names that several held objects have; some services do not keep names unique.

An id in the manifest says which object a resource is. What refers to the resource, a flow to its
actions and everything to its owner, has only the name: there an id does not help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from reconciler.diagnostics import Diagnostic, error
from reconciler.resources.ref import ResourceRef, owner_of
from reconciler.resources.references import references
from reconciler.state import DesiredState, ObservedState, Resource

_Path: TypeAlias = tuple[str | int, ...]
_Mention: TypeAlias = tuple[Resource, ResourceRef, _Path]
"""A resource that refers to another object, and the path of that name in its manifest."""


def same_names(desired: DesiredState, observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield one error for each name that is declared or mentioned and that several objects have."""
    if not observed.name_clashes:
        return
    shared: dict[ResourceRef, list[str]] = {}
    for clash in observed.name_clashes:
        first = observed.objects[clash.ref.key]
        shared.setdefault(clash.ref.key, [first.id]).append(clash.id)
    mentions = _mentions(desired, shared)
    for key, ids in shared.items():
        resource = desired.resources.get(key)
        if resource is not None and not resource.pinned_id:
            yield error(
                "GUARD-SAME-NAME",
                "the service holds several objects of one name",
                f"{resource.ref} could be id {' or id '.join(ids)}. Write the one that is meant "
                "as metadata.id in the manifest.",
                resource.source.place("metadata", "name"),
                resource.ref,
            )
        elif key in mentions:
            yield _mentioned(*mentions[key], ids)


def _mentions(
    desired: DesiredState, shared: Mapping[ResourceRef, Sequence[str]]
) -> Mapping[ResourceRef, _Mention]:
    """Return the first mention of each shared name, by its key."""
    found: dict[ResourceRef, _Mention] = {}
    for resource in desired.resources.values():
        for ref, path in _named_by(resource):
            if ref.key in shared:
                found.setdefault(ref.key, (resource, ref, path))
    return found


def _named_by(resource: Resource) -> Iterator[tuple[ResourceRef, _Path]]:
    owner = owner_of(resource.ref)
    if owner is not None:
        yield owner, ("metadata", owner.kind.value.lower())
    yield from references(resource.ref, resource.spec)


def _mentioned(resource: Resource, ref: ResourceRef, path: _Path, ids: Sequence[str]) -> Diagnostic:
    return error(
        "GUARD-SAME-NAME",
        "the service holds several objects of one name",
        f"{resource.ref} refers to {ref}, which could be id {' or id '.join(ids)}: metadata.id "
        "does not decide it there. Give all but one of them another name, then plan again.",
        resource.source.place(*path),
        resource.ref,
    )
