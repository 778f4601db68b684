"""Values that an undo took back: their digests, and the guard that keeps them undone."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.diagnostics import Diagnostic, error
from reconciler.plan.diff import CREDENTIAL, OWNER, field_changes
from reconciler.plan.digest import hash_of
from reconciler.plan.model import Change, Create, Delete, held_of, ref_of
from reconciler.resources.fields import Spec, SpecValue
from reconciler.state import ObservedState, Undone

UNDONE = "GUARD-UNDONE"
ITSELF = ""
"""Name that stands for the object itself among the values of a mark."""

_NOT_DECLARED = frozenset({OWNER, CREDENTIAL})
"""Fields of a change that no manifest has a value of: a plan cannot bring them back."""


def value_digest(value: SpecValue) -> str:
    """Return the digest of a value of a field."""
    return hash_of(value)


def spec_digest(spec: Spec) -> str:
    """Return the digest of a whole object."""
    return hash_of(spec)


def undone_values(change: Change) -> Mapping[str, str]:
    """Return the digests of the values that an undoing change takes back: those held now."""
    if isinstance(change, Delete):
        return {ITSELF: spec_digest(change.held.spec)}
    if isinstance(change, Create):
        return {ITSELF: spec_digest(change.resource.spec)}
    return {
        each.name: value_digest(each.before)
        for each in field_changes(change)
        if each.name not in _NOT_DECLARED and not each.kept
    }


def brought_back(change: Change, observed: ObservedState) -> tuple[Undone, tuple[str, ...]] | None:
    """Return the mark that a change goes against and the names of its values; None for none."""
    mark = _mark_of(change, observed)
    if mark is None:
        return None
    if isinstance(change, Delete):
        return (mark, (ITSELF,)) if ITSELF in mark.values else None
    if isinstance(change, Create):
        is_same = mark.values.get(ITSELF) == spec_digest(change.resource.spec)
        return (mark, (ITSELF,)) if is_same else None
    names = tuple(
        each.name
        for each in field_changes(change)
        if not each.kept
        and each.name in mark.values
        and mark.values[each.name] == value_digest(each.after)
    )
    return (mark, names) if names else None


def undone_blocks(
    changes: Sequence[Change], observed: ObservedState, redo: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield why changes must not bring back what an undo took back.

    ``redo`` are the folded addresses that ``--redo`` names. A change that is an undo itself, and so
    leaves a mark, is not judged.
    """
    for change in changes:
        held = held_of(change)
        refs = [ref_of(change), *([held.ref] if held else [])]
        if _is_undo(change) or any(ref.folded in redo for ref in refs):
            continue
        found = brought_back(change, observed)
        if found is not None:
            yield _block(change, *found)


def _is_undo(change: Change) -> bool:
    mark = change.undone if isinstance(change, Delete) else change.resource.undone
    return mark is not None


def _mark_of(change: Change, observed: ObservedState) -> Undone | None:
    if isinstance(change, Create):
        return observed.undone.get(change.resource.ref.folded)
    return change.held.undone


def _block(change: Change, mark: Undone, names: Sequence[str]) -> Diagnostic:
    ref = ref_of(change)
    if names == (ITSELF,):
        is_delete = isinstance(change, Delete)
        what, back = ("deleted", "brought it back") if is_delete else ("made", "removed it")
        said = f"{ref} would be {what} again: run {mark.run} {back} when it undid run {mark.of}"
    else:
        said = f"{ref} would get back {', '.join(names)}, which run {mark.run} undid (of {mark.of})"
    reason = f" because: {mark.reason}" if mark.reason else ""
    return error(
        UNDONE,
        "an undone change would be applied again",
        f"{said}{reason}. Change the manifests (git revert the commit that was undone); if it is "
        f"meant after all, allow just that: --redo {shlex.quote(ref.address)}.",
        None if isinstance(change, Delete) else change.resource.source.place("metadata", "name"),
        ref,
    )
