"""Guards: reasons why a plan is unsafe, and the flag that allows just that.

What a guard finds in a whole plan blocks apply, and not the showing of the plan.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from reconciler.diagnostics import Diagnostic, SourceLocation, error
from reconciler.kinds.fields import KINDS
from reconciler.kinds.rules import RULES
from reconciler.plan.diff import ACTIVE, field_changes, is_not_sent
from reconciler.plan.model import (
    PARTIAL_TREE,
    Adopt,
    Change,
    Create,
    Delete,
    Pair,
    Rewrite,
    Scope,
    addresses_of,
    empties,
    held_of,
    is_critical,
    only_takes_over,
    ref_of,
)
from reconciler.plan.ownership import cannot_take_over
from reconciler.plan.references import named_by_critical, named_by_other_trees
from reconciler.plan.risk import DEACTIVATED, REACTIVATED, names_of, risks_of
from reconciler.plan.undone import undone_blocks
from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.resources.references import REFERRED, needs
from reconciler.rules.form import Planned, break_glass, place_of_id
from reconciler.state import UPGRADE, DesiredState, ObservedObject, ObservedState, Resource, holds

MANY = 0.3
FEW_OBJECTS = 10


@dataclass(frozen=True, slots=True)
class Allowances:
    """The exceptions that the operator allows by name.

    Attributes:
        updates: How many objects of a kind may be updated; None leaves the guard's own limit.
        deletes: How many may be deleted; likewise.
        adopt: Whether objects that the tree never applied may be taken over.
        lockouts: Objects that may be removed or weakened although that may lock people out: their
            addresses (``Kind/organization[/project]/name``) folded, and as they were given.
        reasons: Why, by the folded addresses; kept with what is written to these objects.
        begun: Specs of the inactive objects that an interrupted run was about to make, by id.
        redo: Folded addresses of objects whose undone values may come back.
    """

    updates: int | None = None
    deletes: int | None = None
    adopt: bool = True
    lockouts: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    begun: Mapping[str, Spec] = field(default_factory=dict)
    redo: frozenset[str] = frozenset()

    def reason_for(self, change: Change) -> str:
        """Return the reason of ``--break-glass`` for an object, by its old or its new name."""
        if not self.reasons:
            return ""
        found = (self.reasons[each] for each in addresses_of(change) if each in self.reasons)
        return next(found, "")


def blocks(
    changes: Sequence[Change],
    desired: DesiredState,
    observed: ObservedState,
    scope: Scope,
    allowed: Allowances,
) -> tuple[Diagnostic, ...]:
    """Return every reason why these changes must not be applied."""
    changes = guarded(changes, allowed.begun, scope.tree)
    return (
        *_incomplete(observed),
        *_same_names(desired, observed, scope.environment),
        *_partial_prune(changes, desired),
        *_uncarried(changes),
        *_protected(changes),
        *undone_blocks(changes, desired, observed, allowed.redo),
        *_lockouts(changes, observed.caller_objects, allowed.lockouts),
        *_of_kinds(changes, observed, allowed.lockouts, scope.environment),
        *_adopted(changes, allowed),
        *_blast_radius(changes, observed, allowed),
        *_emptied(changes),
        *named_by_critical(changes, desired, observed, allowed.lockouts),
        *named_by_other_trees(changes, desired, observed, scope.tree, allowed.lockouts),
        *cannot_take_over(desired, observed, scope),
    )


def deactivates(pairs: Iterable[Pair]) -> bool:
    """Return whether an active object is declared inactive, as the rest of a create would be."""
    return any(
        resource.active is False and held is not None and held.active for resource, held in pairs
    )


def guarded(changes: Sequence[Change], begun: Mapping[str, Spec], tree: str) -> Sequence[Change]:
    """Return the changes that guards judge: all but the rest of a tree's own creates.

    An object that is declared inactive is made, then deactivated. A run that is killed in between
    leaves it active, and to the next plan its deactivation looks like any other.

    ``begun`` has the specs of the inactive objects that an interrupted run was about to make, by
    the id of the object.
    """
    return [change for change in changes if not _is_rest(change, begun, tree)] if begun else changes


def _is_rest(change: Change, begun: Mapping[str, Spec], tree: str) -> bool:
    if isinstance(change, Create | Delete) or change.resource.active is not False:
        return False
    held = change.held
    spec = begun.get(held.id)
    # The object is as it was made, and nothing but its state is left to write. A service that does
    # not report owners has None.
    is_as_made = spec is not None and holds(held, spec) and held.owner in {None, tree}
    return is_as_made and [each.name for each in field_changes(change)] == [ACTIVE]


def _incomplete(observed: ObservedState) -> Iterator[Diagnostic]:
    for reason in observed.incomplete:
        again = "" if reason.endswith(UPGRADE) else ": run the command again"
        yield error(
            "GUARD-INCOMPLETE-READ",
            "the service's listing is not complete",
            f"{reason} Nothing is written from an incomplete listing{again}.",
        )


def _partial_prune(changes: Sequence[Change], desired: DesiredState) -> Iterator[Diagnostic]:
    """Yield why an object that no manifest read here declares may still be declared elsewhere."""
    deletes = [change.held for change in changes if isinstance(change, Delete)]
    if not deletes:
        return
    for held in deletes:
        place = desired.elsewhere.declared.get(held.id)
        if place is not None:
            yield _declared_elsewhere(held.ref, place)
    for place, why in desired.elsewhere.unreadable:
        yield error(
            PARTIAL_TREE,
            "deletes are planned, and a file that may declare them cannot be read",
            f"{place.file} {why}. Correct it, or leave it out if it belongs to another tree or "
            f"service: --other-tree {shlex.quote(place.file)}.",
            place,
        )
    if not (desired.whole or desired.elsewhere.is_whole):
        yield error(
            PARTIAL_TREE,
            "deletes are planned from a part of the tree",
            f"{len(deletes)} object(s) would be deleted because no manifest that was read "
            "declares them. Give the folder of the whole tree, or leave --prune out.",
        )


def _declared_elsewhere(ref: ResourceRef, place: SourceLocation) -> Diagnostic:
    return error(
        PARTIAL_TREE,
        "an object would be deleted that another manifest declares",
        f"{ref} is declared in {place}, which this run did not read. Give that manifest to this "
        "run as well. If it belongs to another tree or service, leave it or its folder out: "
        f"--other-tree {shlex.quote(place.file)}.",
        place,
        ref,
    )


def _uncarried(changes: Sequence[Change]) -> Iterator[Diagnostic]:
    for change in changes:
        if not isinstance(change, Rewrite) or only_takes_over(change):
            continue
        if change.held.uncarried:
            names = ", ".join(sorted(change.held.uncarried))
            yield error(
                "GUARD-UNKNOWN-FIELD",
                "the update would erase fields this version does not know",
                f"{ref_of(change)} holds {names}, which can be neither declared nor carried. "
                "Use a version of the reconciler that knows them.",
                ref=ref_of(change),
            )


def _protected(changes: Sequence[Change]) -> Iterator[Diagnostic]:
    for change in changes:
        if isinstance(change, Delete) and change.held.prevent_delete:
            yield error(
                "GUARD-PREVENT-DELETE",
                "the object was declared with preventDelete",
                f"{ref_of(change)} is protected. Declare it again; to delete it, first apply it "
                "with metadata.preventDelete: false.",
                ref=ref_of(change),
            )


def _emptied(changes: Sequence[Change]) -> Iterator[Diagnostic]:
    for change in changes:
        # A service may not remember the mark; a manifest that has it contradicts itself.
        if empties(change) and (change.held.prevent_delete or change.resource.prevent_delete):
            ref = ref_of(change)
            row = KINDS[ref.kind]
            yield error(
                "GUARD-PREVENT-DELETE",
                f"{row.one} with preventDelete would be emptied",
                f"{ref} is protected, and to empty it is to delete it. Declare "
                f"{KINDS[REFERRED[ref.kind]].one}; to empty the {row.noun}, first apply it with "
                "metadata.preventDelete: false.",
                ref=ref,
            )


def _adopted(changes: Sequence[Change], allowed: Allowances) -> Iterator[Diagnostic]:
    for change in changes:
        if isinstance(change, Adopt) and not allowed.adopt:
            yield error(
                "GUARD-ADOPT",
                "an object would be adopted",
                f"{ref_of(change)} (id {change.held.id}) was never applied by this tree, and "
                "--no-adopt says to leave such objects as they are. To adopt it, leave --no-adopt "
                "out; otherwise take its manifest out.",
                change.resource.source.place("metadata", "name"),
                ref_of(change),
            )


def _blast_radius(
    changes: Sequence[Change], observed: ObservedState, allowed: Allowances
) -> Iterator[Diagnostic]:
    held = Counter(held.ref.kind for held in observed.everything)
    updates = Counter(
        ref_of(c).kind for c in changes if isinstance(c, Rewrite) and not only_takes_over(c)
    )
    deletes = Counter(ref_of(c).kind for c in changes if isinstance(c, Delete))
    for kind in Kind:
        total = held[kind]
        for code, word, count, most in (
            ("GUARD-MANY-UPDATES", "update", updates[kind], allowed.updates),
            ("GUARD-MANY-DELETES", "delete", deletes[kind], allowed.deletes),
        ):
            is_all = word == "delete" and 0 < count == total
            is_many = total >= FEW_OBJECTS and count > total * MANY
            if (is_all or is_many) and (most is None or count > most):
                yield _too_many(code, word, kind, count, total)


def _too_many(code: str, word: str, kind: Kind, count: int, total: int) -> Diagnostic:
    plural = KINDS[kind].plural
    limit = f"{MANY:.0%} where there are {FEW_OBJECTS} or more"
    if word == "delete":
        limit += ", and never all"
    return error(
        code,
        f"too many {plural} would be {word}d",
        f"{count} of {total} {plural} ({count / total:.0%}) would be {word}d; the limit is "
        f"{limit}. If that is meant, allow just that: --allow-{word}s {count}.",
    )


def _lockouts(
    changes: Sequence[Change], own: Collection[str], named: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield why changes may lock people out.

    ``own`` are the ids of what the caller signs in with; ``named`` are the folded addresses of
    the objects that ``--break-glass`` names.
    """
    for change in changes:
        if isinstance(change, Create) or not set(addresses_of(change)).isdisjoint(named):
            continue
        held = change.held
        harm = names_of(risks_of(change)) if held.id in own or is_critical(change) else ""
        if harm:
            yield _lockout(change, held, harm, is_own=held.id in own)


