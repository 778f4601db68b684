"""What makes a plan unsafe, and how to allow just that.

A guard looks at a whole plan. What it finds blocks apply and not the showing of the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.diagnostics import Diagnostic, error
from reconciler.plan.model import Adopt, Change, Delete, Update, ref_of
from reconciler.resources.kinds import KINDS
from reconciler.resources.ref import Kind
from reconciler.state import DesiredState, ObservedState

MANY = 0.3
FEW_OBJECTS = 10


@dataclass(frozen=True, slots=True)
class Allowances:
    """What the operator allows by name; None leaves the guards' own limits."""

    updates: int | None = None
    deletes: int | None = None


def blocks(
    changes: Sequence[Change],
    desired: DesiredState,
    observed: ObservedState,
    allowed: Allowances,
) -> tuple[Diagnostic, ...]:
    """Return every reason why these changes must not be applied."""
    return (
        *_incomplete(observed),
        *_partial_prune(changes, desired),
        *_uncarried(changes),
        *_protected(changes),
        *_blast_radius(changes, observed, allowed),
    )


def _incomplete(observed: ObservedState) -> Iterator[Diagnostic]:
    for reason in observed.incomplete:
        yield error(
            "GUARD-INCOMPLETE-READ",
            "the service's listing is not complete",
            f"{reason} Nothing is written from half a picture; run the command again.",
        )


def _partial_prune(changes: Sequence[Change], desired: DesiredState) -> Iterator[Diagnostic]:
    deletes = sum(isinstance(change, Delete) for change in changes)
    if deletes and not desired.whole:
        yield error(
            "GUARD-PARTIAL-TREE",
            "deletes are planned from a part of the tree",
            f"{deletes} object(s) would be deleted because no manifest that was read declares "
            "them. Give the folder of the whole tree, or leave --prune out.",
        )


def _uncarried(changes: Sequence[Change]) -> Iterator[Diagnostic]:
    for change in changes:
        if isinstance(change, Update | Adopt) and change.held.uncarried:
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


def _blast_radius(
    changes: Sequence[Change], observed: ObservedState, allowed: Allowances
) -> Iterator[Diagnostic]:
    held = Counter(held.ref.kind for held in observed.objects.values())
    updates = Counter(ref_of(c).kind for c in changes if isinstance(c, Update | Adopt))
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
