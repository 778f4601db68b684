"""The guard of names that several held objects have; some services do not keep names unique.

An id in the manifest says which object a resource is. What refers to the resource, a flow to its
actions and everything to its owner, has only the name: there an id does not help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reconciler.diagnostics import Diagnostic, error
from reconciler.resources.ref import ResourceRef, owner_of
from reconciler.resources.references import references
from reconciler.state import DesiredState, ObservedState, Resource


class _Mention(NamedTuple):
    """A resource that refers to another object, and the path of that name in its manifest."""

    resource: Resource
    ref: ResourceRef
    path: tuple[str | int, ...]


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
            yield _mentioned(mentions[key], ids)


def _mentions(
    desired: DesiredState, shared: Mapping[ResourceRef, Sequence[str]]
) -> Mapping[ResourceRef, _Mention]:
    """Return the first mention of each shared name, by its key."""
    found: dict[ResourceRef, _Mention] = {}
    for resource in desired.resources.values():
        for mention in _of(resource):
            if mention.ref.key in shared:
                found.setdefault(mention.ref.key, mention)
    return found


def _of(resource: Resource) -> Iterator[_Mention]:
    owner = owner_of(resource.ref)
    if owner is not None:
        yield _Mention(resource, owner, ("metadata", owner.kind.value.lower()))
    for ref, path in references(resource.ref, resource.spec):
        yield _Mention(resource, ref, path)


def _mentioned(mention: _Mention, ids: Sequence[str]) -> Diagnostic:
    resource, ref, path = mention
    return error(
        "GUARD-SAME-NAME",
        "the service holds several objects of one name",
        f"{resource.ref} refers to {ref}, which could be id {' or id '.join(ids)}: metadata.id "
        "does not decide it there. Give all but one of them another name, then plan again.",
        resource.source.place(*path),
        resource.ref,
    )