def _of_kinds(
    changes: Sequence[Change], observed: ObservedState, named: Collection[str], environment: str
) -> Iterator[Diagnostic]:
    planned = by_kind(changes, environment)
    for kind, row in RULES.items():
        yield from row.guards(planned[kind], observed, named)


def by_kind(changes: Sequence[Change], environment: str = "") -> Mapping[Kind, Planned]:
    """Return what changes do to the objects of each kind, for rules of its own."""
    found = {kind: Planned([], [], environment) for kind in Kind}
    for change in changes:
        if isinstance(change, Delete):
            found[change.held.ref.kind].deleted.append(change.held)
        elif not is_not_sent(change):
            pair = change.resource, held_of(change)
            found[change.resource.ref.kind].written.append(pair)
    return found


def _lockout(change: Change, held: ObservedObject, harm: str, *, is_own: bool) -> Diagnostic:
    ref = ref_of(change)
    if is_own:
        code, summary = "GUARD-OWN-ACCESS", "the plan touches what its own caller signs in with"
        why = f"{ref} (id {held.id}) is what this run signs in with"
    else:
        switches = (each.name for each in (REACTIVATED, DEACTIVATED) if each.name in harm)
        done = "removed" if isinstance(change, Delete) else next(switches, "weakened")
        code, summary = "GUARD-CRITICAL", f"a critical object would be {done}"
        why = f"{ref} was declared with metadata.critical"
    return error(code, summary, f"{why}; its risks here: {harm}. {break_glass(ref)}", ref=ref)


_Path: TypeAlias = tuple[str | int, ...]
_Mention: TypeAlias = tuple[Resource, ResourceRef, _Path]
"""A resource that refers to another object, and the path of that name in its manifest."""


def _same_names(
    desired: DesiredState, observed: ObservedState, environment: str
) -> Iterator[Diagnostic]:
    """Yield one error for each name that is declared or mentioned and that several objects have.

    An id in the manifest says which object a resource is. What refers to the resource, a flow to
    its actions and everything to its owner, has only the name: there an id does not help.
    """
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
                f"as metadata.id in {place_of_id(environment)}.",
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
        for ref, path in needs(resource.ref, resource.spec):
            if ref.key in shared:
                found.setdefault(ref.key, (resource, ref, path))
    return found


def _mentioned(resource: Resource, ref: ResourceRef, path: _Path, ids: Sequence[str]) -> Diagnostic:
    return error(
        "GUARD-SAME-NAME",
        "the service holds several objects of one name",
        f"{resource.ref} refers to {ref}, which could be id {' or id '.join(ids)}: metadata.id "
        "does not decide it there. Give all but one of them another name, then plan again.",
        resource.source.place(*path),
        resource.ref,
    )
