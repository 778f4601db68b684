"""Values that an undo took back: their digests, and the guard that keeps them undone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from reconciler.diagnostics import Diagnostic, error
from reconciler.plan.diff import CREDENTIAL, NAME, OWNER, field_changes
from reconciler.plan.digest import hash_of
from reconciler.plan.model import Change, Create, Delete, addresses_of, empties, place_of, ref_of
from reconciler.resources.ref import ResourceRef
from reconciler.state import DesiredState, ObservedState, Undone

UNDONE = "GUARD-UNDONE"
ITSELF = ""
"""Name that stands for the object itself among the values of a mark."""

_NOT_DECLARED = frozenset({OWNER, CREDENTIAL})
"""Fields of a change that no manifest has a value of: a plan cannot bring them back."""


def undone_values(change: Change) -> Mapping[str, str]:
    """Return the digests of the values that an undoing change takes back: those held now."""
    if isinstance(change, Delete):
        return {ITSELF: hash_of(change.held.spec)}
    if isinstance(change, Create):
        return {ITSELF: hash_of(change.resource.spec)}
    return {
        each.name: hash_of(each.before)
        for each in field_changes(change)
        if each.name not in _NOT_DECLARED and not each.kept
    }


def brought_back(change: Change, observed: ObservedState) -> tuple[Undone, tuple[str, ...]] | None:
    """Return the mark that a change goes against and the names of its values; None for none."""
    mark = _mark_of(change, observed)
    if mark is None:
        return None
    if isinstance(change, Create):
        is_same = mark.values.get(ITSELF) == hash_of(change.resource.spec)
        return (mark, (ITSELF,)) if is_same else None
    if isinstance(change, Delete) or empties(change):
        return (mark, (ITSELF,)) if ITSELF in mark.values else None
    names = tuple(
        each.name
        for each in field_changes(change)
        if not each.kept
        and each.name in mark.values
        and mark.values[each.name] == hash_of(each.after)
    )
    return (mark, names) if names else None


def undone_blocks(
    changes: Sequence[Change],
    desired: DesiredState,
    observed: ObservedState,
    redo: frozenset[str],
) -> Iterator[Diagnostic]:
    """Yield why changes must not bring back what an undo took back.

    ``redo`` are the folded addresses that ``--redo`` names. A change that is an undo itself, and so
    leaves a mark, is not judged.
    """
    taken = _names_taken_back(desired, observed) if changes else {}
    for change in changes:
        ref = ref_of(change)
        left = change.undone if isinstance(change, Delete) else change.resource.undone
        if left is not None or not redo.isdisjoint(addresses_of(change)):
            continue
        found = brought_back(change, observed)
        if found is not None:
            yield _block(change, *found)
        elif isinstance(change, Create) and (lost := taken.get((ref.key[:3], hash_of(ref.name)))):
            was, mark = lost
            if was.folded not in redo:
                said = f"would be made with a name of {was}, {_undone_by(mark)}"
                yield _again(change, mark, said)


def _names_taken_back(
    desired: DesiredState, observed: ObservedState
) -> Mapping[tuple[object, str], tuple[ResourceRef, Undone]]:
    """Return what has lost a name by an undo and is declared nowhere, by owner and digest.

    A manifest with that name and without ``metadata.id`` is the rename once more.
    """
    marked = [(each, each.undone) for each in observed.everything if each.undone is not None]
    pins = {each.pinned_id for each in desired.resources.values()} if marked else set()
    return {
        (held.ref.key[:3], mark.values[NAME]): (held.ref, mark)
        for held, mark in marked
        if NAME in mark.values and held.ref.key not in desired.resources and held.id not in pins
    }


def _mark_of(change: Change, observed: ObservedState) -> Undone | None:
    if isinstance(change, Create):
        return observed.undone.get(change.resource.ref.folded)
    return change.held.undone


def _block(change: Change, mark: Undone, names: Sequence[str]) -> Diagnostic:
    if names == (ITSELF,):
        is_lost = not isinstance(change, Create)
        what, back = ("deleted", "brought it back") if is_lost else ("made", "removed it")
        said = f"would be {what} again, and run {mark.run} {back} (undo of run {mark.of})"
    else:
        said = f"would get back {', '.join(names)}, {_undone_by(mark)}"
    return _again(change, mark, said)


def _undone_by(mark: Undone) -> str:
    return f"which was undone by run {mark.run} (undo of run {mark.of})"


def _again(change: Change, mark: Undone, said: str) -> Diagnostic:
    ref = ref_of(change)
    reason = f" because: {mark.reason}" if mark.reason else ""
    return error(
        UNDONE,
        "an undone change would be applied again",
        f"{ref} {said}{reason}. Change the manifests (git revert the commit that was undone); if "
        f"it is meant after all, allow just that: --redo {shlex.quote(ref.address)}.",
        place_of(change),
        ref,
    )
