"""The accepted part of a drift: for each declared object, the fields to write as they are held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reconciler.plan.diff import NAME, NEW, field_changes
from reconciler.plan.drift import Drift
from reconciler.plan.model import Update
from reconciler.resources.fields import SpecValue
from reconciler.resources.normal import TYPES
from reconciler.resources.ref import ResourceRef
from reconciler.state import DesiredState, ObservedObject, ObservedState, Resource, completed

MARKS = tuple(NEW)
"""The metadata that can be accepted, by the names that reports give it."""


class Wanted(NamedTuple):
    """An object that an operator asked to accept, or one of its fields."""

    ref: ResourceRef
    field: str = ""

    def __str__(self) -> str:
        """Return it as the command line reads it."""
        return f"{self.ref.address}.{self.field}" if self.field else self.ref.address


class Accepted(NamedTuple):
    """The accepted values of one object.

    Attributes:
        resource: As it is declared.
        fields: The held values, in normal form, by the names that reports give the fields.
        removed: Whether the service holds it no more, so that its document goes.
    """

    resource: Resource
    fields: Mapping[str, SpecValue]
    removed: bool = False


def accepted(
    drift: Drift, desired: DesiredState, observed: ObservedState, wanted: Sequence[Wanted]
) -> tuple[list[Accepted], list[Wanted]]:
    """Return what is accepted, and what was asked for and has no drift.

    Where nothing is asked for, that is everything that was changed on the service. What only may
    have been, because the service does not report who changed it, is accepted only by its name, and
    a field that only the manifests changed by its own.
    """
    found = {each.resource.ref.key: each for each in _drifted(drift, desired)}
    if not wanted:
        return list(found.values()), []
    held = _Held(observed)
    found |= {each.resource.ref.key: each for each in _untold(drift, desired, held)}
    taken: dict[ResourceRef, Accepted] = {}
    left = []
    for each in wanted:
        key, resource = each.ref.key, desired.resources[each.ref.key]
        has = found.get(key) or Accepted(resource, {})
        if each.field:
            fields = {**held.differing(resource), **has.fields}
            has = Accepted(resource, {n: fields[n] for n in fields if n == each.field})
        if has.fields or has.removed:
            before = taken.get(key, has)
            taken[key] = has._replace(fields={**before.fields, **has.fields})
        else:
            left.append(each)
    return list(taken.values()), left


class _Held:
    """The objects that are held, to look up by what declares them."""

    def __init__(self, observed: ObservedState) -> None:
        self._objects = observed.objects
        self._by_id = {held.id: held for held in observed.objects.values()}

    def object(self, resource: Resource) -> ObservedObject | None:
        """Return the object of a resource, or None."""
        return self._by_id.get(resource.pinned_id) or self._objects.get(resource.ref.key)

    def differing(self, resource: Resource) -> dict[str, SpecValue]:
        """Return the fields that are held otherwise than declared, as they are held."""
        held = self.object(resource)
        if held is None:
            return {}
        changes = field_changes(Update(completed(resource, held), held))
        return _writable(resource, {each.name: each.before for each in changes})


def _drifted(drift: Drift, desired: DesiredState) -> Iterator[Accepted]:
    for each in drift.objects:
        resource = desired.resources[each.ref.key]
        fields = _writable(resource, {field.name: field.after for field in each.fields})
        if each.removed or fields:
            yield Accepted(resource, fields, each.removed)


def _untold(drift: Drift, desired: DesiredState, held: _Held) -> Iterator[Accepted]:
    """Yield what differs and may have been changed on the service, or removed."""
    for ref in (*drift.untold, *drift.unjudged):
        resource = desired.resources.get(ref.key)
        if resource is None:
            continue
        if held.object(resource) is None:
            yield Accepted(resource, {}, removed=True)
        elif fields := held.differing(resource):
            yield Accepted(resource, fields)


def _writable(resource: Resource, fields: Mapping[str, SpecValue]) -> dict[str, SpecValue]:
    """Return the fields that a manifest can have: no owner, and no client secret."""
    names = {NAME, *MARKS, *TYPES[resource.ref.kind]}
    return {name: value for name, value in fields.items() if name in names}
