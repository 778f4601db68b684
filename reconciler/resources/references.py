"""The resources that a resource names: in its fields, and its owner by its metadata."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconciler.kinds.fields import KINDS
from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind, ResourceRef, owner_of

_NAMING: Mapping[Kind, Sequence[tuple[str, Kind]]] = {
    kind: [(field.name, field.refers) for field in row.fields if field.refers]
    for kind, row in KINDS.items()
}

REFERRED: Mapping[Kind, Kind] = {
    kind: referred for kind, fields in _NAMING.items() for _, referred in fields
}
"""The kinds whose resources name others, each with the kind of those."""


def references(ref: ResourceRef, spec: Spec) -> Iterator[tuple[ResourceRef, tuple[str, str, int]]]:
    """Yield each resource that one names in its fields, with the path of the name."""
    for field, kind in _NAMING[ref.kind]:
        for position, name in enumerate(spec.get(field, ())):
            yield ResourceRef(kind, ref.organization, "", name), ("spec", field, position)


def needs(ref: ResourceRef, spec: Spec) -> Iterator[tuple[ResourceRef, tuple[str | int, ...]]]:
    """Yield each resource that must be held before one, with the path of its name in a manifest.

    That is its owner, and what its fields name.
    """
    owner = owner_of(ref)
    if owner is not None:
        yield owner, ("metadata", owner.kind.lower())
    yield from references(ref, spec)
