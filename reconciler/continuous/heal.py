"""Healing: the part of a plan that undoes what drift says was changed on the service.

Only values that this tree applied before come back. What is more than that is left and said: an
object that was deleted or made again, a new client secret, a change with a severe risk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from reconciler.plan.causes import last_change
from reconciler.plan.diff import field_changes
from reconciler.plan.drift import Drift, DriftedObject
from reconciler.plan.model import (
    Change,
    Create,
    Delete,
    Plan,
    Rewrite,
    held_of,
    makes_secret,
    ref_of,
)
from reconciler.plan.risk import is_severe, names_of, risks_of
from reconciler.plan.undone import UNDONE
from reconciler.resources.ref import ResourceRef
from reconciler.resources.references import references


class Left(NamedTuple):
    """A drifted object that is not healed, and why."""

    ref: ResourceRef
    id: str
    why: str


class Heal(NamedTuple):
    """A plan that heals, and what it leaves."""

    plan: Plan
    left: tuple[Left, ...]


CONTESTED = "contested: it was healed three times within an hour and changed again"


def heal_of(plan: Plan, drift: Drift, contested: Collection[str] = ()) -> Heal:
    """Return the part of a plan that heals.

    ``plan`` and ``drift`` are of the manifests that were applied last, and of one observation.
    ``contested`` has the ids of objects to leave alone. The blocks of the plan stay: guards judge
    it as a whole.
    """
    changes = {ref_of(change).key: change for change in plan.changes}
    missing = {key for key, change in changes.items() if isinstance(change, Create)}
    undone = _undone(plan, changes)
    kept: set[ResourceRef] = set()
    left = list(undone.values())
    for drifted in (*drift.objects, *_differing(plan, drift)):
        key = drifted.ref.key
        if key in undone:
            continue
        if why := _why_left(drifted, changes.get(key), missing, contested):
            left.append(Left(drifted.ref, drifted.id, why))
        else:
            kept.add(key)
    healing = tuple(change for change in plan.changes if ref_of(change).key in kept)
    # What an undo took back is no part of the heal, so its guard does not stop the rest.
    blocks = tuple(block for block in plan.blocks if block.code != UNDONE)
    return Heal(replace(plan, changes=healing, blocks=blocks), tuple(left))


def _undone(plan: Plan, changes: Mapping[ResourceRef, Change]) -> Mapping[ResourceRef, Left]:
    """Return what stays undone, by the key of its ref: the manifests would bring it back."""
    found: dict[ResourceRef, Left] = {}
    for block in plan.blocks:
        if block.code == UNDONE and block.ref is not None:
            held = held_of(changes[block.ref.key])
            by = f" by run {held.undone.run}" if held and held.undone else ""
            found[block.ref.key] = Left(block.ref, held.id if held else "", f"undone{by}")
    return found


def _differing(plan: Plan, drift: Drift) -> Iterator[DriftedObject]:
    """Yield what differs where the service does not report by whom.

    All of it was applied just so, so that it was changed on the service since.
    """
    untold = {ref.key for ref in drift.untold}
    for change in plan.changes:
        # Such a service does not report either that this tree applied it: an update is an adoption.
        if isinstance(change, Rewrite) and ref_of(change).key in untold:
            held = change.held
            yield DriftedObject(ref_of(change), held.id, last_change(held), field_changes(change))


def _why_left(
    drifted: DriftedObject,
    change: Change | None,
    missing: Collection[ResourceRef],
    contested: Collection[str],
) -> str:
    """Return why a drifted object is not healed; empty where it is."""
    if drifted.id in contested:
        return CONTESTED
    if isinstance(change, Create):
        return "it was deleted or renamed; made again, it would be another object"
    if drifted.removed_id or change is None or isinstance(change, Delete):
        return "another object has its name now"
    return _more_than_before(drifted, change) or _risky(change) or _lacking(change, missing)


def _risky(change: Rewrite) -> str:
    severe = [risk for risk in risks_of(change) if is_severe(risk.name)]
    return f"the way back has a risk ({names_of(severe)})" if severe else ""


def _lacking(change: Rewrite, missing: Collection[ResourceRef]) -> str:
    resource = change.resource
    lacking = [ref for ref, _ in references(resource.ref, resource.spec) if ref.key in missing]
    return f"it needs {lacking[0]}, which was deleted" if lacking else ""


def _more_than_before(drifted: DriftedObject, change: Rewrite) -> str:
    """Return why an update does more than bring back values that were applied before."""
    if makes_secret(change):
        return "it would need a new client secret"
    undone = {field.name for field in drifted.fields} - drifted.declared.keys()
    others = [field.name for field in field_changes(change) if field.name not in undone]
    if others or change.new_owner:
        return f"the update would also change {', '.join(others) or 'its owner'}"
    return ""
