"""Drift: the differences that were made on the service, and not in the manifests.

They are found by comparing what is declared, what the tree applied last, and what is held now.
Where one of the three is not known, the object is listed as one that cannot be judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.plan.causes import (
    cause_of,
    changed_on_service,
    event_as_cause,
    field_causes,
    last_change,
)
from reconciler.plan.diff import NAME, FieldChange, field_changes
from reconciler.plan.history import AT_FIRST, SinceApplied, since_applied
from reconciler.plan.model import (
    Adopt,
    Cause,
    CauseKind,
    Change,
    Create,
    IgnoredField,
    Plan,
    Rewrite,
    Scope,
    Update,
    ref_of,
)
from reconciler.plan.selection import Selection
from reconciler.resources.fields import SpecValue
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import (
    ObjectEvent,
    ObservedObject,
    ObservedState,
    Removal,
    completed,
)

Histories = Mapping[str, Sequence[ObjectEvent]]

# Causes of differences that nothing on the service made.
_OF_THE_MANIFESTS = {CauseKind.DECLARED, CauseKind.TAKE_OVER, CauseKind.LACKING}


@dataclass(frozen=True, slots=True)
class DriftedObject:
    """One object that is no longer as it was applied.

    Attributes:
        ref: As it is declared.
        id: What the service holds, or held, it under.
        cause: Who changed it last, and when.
        fields: ``before`` is what the service held when this tree applied it last, ``after`` what
            it holds now. Without a history ``before`` is what is declared.
        declared: What the manifests declare of the fields where that is not ``before``.
        removed: Whether the service holds it no more.
        removed_id: Id of the object that this tree applied, where it was deleted and another one
            was made under its name; otherwise empty.
    """

    ref: ResourceRef
    id: str
    cause: Cause
    fields: tuple[FieldChange, ...] = ()
    declared: Mapping[str, SpecValue] = field(default_factory=dict, hash=False)
    removed: bool = False
    removed_id: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """Everything that was changed on the service since this tree applied it.

    Attributes:
        objects: In the order of the plan.
        unmanaged: Held, but declared nowhere.
        untold: Differences whose author the service does not record.
        unjudged: Declared objects that may have been changed on the service; it is not known. They
            are held, and this tree never applied them. Without a history, they are not held: they
            were never applied, or removed.
        keeps_history: Whether the service lists what was removed from it.
        owed: How many client secrets the next apply of the tree delivers.
        owed_elsewhere: How many the service keeps for other trees.
        inactive: Inactive objects whose state no manifest says.
        ignored: Fields that were not judged, because manifests leave them to others.
        scope: The part of the tree that it is about, if it is not the whole.
        left_out: How many objects outside of that part differ from what was applied.
    """

    objects: tuple[DriftedObject, ...]
    unmanaged: tuple[ResourceRef, ...] = ()
    untold: tuple[ResourceRef, ...] = ()
    unjudged: tuple[ResourceRef, ...] = ()
    keeps_history: bool = True
    owed: int = 0
    owed_elsewhere: int = 0
    inactive: tuple[ResourceRef, ...] = ()
    ignored: tuple[IgnoredField, ...] = ()
    scope: Scope = field(default_factory=Scope)
    left_out: int = 0

    @property
    def refs(self) -> tuple[ResourceRef, ...]:
        """Return what was changed on the service, whether or not it is known by whom."""
        return (*(each.ref for each in self.objects), *self.untold)


def suspects(plan: Plan, observed: ObservedState) -> tuple[ObservedObject, ...]:
    """Return the objects whose history separates drift from new declarations."""
    changed = [change.held for change in changed_on_service(plan)]
    return (*changed, *_perhaps_renamed(plan, observed))


def owners_to_ask(plan: Plan, observed: ObservedState) -> tuple[str, ...]:
    """Return the ids of organizations whose removals show what became of a declared object.

    It is not held, or it is held and this tree never applied it: one that the tree did apply may
    have been removed before.
    """
    if not observed.keeps_history:
        return ()
    missing = {
        change.resource.ref.key.organization
        for change in plan.changes
        if isinstance(change, Create)
    }
    missing |= {held.ref.key.organization for held in _never_applied(plan, observed)}
    return tuple(
        held.id
        for held in observed.objects.values()
        if held.ref.kind is Kind.ORGANIZATION and held.ref.key.organization in missing
    )


def find_drift(
    plan: Plan, observed: ObservedState, histories: Histories, removals: Sequence[Removal]
) -> Drift:
    """Return the differences of a plan that were made on the service.

    ``histories`` has the events of the suspects by id, and of what was deleted and made again; of
    one that is missing, every difference counts as made on the service.
    """
    tree = plan.scope.tree
    renamed = _renamed(plan, observed, histories)
    removed = _removed_by_others(removals, tree)
    strangers = _never_applied(plan, observed)
    remade = _remade(plan, replaced(plan, observed, removals), histories)
    found = [
        *remade,
        *(
            drifted
            for change in plan.changes
            if (drifted := _drifted(change, tree, histories, (renamed, removed))) is not None
        ),
    ]
    untold = tuple(
        ref_of(change)
        for change in plan.changes
        if isinstance(change, Rewrite) and cause_of(change, tree).kind is CauseKind.UNKNOWN
    )
    moved = {drifted.id for drifted in found}
    if observed.keeps_history:
        unjudged = tuple(held.ref for held in strangers if held.id not in moved)
    else:
        unjudged = tuple(ref_of(change) for change in plan.changes if isinstance(change, Create))
    return Drift(
        tuple(found),
        tuple(found.ref for found in plan.unmanaged if found.id not in moved),
        untold,
        unjudged,
        observed.keeps_history,
        len(plan.deliverable),
        plan.owed_elsewhere,
        plan.inactive,
        plan.ignored,
    )


def selected(drift: Drift, plan: Plan) -> Drift:
    """Return the drift of what the scope of a plan of the whole tree selects.

    Raises:
        UsageError: an address of the scope names nothing.
    """
    if not plan.scope.is_partial:
        return drift
    chosen = Selection(plan)
    objects = tuple(each for each in drift.objects if each.ref in chosen)
    untold = tuple(ref for ref in drift.untold if ref in chosen)
    return replace(
        drift,
        objects=objects,
        unmanaged=tuple(ref for ref in drift.unmanaged if ref in chosen),
        untold=untold,
        unjudged=tuple(ref for ref in drift.unjudged if ref in chosen),
        owed=sum(map(chosen.holds_secret, plan.deliverable)),
        inactive=tuple(ref for ref in drift.inactive if ref in chosen),
        ignored=tuple(each for each in drift.ignored if each.ref in chosen),
        scope=plan.scope,
        left_out=len(drift.refs) - len(objects) - len(untold),
    )


def _drifted(
    change: Change,
    tree: str,
    histories: Histories,
    gone: tuple[Mapping[ResourceRef, ObservedObject], Mapping[ResourceRef, Removal]],
) -> DriftedObject | None:
    if isinstance(change, Create):
        renamed, removed = gone
        key = change.resource.ref.key
        if key not in renamed:
            return _removed(change, removed.get(key))
        held = renamed[key]
        change = Update(completed(change.resource, held), held)  # as if it were pinned by its id
    if not isinstance(change, Update):
        return None
    cause = cause_of(change, tree)
    events = histories.get(change.held.id, ())
    if cause.kind is not CauseKind.SERVICE and not events:
        return None
    changed = [
        (planned, why)
        for planned, why in field_causes(change, events, tree).values()
        if why.kind not in _OF_THE_MANIFESTS
    ]
    if not changed:
        return None
    if cause.kind is not CauseKind.SERVICE:  # the last event changed no field
        last = max((why for _, why in changed), key=lambda why: why.sequence)
        cause = last._replace(kind=CauseKind.SERVICE)
    fields, declared = _turned([planned for planned, _ in changed], since_applied(events, tree))
    return DriftedObject(change.resource.ref, change.held.id, cause, fields, declared)


def _turned(
    planned: Iterable[FieldChange], since: SinceApplied | None
) -> tuple[tuple[FieldChange, ...], Mapping[str, SpecValue]]:
    """Return fields of a plan from what was applied to what is held, and what else is declared."""
    fields, declared = [], {}
    for each in planned:
        name, before = each.name, each.after
        if since is not None:
            before = since.applied.get(name, AT_FIRST.get(name, before))
        if before == each.before:  # only the manifests are different
            continue
        if before != each.after:
            declared[name] = each.after
        fields.append(FieldChange(name, before, each.before))
    return tuple(fields), declared


def _removed(change: Create, removal: Removal | None) -> DriftedObject | None:
    """Return how an object that is declared and not held was removed, if it ever was there."""
    if removal is None:
        return None
    cause = event_as_cause(removal.event)
    return DriftedObject(change.resource.ref, removal.id, cause, removed=True)


def _never_applied(plan: Plan, observed: ObservedState) -> list[ObservedObject]:
    if not observed.keeps_history:
        return []
    in_step = (observed.objects.get(ref.key) for ref in plan.in_step)
    matched = [held for held in in_step if held is not None]
    matched += [change.held for change in plan.changes if isinstance(change, Adopt)]
    return [held for held in matched if plan.scope.tree not in held.trees]


def _removed_by_others(removals: Sequence[Removal], tree: str) -> Mapping[ResourceRef, Removal]:
    return {
        gone.ref.key: gone
        for gone in removals
        if tree in gone.trees and gone.event.said("tree") != tree
    }


def replaced(
    plan: Plan, observed: ObservedState, removals: Sequence[Removal]
) -> Iterator[tuple[Removal, ObservedObject]]:
    """Yield each object that this tree applied and others deleted, with the one in its place.

    Equal fields do not make it the same object: its id is another, and so are its client id and
    its secret.
    """
    removed = _removed_by_others(removals, plan.scope.tree)
    for held in _never_applied(plan, observed):
        removal = removed.get(held.ref.key)
        if removal is not None and removal.id != held.id:
            yield removal, held


def _remade(
    plan: Plan, found: Iterable[tuple[Removal, ObservedObject]], histories: Histories
) -> Iterator[DriftedObject]:
    adopted = {change.held.id: change for change in plan.changes if isinstance(change, Adopt)}
    for removal, held in found:
        change = adopted.get(held.id)
        since = since_applied(histories.get(removal.id, ()), plan.scope.tree)
        fields, declared = _turned(field_changes(change) if change else (), since)
        yield DriftedObject(
            change.resource.ref if change else held.ref,
            held.id,
            last_change(held),
            fields,
            declared,
            removed_id=removal.id,
        )


def _perhaps_renamed(plan: Plan, observed: ObservedState) -> list[ObservedObject]:
    """Return what this tree applied, is declared nowhere, and may once have had another name."""
    if not any(isinstance(change, Create) for change in plan.changes):
        return []
    left = [observed.objects[found.ref.key] for found in plan.unmanaged]
    tree = plan.scope.tree
    return [held for held in left if tree in held.trees and held.changed_in != tree]


def _renamed(
    plan: Plan, observed: ObservedState, histories: Histories
) -> Mapping[ResourceRef, ObservedObject]:
    found = {}
    for held in _perhaps_renamed(plan, observed):
        since = since_applied(histories.get(held.id, ()), plan.scope.tree)
        if since is not None and NAME in since.applied:
            found[held.ref._replace(name=since.applied[NAME]).key] = held
    return found
