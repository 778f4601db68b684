"""Which change before which: owners first, deletes last, and a name is freed before it is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from reconciler.diagnostics import Diagnostic, error
from reconciler.plan.model import Change, Delete, held_of, ref_of
from reconciler.resources.kinds import KINDS
from reconciler.resources.ref import ResourceRef


def in_order(changes: Sequence[Change]) -> tuple[tuple[Change, ...], tuple[Diagnostic, ...]]:
    """Return the changes in the order in which they are applied, and names nobody can free."""
    ordered = sorted(changes, key=_rank)
    waits = _name_waits(ordered)
    if not waits:
        return tuple(ordered), ()
    try:
        steps = TopologicalSorter({**dict.fromkeys(range(len(ordered)), ()), **waits})
        moved = tuple(steps.static_order())
    except CycleError as cycle:
        refs = [ref_of(ordered[index]) for index in cycle.args[1]]
        return tuple(ordered), (_swapped(refs),)
    level = _levels(moved, waits)
    return tuple(ordered[index] for index in sorted(moved, key=lambda i: (level[i], i))), ()


def batches(changes: Sequence[Change], size: int) -> list[Sequence[Change]]:
    """Cut ordered changes into batches whose members do not depend on one another."""
    cut: list[list[Change]] = []
    freed: set[ResourceRef] = set()
    stage: tuple[int, bool] | None = None
    for change in changes:
        here = _stage(change)
        if here != stage or len(cut[-1]) == size or ref_of(change).key in freed:
            cut.append([])
            stage, freed = here, set()
        cut[-1].append(change)
        freed |= {key for key in [_frees(change)] if key is not None}
    return [tuple(batch) for batch in cut]


def _stage(change: Change) -> tuple[int, bool]:
    return KINDS[ref_of(change).kind].rank, isinstance(change, Delete)


def _rank(change: Change) -> tuple[bool, int, ResourceRef, ResourceRef]:
    ref = ref_of(change)
    rank = KINDS[ref.kind].rank
    if isinstance(change, Delete):
        return True, -rank, ref.key, ref
    return False, rank, ref.key, ref


def _frees(change: Change) -> ResourceRef | None:
    """Return the name that is free after the change and was not before."""
    held = held_of(change)
    if held is None:
        return None
    if isinstance(change, Delete) or held.ref.key != ref_of(change).key:
        return held.ref.key
    return None


def _name_waits(changes: Sequence[Change]) -> Mapping[int, tuple[int, ...]]:
    """Return which changes take a name that another one frees: index of taker, of freer."""
    freers = {key: index for index, change in enumerate(changes) if (key := _frees(change))}
    waits: dict[int, tuple[int, ...]] = {}
    for index, change in enumerate(changes):
        freer = freers.get(ref_of(change).key)
        if freer not in {None, index} and not isinstance(change, Delete):
            waits[index] = (freer,)
    return waits


def _levels(
    order: Sequence[int], waits: Mapping[int, tuple[int, ...]]
) -> Mapping[int, tuple[int, int]]:
    """Return where each change stands: deletes that free a name come before its taker."""
    needed = {freer for freers in waits.values() for freer in freers}
    level: dict[int, tuple[int, int]] = {}
    for index in order:
        depth = 1 + max((level[freer][1] for freer in waits.get(index, ())), default=-1)
        level[index] = (0 if index in needed and index not in waits else 1, depth)
    return level


def _swapped(refs: Sequence[ResourceRef]) -> Diagnostic:
    names = ", ".join(ref.path for ref in refs[:-1])
    return error(
        "PLAN-NAMES-SWAPPED",
        "resources take each other's names",
        f"A name is taken only once it is free. Rename one of {names} to a third name first, "
        "apply, then give it the name it should have.",
        ref=refs[0],
    )
