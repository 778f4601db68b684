"""Declared resources paired with held objects: by pinned id, otherwise by name.

Errors in the manifests that only show beside what is held are found on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from reconciler.diagnostics import Diagnostic, error
from reconciler.kinds.fields import KINDS
from reconciler.kinds.rules import RULES
from reconciler.plan.model import Pair
from reconciler.plan.references import compared_by_names, not_held
from reconciler.resources.nearest import near_refs
from reconciler.resources.ref import ResourceRef, owner_of
from reconciler.resources.references import needs
from reconciler.state import (
    DesiredState,
    ObservedObject,
    ObservedState,
    Resource,
    completed,
    left_to_others,
)


@dataclass(frozen=True, slots=True)
class Matching:
    """Declared and held, side by side.

    Attributes:
        pairs: Every declared resource with the object it is, or None.
        leftover: What is held and declared nowhere.
        findings: Errors in the manifests that only show beside what is held.
    """

    pairs: Sequence[Pair]
    leftover: Sequence[ObservedObject]
    findings: Sequence[Diagnostic]


def match(desired: DesiredState, observed: ObservedState, environment: str = "") -> Matching:
    """Pair declared resources with held objects; no object is in two pairs.

    Findings on ids name the environment, because each environment has ids of its own.
    """
    pinned, findings = _match_pinned(desired, observed, environment)
    taken = {held.id for held in pinned.values()}
    pairs: list[Pair] = []
    for key, resource in desired.resources.items():
        held = pinned.get(key)
        if held is None and not resource.pinned_id:
            named = observed.objects.get(key)
            held = None if named is None or named.id in taken else named
        if held is not None:
            taken.add(held.id)
        pairs.append((resource, held))
    findings += _missing_owners(desired, observed)
    findings += _wrong_renames(pairs)
    findings += _not_deactivatable(pairs, observed)
    leftover = [held for held in observed.everything if held.id not in taken]
    compared = map(_without_ignored, compared_by_names(pairs, leftover))
    return Matching([*compared], leftover, findings)


def _without_ignored(pair: Pair) -> Pair:
    """Return a pair that does not differ in ignored fields: those declared are for a new object."""
    resource, held = pair
    if held is None or not left_to_others(resource):
        return pair
    return completed(resource, held), held


def deleted_beside_new(
    pairs: Sequence[Pair], deleted: Sequence[ObservedObject], tree: str
) -> list[ObservedObject]:
    """Return what is deleted where one of its kind is created, of the kinds that have clients.

    A created one may be the same object under a name that it had before; only its history shows
    that. What others than the tree changed last comes first.
    """
    places = {resource.ref.key[:3] for resource, held in pairs if held is None}
    found = [
        held
        for held in deleted
        if KINDS[held.ref.kind].secrets is not None and held.ref.key[:3] in places
    ]
    return sorted(found, key=lambda held: (held.changed_in == tree, held.ref.key, held.id))


def taken_names(matching: Matching, kept: Sequence[ObservedObject]) -> list[Diagnostic]:
    """Return an error for each pinned resource whose name an object that stays already has."""
    names = {held.ref.key: held for held in kept}
    if not names:
        return []
    return [
        error(
            "PLAN-NAME-TAKEN",
            "another object has the name",
            f"{holder.ref} is the object of id {holder.id}, which is declared nowhere. Choose "
            "another name, or declare that object under another one.",
            resource.source.place("metadata", "name"),
            resource.ref,
        )
        for resource, held in matching.pairs
        if (holder := names.get(resource.ref.key))
        and (held is None or held.ref.key != resource.ref.key)
    ]


def _match_pinned(
    desired: DesiredState, observed: ObservedState, environment: str
) -> tuple[Mapping[ResourceRef, ObservedObject], list[Diagnostic]]:
    pins = {key: resource for key, resource in desired.resources.items() if resource.pinned_id}
    by_id = {held.id: held for held in observed.everything} if pins else {}
    found: dict[ResourceRef, ObservedObject] = {}
    findings: list[Diagnostic] = []
    for key, resource in pins.items():
        held = by_id.get(resource.pinned_id)
        kind, owner = key.kind, owner_of(key)
        if held is not None and (held.ref.kind, owner_of(held.ref.key)) == (kind, owner):
            found[key] = held
        else:
            findings.append(_wrong_pin(resource, held, environment))
    return found, findings


def _wrong_pin(resource: Resource, held: ObservedObject | None, environment: str) -> Diagnostic:
    place = resource.source.place("metadata", "id")
    if held is None:
        service = "The service"
        remedy = "Take the id from the service, or leave metadata.id out to make a new object."
        if environment:
            service += f" of environment {environment}"
            remedy = (
                "Each environment has ids of its own: write that of this one into its overlay, or "
                "as a variable. Leave metadata.id out only to make a new object."
            )
        return error(
            "PLAN-ID-NOT-HELD",
            "metadata.id names no object of this organization",
            f"{service} holds nothing under id {resource.pinned_id} in "
            f"{resource.ref.organization}. {remedy}",
            place,
            resource.ref,
        )
    return error(
        "PLAN-ID-OTHER-OBJECT",
        "metadata.id names an object of another kind or owner",
        f"Id {held.id} is {held.ref}, and an object cannot move. Correct the id, or leave "
        "metadata.id out to make a new object.",
        place,
        resource.ref,
    )


def _missing_owners(desired: DesiredState, observed: ObservedState) -> list[Diagnostic]:
    # Resources of one kind in one place have the same owner, which is looked up once.
    places = {key[:3]: key for key in desired.resources}
    gone = {
        place
        for place, key in places.items()
        if (owner := owner_of(key))
        and owner not in desired.resources
        and owner not in observed.objects
    }
    if not gone:
        return []
    declared = (resource.ref for resource in desired.resources.values())
    near = near_refs(chain(declared, (held.ref for held in observed.objects.values())))
    return [
        not_held(resource, owner, path, near(owner))
        for key, resource in desired.resources.items()
        if key[:3] in gone
        for owner, path in needs(resource.ref, {})
    ]


def _wrong_renames(pairs: Sequence[Pair]) -> Iterator[Diagnostic]:
    for resource, held in pairs:
        kind = resource.ref.kind
        if held is None or held.ref.name == resource.ref.name or KINDS[kind].renamable:
            continue
        yield error(
            "PLAN-NOT-RENAMABLE",
            f"{kind.value.lower()}s are not renamed",
            f"The service holds it as {held.ref.name!r}: write that name in the manifests.",
            resource.source.place("metadata", "name"),
            resource.ref,
        )


def _not_deactivatable(pairs: Sequence[Pair], observed: ObservedState) -> Iterator[Diagnostic]:
    for resource, held in pairs:
        if resource.active is not False or (held is not None and not held.active):
            continue
        kind = resource.ref.kind
        is_able = kind not in observed.only_active if held is None else held.can_be_inactive
        if not is_able:
            yield error(
                "PLAN-NOT-DEACTIVATABLE",
                "the service cannot deactivate the object",
                f"{RULES[kind].stays_active} Leave metadata.active out, or remove {resource.ref} "
                "instead.",
                resource.source.place("metadata", "active"),
                resource.ref,
            )
