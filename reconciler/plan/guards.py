"""Guards: reasons why a plan is unsafe, and the flag that allows just that.

What a guard finds in a whole plan blocks apply, and not the showing of the plan.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.diagnostics import Diagnostic, SourceLocation, error
from reconciler.kinds.fields import KINDS
from reconciler.kinds.rules import RULES
from reconciler.plan.diff import is_not_sent
from reconciler.plan.model import (
    PARTIAL_TREE,
    Adopt,
    Change,
    Delete,
    Update,
    empties,
    held_of,
    only_takes_over,
    ref_of,
)
from reconciler.plan.risk import DEACTIVATED, REACTIVATED, names_of, risks_of
from reconciler.plan.shared_names import same_names
from reconciler.plan.undone import undone_blocks
from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.resources.references import REFERRED
from reconciler.rules.form import Planned, break_glass
from reconciler.state import UPGRADE, DesiredState, ObservedObject, ObservedState

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
        waived: Policies that would refuse a change and their waivers, by the address of its object,
            or by an empty text for all changes; kept with what is written.
        redo: Folded addresses of objects whose undone values may come back.
    """

    updates: int | None = None
    deletes: int | None = None
    adopt: bool = True
    lockouts: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    begun: Mapping[str, Spec] = field(default_factory=dict)
    waived: Mapping[str, str] = field(default_factory=dict)
    redo: frozenset[str] = frozenset()

    def reason_for(self, change: Change) -> str:
        """Return the reason of ``--break-glass`` for an object, by its old or its new name."""
        if not self.reasons:
            return ""
        told = (self.reasons[each] for each in addresses_of(change) if each in self.reasons)
        return next(told, "")

    def waived_for(self, change: Change) -> str:
        """Return the policies that would refuse a change or the whole plan, and their waivers."""
        keys = (ref_of(change).address, "") if self.waived else ()
        return ", ".join(self.waived[key] for key in keys if key in self.waived)


def blocks(
    changes: Sequence[Change],
    desired: DesiredState,
    observed: ObservedState,
    allowed: Allowances,
) -> tuple[Diagnostic, ...]:
    """Return every reason why these changes must not be applied."""
    return (
        *_incomplete(observed),
        *same_names(desired, observed),
        *_partial_prune(changes, desired),
        *_uncarried(changes),
        *_protected(changes),
        *undone_blocks(changes, desired, observed, allowed.redo),
        *_lockouts(changes, observed.caller_objects, allowed.lockouts),
        *_of_kinds(changes, observed, allowed.lockouts),
        *_adopted(changes, allowed),
        *_blast_radius(changes, observed, allowed),
        *_emptied(changes),
    )


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
        if not isinstance(change, Update | Adopt) or only_takes_over(change):
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
        if not empties(change):
            continue
        # A service may not remember the mark; a manifest that has it contradicts itself.
        if change.held.prevent_delete or change.resource.prevent_delete:
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
        ref_of(c).kind for c in changes if isinstance(c, Update | Adopt) and not only_takes_over(c)
    )
    deletes = Counter(ref_of(c).kind for c in changes if isinstance(c, Delete))
    for kind in Kind:
        if _too_many(updates[kind], held[kind]) and _over(updates[kind], allowed.updates):
            yield _too_much("GUARD-MANY-UPDATES", "updated", kind, updates, held)
        everything = deletes[kind] > 0 and deletes[kind] == held[kind]
        if (everything or _too_many(deletes[kind], held[kind])) and _over(
            deletes[kind], allowed.deletes
        ):
            yield _too_much("GUARD-MANY-DELETES", "deleted", kind, deletes, held)


def _too_many(touched: int, held: int) -> bool:
    return held >= FEW_OBJECTS and touched > held * MANY


def _over(touched: int, allowed: int | None) -> bool:
    return allowed is None or touched > allowed


def _too_much(
    code: str, done: str, kind: Kind, touched: Counter[Kind], held: Counter[Kind]
) -> Diagnostic:
    plural = KINDS[kind].plural
    count, total = touched[kind], held[kind]
    limit = f"{MANY:.0%} where there are {FEW_OBJECTS} or more"
    if done == "deleted":
        limit += ", and never all"
    return error(
        code,
        f"too many {plural} would be {done}",
        f"{count} of {total} {plural} ({count / total:.0%}) would be {done}; the limit is "
        f"{limit}. If that is meant, allow just that: --allow-{done[:-1]}s {count}.",
    )


def _lockouts(
    changes: Sequence[Change], own: Collection[str], named: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield why changes may lock people out.

    ``own`` are the ids of what the caller signs in with; ``named`` are the folded addresses of
    the objects that ``--break-glass`` names.
    """
    for change in changes:
        held = held_of(change)
        if held is None or not set(addresses_of(change)).isdisjoint(named):
            continue
        is_critical = held.critical or (not isinstance(change, Delete) and change.resource.critical)
        harm = names_of(risks_of(change)) if held.id in own or is_critical else ""
        if harm:
            yield (_own_access if held.id in own else _critical)(change, held, harm)


def _of_kinds(
    changes: Sequence[Change], observed: ObservedState, named: Collection[str]
) -> Iterator[Diagnostic]:
    planned = by_kind(changes)
    for kind, row in RULES.items():
        if row.guards is not None and kind in planned:
            yield from row.guards(planned[kind], observed, named)


def by_kind(changes: Sequence[Change]) -> Mapping[Kind, Planned]:
    """Return what changes do to the objects of each kind, for rules of its own."""
    found: defaultdict[Kind, Planned] = defaultdict(lambda: Planned([], []))
    for change in changes:
        if isinstance(change, Delete):
            found[change.held.ref.kind].deleted.append(change.held)
        elif not is_not_sent(change):
            pair = change.resource, held_of(change)
            found[change.resource.ref.kind].written.append(pair)
    return found


def addresses_of(change: Change) -> tuple[str, ...]:
    """Return the addresses to look up an object by: after a change, and before it."""
    held = held_of(change)
    refs = [ref_of(change), *([held.ref] if held else [])]
    return tuple(ref.folded for ref in refs)


def _critical(change: Change, held: ObservedObject, harm: str) -> Diagnostic:
    ref = ref_of(change)
    switched = next(
        (each.name for each in (REACTIVATED, DEACTIVATED) if each.name in harm), "weakened"
    )
    return error(
        "GUARD-CRITICAL",
        f"a critical object would be {'removed' if isinstance(change, Delete) else switched}",
        f"{ref} was declared with metadata.critical; its risks here: {harm}. {break_glass(ref)}",
        ref=ref,
    )


def _own_access(change: Change, held: ObservedObject, harm: str) -> Diagnostic:
    ref = ref_of(change)
    return error(
        "GUARD-OWN-ACCESS",
        "the plan touches what its own caller signs in with",
        f"{ref} (id {held.id}) is what this run signs in with; its risks here: {harm}. "
        f"{break_glass(ref)}",
        ref=ref,
    )
