"""The order of changes: owners first, deletes last, and a name is freed before it is taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconciler.diagnostics import Diagnostic, error
from reconciler.kinds.fields import KINDS
from reconciler.plan.model import Change, Delete, held_of, place_of, ref_of
from reconciler.resources.ref import ResourceRef
from reconciler.resources.references import needs


def in_order(changes: Sequence[Change]) -> tuple[tuple[Change, ...], tuple[Diagnostic, ...]]:
    """Return the changes in the order in which they are applied, and an error per name cycle."""
    ordered = sorted(changes, key=_rank)
    waits = _name_waits(ordered)
    if not waits:
        return tuple(ordered), ()
    rounds, rings = _rounds(waits)
    freeing = set(waits.values())
    made = {ref_of(ordered[index]).key: turn for index, turn in rounds.items()}

    def turn(index: int) -> int:
        # What names others needs their ids, and one of them may wait for its name.
        needed = (made.get(key, 0) for key in needed_by(ordered[index]))
        return max(rounds.get(index, 0), *needed, 0)

    def place(index: int) -> tuple[bool, int, int]:
        is_last = isinstance(ordered[index], Delete) and index not in freeing
        return is_last, turn(index), index

    places = sorted(range(len(ordered)), key=place)
    swapped = tuple(_swapped([ordered[index] for index in ring]) for ring in rings)
    return tuple(ordered[index] for index in places), swapped


def batches(changes: Sequence[Change], size: int) -> list[Sequence[Change]]:
    """Cut ordered changes into batches whose members do not depend on one another."""
    cut: list[list[Change]] = []
    freed: set[ResourceRef] = set()
    stage: tuple[int, bool] | None = None
    for change in changes:
        here = KINDS[ref_of(change).kind].rank, isinstance(change, Delete)
        if here != stage or len(cut[-1]) == size or (freed and ref_of(change).key in freed):
            cut.append([])
            stage, freed = here, set()
        cut[-1].append(change)
        if key := frees(change):
            freed.add(key)
    return [tuple(batch) for batch in cut]


def _rank(change: Change) -> tuple[bool, int, ResourceRef, ResourceRef]:
    ref = ref_of(change)
    rank = KINDS[ref.kind].rank
    if isinstance(change, Delete):
        return True, -rank, ref.key, ref
    return False, rank, ref.key, ref


def needed_by(change: Change) -> Iterator[ResourceRef]:
    """Yield the keys of what must be held before a change: its owner, and what its fields name."""
    spec = {} if isinstance(change, Delete) else change.resource.spec
    return (ref.key for ref, _ in needs(ref_of(change), spec))


def frees(change: Change) -> ResourceRef | None:
    """Return the key of the name that an object has before a change and not after it."""
    held = held_of(change)
    if held is None:
        return None
    if isinstance(change, Delete) or held.ref.key != ref_of(change).key:
        return held.ref.key
    return None


def _name_waits(changes: Sequence[Change]) -> Mapping[int, int]:
    """Return which change takes a name that another one frees: index of taker, of freer."""
    freers = {key: index for index, change in enumerate(changes) if (key := frees(change))}
    waits: dict[int, int] = {}
    for index, change in enumerate(changes):
        freer = freers.get(ref_of(change).key)
        if freer is not None and freer != index and not isinstance(change, Delete):
            waits[index] = freer
    return waits


def _rounds(waits: Mapping[int, int]) -> tuple[Mapping[int, int], Sequence[Sequence[int]]]:
    """Return after how many others each taker comes, and the rings in which all wait for all.

    A name has one taker and a change frees one name, so takers and freers form plain chains.
    """
    rounds: dict[int, int] = {}
    rings: list[Sequence[int]] = []
    for taker in waits:
        chain: dict[int, None] = {}
        here = taker
        while here in waits and here not in rounds and here not in chain:
            chain[here] = None
            here = waits[here]
        if here in chain:
            rings.append(sorted(chain))
        first = rounds.get(here, 0)
        rounds.update((index, first + far) for far, index in enumerate(reversed(chain), start=1))
    return rounds, rings


def _swapped(ring: Sequence[Change]) -> Diagnostic:
    refs = [ref_of(change) for change in ring]
    return error(
        "PLAN-NAMES-SWAPPED",
        "resources take each other's names",
        f"A name can be given only when it is free. Rename one of "
        f"{', '.join(ref.path for ref in refs)} to a third name first, apply, then give it the "
        "name it should have.",
        place_of(ring[0]),
        refs[0],
    )
