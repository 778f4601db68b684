"""Differences since a plan was approved: object by object.

An approved plan and the plan of this moment are compared change by change. Where they differ,
either the manifests say something else now or the service does, and the reader is told which.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from reconciler.plan.causes import cause_in_words, cause_of
from reconciler.plan.digest import essence
from reconciler.plan.model import CauseKind, Change, Delete, Plan, held_of, ref_of, word
from reconciler.resources.ref import ResourceRef
from reconciler.state import DesiredState, ObservedState


@dataclass(frozen=True, slots=True)
class Moved:
    """One object of which a plan is no longer the same, and how."""

    ref: ResourceRef
    how: str

    def __str__(self) -> str:
        return f"{self.ref}: {self.how}"


def moved(
    approved: Plan, now: Plan, desired: DesiredState, observed: ObservedState
) -> tuple[Moved, ...]:
    """Return every object about which two plans differ, in the order of the approved one."""
    before, after = _by_ref(approved), _by_ref(now)
    in_step = {ref.key for ref in approved.in_step}
    found = [
        *(_change(old, after.get(key), desired, observed) for key, old in before.items()),
        *(
            _new(change, approved.scope.tree, in_step)
            for key, change in after.items()
            if key not in before
        ),
    ]
    known = {each.ref.key for each in found if each} | before.keys() | after.keys()
    return (*filter(None, found), *_in_step(approved, now, known))


def other_options(approved: Plan, now: Plan) -> tuple[str, ...]:
    """Return the options that are not as they were when a plan was approved, in words."""
    return tuple(
        _option(f"--{name.replace('_', '-')}", was)
        for name in type(approved.scope).__slots__
        if (was := getattr(approved.scope, name)) != getattr(now.scope, name)
    )


def _option(flag: str, value: object) -> str:
    if not value:
        return f"without {flag}"
    if isinstance(value, tuple):
        return "with " + " ".join(f"{flag} {_text(each)}" for each in value)
    return f"with {flag}" if value is True else f"with {flag} {value}"


def _text(value: object) -> str:
    return value.address if isinstance(value, ResourceRef) else str(value)


def _by_ref(plan: Plan) -> Mapping[ResourceRef, Change]:
    return {ref_of(change).key: change for change in plan.changes}


def _change(
    old: Change, new: Change | None, desired: DesiredState, observed: ObservedState
) -> Moved | None:
    ref = ref_of(old)
    if new is None:
        return Moved(ref, _no_change_any_more(old, desired, observed))
    if essence(old) == essence(new):
        return None
    return Moved(ref, "; ".join(_differences(old, new)))


def _differences(old: Change, new: Change) -> Iterator[str]:
    was, held = held_of(old), held_of(new)
    if was is not None and held is None:
        yield f"gone from the service (it was id {was.id})"
    elif was is None and held is not None:
        yield f"the service holds it since, made by {_who(new)}"
    elif was is not None and held is not None and was.id != held.id:
        yield f"another object has the name: id {was.id} then, {held.id} now"
    elif was is not None and held is not None and was.sequence != held.sequence:
        sequences = f"sequence {was.sequence} -> {held.sequence}"
        yield f"changed on the service since, by {_who(new)} ({sequences})"
    if _after(old) != _after(new):
        yield "declared differently"
    if word(old) != word(new):
        yield f"it was to {word(old)}, and is now to {word(new)}"


def _no_change_any_more(old: Change, desired: DesiredState, observed: ObservedState) -> str:
    """Return why there is nothing to do about an object any more."""
    ref, was = ref_of(old), held_of(old)
    held = observed.objects.get(ref.key)
    if isinstance(old, Delete):
        return "gone from the service" if held is None else "declared, or kept for another reason"
    if ref.key not in desired.resources:
        return "no longer declared"
    if held is None:
        return "gone from the service"
    if was is None or was.sequence != held.sequence:
        since = f"sequence {was.sequence if was else 'none'} -> {held.sequence}"
        writer = held.changed_by or "an unknown writer"
        return f"in step since, changed on the service by {writer} ({since})"
    return "declared as the service holds it"


def _new(change: Change, tree: str, known: Collection[ResourceRef]) -> Moved:
    ref = ref_of(change)
    how = f"new in the plan, to {word(change)}"
    if held_of(change) is None:
        gone = ref.key in known
        return Moved(ref, f"{how}: {'gone from the service' if gone else 'declared since'}")
    cause = cause_of(change, tree)
    if cause.kind is CauseKind.SERVICE:
        return Moved(ref, f"{how}: {cause_in_words(cause)}")
    if isinstance(change, Delete):
        return Moved(ref, f"{how}: {'no longer declared' if ref.key in known else 'made since'}")
    return Moved(ref, f"{how}: declared differently")


def _in_step(approved: Plan, now: Plan, known: set[ResourceRef]) -> Iterator[Moved]:
    """Yield what was in step and is not declared any more, and what is declared since."""
    before = {ref.key: ref for ref in approved.in_step}
    after = {ref.key: ref for ref in now.in_step}
    for key in before.keys() - after.keys() - known:
        yield Moved(before[key], "was in step, and is no longer declared")
    for key in after.keys() - before.keys() - known:
        yield Moved(after[key], "declared since, and in step")


def _who(change: Change) -> str:
    held = held_of(change)
    if held is None or not held.changed_by:
        return "somebody"
    return f"{held.changed_by} at {held.changed_at}"


def _after(change: Change) -> object:
    return essence(change)[-1]
