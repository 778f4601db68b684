"""Resources that name others, such as flows their actions: what is compared, missing or in danger.

A manifest has the names of others, and the service holds their ids. The names that others have
after the plan are compared: one that is renamed is no change of what refers to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from reconciler.diagnostics import Diagnostic, SourceLocation, error, warning
from reconciler.kinds.fields import KINDS
from reconciler.plan.model import (
    Change,
    Create,
    Delete,
    Pair,
    Scope,
    addresses_of,
    is_critical,
    ref_of,
    refs_of,
)
from reconciler.plan.risk import names_of, risks_of
from reconciler.resources.fields import Spec
from reconciler.resources.nearest import near_refs
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.resources.references import REFERRED, references
from reconciler.rules.form import break_glass
from reconciler.state import (
    DesiredState,
    ObservedObject,
    ObservedState,
    Resource,
    other_owner,
)

ReferringT = TypeVar("ReferringT", Resource, ObservedObject)
Names: TypeAlias = Mapping[ResourceRef, str]

_NAMED: Collection[Kind] = frozenset(REFERRED.values())


def needs_referring(desired: DesiredState, scope: Scope) -> bool:
    """Return whether a plan must know what is held and refers to others.

    A service may have to be asked for each. Without a declared one, and where nothing is deleted,
    a plan would only count them among the unmanaged.
    """
    is_declared = any(key.kind in REFERRED for key in desired.resources)
    return is_declared or scope.prune or scope.prune_unmanaged


def compared_by_names(pairs: Sequence[Pair], leftover: Iterable[ObservedObject]) -> Sequence[Pair]:
    """Return pairs in which each name of another is the one that it has after the plan.

    Args:
        pairs: Declared resources with what is held of them.
        leftover: Objects that are held and declared nowhere.
    """
    if not any(resource.ref.kind in REFERRED for resource, _ in pairs):
        return pairs
    named = [pair for pair in pairs if pair[0].ref.kind in _NAMED]
    others = [held for held in leftover if held.ref.kind in _NAMED]
    held_names = _held_names(named, others)
    wanted_names = {held.ref.key: held.ref.name for held in others}
    wanted_names |= {resource.ref.key: resource.ref.name for resource, _ in named}
    return [
        (renamed_in(resource, wanted_names), renamed_in(found, held_names) if found else None)
        if resource.ref.kind in REFERRED
        else (resource, found)
        for resource, found in pairs
    ]


def _held_names(named: Sequence[Pair], others: Sequence[ObservedObject]) -> Names:
    """Return the names that held objects have after the plan, by their present names.

    An object whose name is given to another one has no name that a manifest could mean.
    """
    names = {held.ref.key: resource.ref.name for resource, held in named if held is not None}
    given = {resource.ref.key for resource, _ in named}
    for held in others:
        is_given = held.ref.key in given
        names[held.ref.key] = f"{held.ref.name} (id {held.id})" if is_given else held.ref.name
    return names


def renamed_in(referring: ReferringT, names: Names) -> ReferringT:
    """Return what refers to others with the names that some of them have now, by their old ones."""
    return replace(referring, spec=_spec_with(names, referring.ref, referring.spec))


def _spec_with(names: Names, referring: ResourceRef, fields: Spec) -> Spec:
    spec = dict(fields)
    for ref, (_, field, position) in references(referring, fields):
        if names.get(ref.key, ref.name) != ref.name:
            spec[field] = [*spec[field]]
            spec[field][position] = names[ref.key]
    return spec


def missing_references(
    pairs: Sequence[Pair], kept: Sequence[ObservedObject], deleted: Sequence[ObservedObject]
) -> Iterator[Diagnostic]:
    """Yield an error for each name in a declared resource of what is not there after the plan.

    Args:
        pairs: Declared resources with what is held of them.
        kept: Objects that are declared nowhere and stay.
        deleted: Objects that are declared nowhere and that the plan deletes.
    """
    referring = [resource for resource, _ in pairs if resource.ref.kind in REFERRED]
    if not referring:
        return
    refs = [resource.ref for resource, _ in pairs]
    refs += [held.ref for held in kept]
    known = {ref.key: ref for ref in refs if ref.kind in _NAMED}
    doomed = {held.ref.key: held for held in deleted}
    renamed = {held.ref.key: resource.ref for resource, held in pairs if held is not None}
    near = near_refs(known.values())
    for resource in referring:
        for ref, path in references(resource.ref, resource.spec):
            if ref.key in known:
                continue
            place = resource.source.place(*path)
            if ref.key in doomed:
                yield _in_use(resource, doomed[ref.key], place)
            elif ref.key in renamed:
                yield _renamed(resource, ref, renamed[ref.key], place)
            else:
                yield not_held(resource, ref, path, near(ref))


def _in_use(referring: Resource, named: ObservedObject, place: SourceLocation) -> Diagnostic:
    row, other = KINDS[referring.ref.kind], KINDS[named.ref.kind]
    return error(
        "PLAN-ACTION-IN-USE",
        f"{other.one} would be deleted that {row.one} {row.verb}",
        f"No manifest declares {named.ref}, so this run would delete it. Declare the {other.noun}, "
        f"or take its name out of {referring.ref}.",
        place,
        referring.ref,
    )


def _renamed(
    referring: Resource, named: ResourceRef, now: ResourceRef, place: SourceLocation
) -> Diagnostic:
    """Return an error for the name that an object has now and not after the plan."""
    return error(
        "REF-NOT-HELD",
        f"{named} would be renamed to {now.name}",
        f"Write its new name here as well: {now.name}.",
        place,
        referring.ref,
    )


def not_held(
    resource: Resource, needed: ResourceRef, path: tuple[str | int, ...], meant: str | None
) -> Diagnostic:
    """Return an error for the name, under a path of a manifest, of what is not there.

    ``meant`` is the name that was probably meant, if any is like it.
    """
    hint = f"Did you mean {meant}? Otherwise add" if meant else "Add"
    field = f" (metadata.{path[1]})" if path[0] == "metadata" else ""
    return error(
        "REF-NOT-HELD",
        f"{needed} is neither declared nor held",
        f"{hint} a manifest for {needed}, or correct the name{field}.",
        resource.source.place(*path),
        resource.ref,
    )


def those_that_lose(
    kept: Sequence[ObservedObject], deleted: Sequence[ObservedObject]
) -> Iterator[Diagnostic]:
    """Yield a warning for each object that this run does not declare and names one to be deleted.

    A manifest of another tree may declare it.
    """
    doomed = {held.ref.key for held in deleted if held.ref.kind in _NAMED}
    if not doomed:
        return
    for held in sorted(kept, key=lambda held: held.ref.key):
        lost = [ref.name for ref, _ in references(held.ref, held.spec) if ref.key in doomed]
        if lost:
            row = KINDS[held.ref.kind]
            plural = KINDS[REFERRED[held.ref.kind]].plural
            owned = f"which tree {held.owner} owns and " if held.owner else ""
            yield warning(
                "PLAN-ACTION-IN-USE",
                f"{row.one} loses {plural} that would be deleted",
                f"This run reads no manifest of {held.ref}, {owned}which {row.verb} "
                f"{', '.join(dict.fromkeys(lost))}: the service takes deleted {plural} out of it. "
                f"Declare the {plural} to keep them.",
                ref=held.ref,
            )


def named_by_other_trees(
    changes: Sequence[Change],
    desired: DesiredState,
    observed: ObservedState,
    tree: str,
    named: Collection[str],
) -> Iterator[Diagnostic]:
    """Yield why what an object of another tree names must not be deleted.

    ``named`` are the folded addresses of the objects that ``--break-glass`` names. What this run
    declares as well is left to the plan: it shows what becomes of that object.
    """
    deleted = [change.held.ref for change in changes if isinstance(change, Delete)]
    doomed = {ref.key: ref for ref in deleted if ref.kind in _NAMED and ref.folded not in named}
    if not doomed:
        return
    using: dict[ResourceRef, ObservedObject] = {}
    for key in sorted(observed.objects):
        held = observed.objects[key]
        if other_owner(held, tree) and key not in desired.resources:
            for ref, _ in references(held.ref, held.spec):
                using.setdefault(ref.key, held)
    for key, ref in doomed.items():
        if key in using:
            yield _used_elsewhere(ref, using[key])


def _used_elsewhere(ref: ResourceRef, by: ObservedObject) -> Diagnostic:
    row, other = KINDS[by.ref.kind], KINDS[ref.kind]
    return error(
        "GUARD-ACTION-IN-USE",
        f"{other.one} would be deleted that {row.one} of another tree {row.verb}",
        f"{by.ref}, which tree {by.owner} owns, {row.verb} {ref}: the service takes deleted "
        f"{other.plural} out of it. Declare the {other.noun}, or let tree {by.owner} take its name "
        f"out of the {row.noun} first. {break_glass(ref)}",
        ref=ref,
    )


def named_by_critical(
    changes: Sequence[Change],
    desired: DesiredState,
    observed: ObservedState,
    named: Collection[str],
) -> Iterator[Diagnostic]:
    """Yield why changes may lock people out: a critical object needs what they weaken.

    ``named`` are the folded addresses of the objects that ``--break-glass`` names. What is critical
    itself is left to the guard of critical objects.
    """
    found = [change for change in changes if _is_harmful(change)]
    if not found:
        return
    critical = _named_by_critical(desired, observed)
    for change in found:
        ref = ref_of(change)
        keys = {each.key for each in refs_of(change)}
        by = next((critical[key] for key in sorted(keys) if key in critical), None)
        if by is None or not set(addresses_of(change)).isdisjoint(named):
            continue
        row, done = KINDS[by.kind], "removed" if isinstance(change, Delete) else "changed"
        yield error(
            "GUARD-CRITICAL",
            f"{KINDS[ref.kind].one} of a critical {row.noun} would be {done}",
            f"{by} was declared with metadata.critical, and {row.verb} {ref}; its risks here: "
            f"{names_of(risks_of(change))}. {break_glass(ref)}",
            ref=ref,
        )


def _is_harmful(change: Change) -> bool:
    if isinstance(change, Create) or ref_of(change).kind not in _NAMED:
        return False
    return not is_critical(change) and bool(risks_of(change))


def _named_by_critical(
    desired: DesiredState, observed: ObservedState
) -> Mapping[ResourceRef, ResourceRef]:
    """Return the critical object that names each other one (key), as declared or as held."""
    everything: list[Resource | ObservedObject] = [*desired.resources.values()]
    everything += observed.objects.values()
    return {
        ref.key: each.ref
        for each in everything
        if each.critical
        for ref, _ in references(each.ref, each.spec)
    }
