"""Causes of a change, and of the difference in each of its fields.

They are found by comparing what this tree applied last (from the object's history), what is held
and what is declared. Where the tree wrote the last event, only the manifests can have changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconciler.plan.diff import CREDENTIAL, OWNER, FieldChange, field_changes
from reconciler.plan.history import AT_FIRST, since_applied
from reconciler.plan.model import (
    Cause,
    CauseKind,
    Change,
    Create,
    Delete,
    Plan,
    Rewrite,
    Update,
    is_secret_alone,
    only_takes_over,
    ref_of,
    signs_in_with_secret,
    word,
)
from reconciler.resources.ref import ResourceRef
from reconciler.state import Event, ObjectEvent, ObservedObject

NOT_READ = Cause(CauseKind.UNKNOWN)
"""The cause of a field in a plan that had no history to read: one against a snapshot."""

_NOT_READ_IN_WORDS = "cause not read: a snapshot has no history"
_PLAIN: Mapping[CauseKind, str] = {
    CauseKind.DECLARED: "declared differently since it was last applied",
    CauseKind.NEVER_APPLIED: "never applied by this tree",
    CauseKind.UNDECLARED: "no longer declared",
    CauseKind.UNDO: "to be as it was before the run that is undone",
    CauseKind.ROTATE_MISSING: "asked for with --rotate-missing",
    CauseKind.LACKING: "declared with a client secret, and the service holds none",
    CauseKind.ELSEWHERE: "declared in a manifest that this run did not read",
}


OF_AN_UNDO = Cause(CauseKind.UNDO)
"""The cause of every change of an undo: it needs no history."""


def cause_of(change: Change, tree: str) -> Cause:
    """Return why a change of a tree's plan is there."""
    if isinstance(change, Create):
        return Cause(CauseKind.NOT_HELD)
    held = change.held
    if only_takes_over(change):
        return _taken_over(held)
    return _secret_cause(change) if is_secret_alone(change) else _by_last_event(change, tree)


def _by_last_event(change: Rewrite | Delete, tree: str) -> Cause:
    """Return the cause of a change that alters fields or deletes, by the last writer."""
    held = change.held
    if not held.changed_by:
        return Cause(CauseKind.UNKNOWN)
    if tree not in held.trees:
        return Cause(CauseKind.NEVER_APPLIED)
    if isinstance(change, Update) and held.changed_in != tree:
        return last_change(held)
    return Cause(CauseKind.UNDECLARED if isinstance(change, Delete) else CauseKind.DECLARED)


def _secret_cause(change: Change) -> Cause:
    """Return the cause of a new client secret: no event is behind it."""
    asked = isinstance(change, Rewrite) and change.new_secret
    return Cause(CauseKind.ROTATE_MISSING if asked else CauseKind.LACKING)


def last_change(held: ObservedObject) -> Cause:
    """Return the object's last event as a cause."""
    return Cause(
        CauseKind.SERVICE, held.changed_by, held.changed_at, held.sequence, held.changed_in
    )


def event_as_cause(event: Event) -> Cause:
    """Return an event as the cause of what it changed."""
    return Cause(CauseKind.SERVICE, event.writer, event.at, event.sequence, event.said("tree"))


def changed_on_service(plan: Plan) -> tuple[Update, ...]:
    """Return the updates of objects that others may have changed: their histories show it."""
    tree = plan.scope.tree
    changes = () if plan.scope.undo else plan.changes
    return tuple(
        change for change in changes if isinstance(change, Update) and _may_be_changed(change, tree)
    )


def _may_be_changed(change: Update, tree: str) -> bool:
    """Return whether a writer other than this tree may have changed fields of an object.

    A secret that was rotated by hand is an event of the tree without a plan. It applies nothing,
    so that a change before it may be another writer's.
    """
    cause, held = cause_of(change, tree), change.held
    rotated = not held.changed_for and signs_in_with_secret(held)
    return cause.kind is CauseKind.SERVICE or (cause.kind is CauseKind.DECLARED and rotated)


def field_causes(
    change: Update, events: Sequence[ObjectEvent], tree: str
) -> Mapping[str, tuple[FieldChange, Cause]]:
    """Return each field of an update with its cause, from the object's events.

    Without an event of this tree every field counts as changed by the last writer.
    """
    since = since_applied(events, tree)
    found = {}
    for field in field_changes(change):
        if told := _cause_without_event(change, field.name):
            cause = told
        elif since is None:
            cause = last_change(change.held)
        else:
            applied = since.applied.get(field.name, AT_FIRST.get(field.name))
            altered = since.altered.get(field.name)
            writer = event_as_cause(altered) if altered else last_change(change.held)
            cause = _compared(applied, field, writer)
        found[field.name] = (field, cause)
    return found


def causes_not_read(plan: Plan) -> Mapping[ResourceRef, Mapping[str, Cause]]:
    """Return the causes of updates that others may have made, where no history can be read."""
    return {
        ref_of(change): {
            field.name: _cause_without_event(change, field.name) or NOT_READ
            for field in field_changes(change)
        }
        for change in changed_on_service(plan)
    }


def _cause_without_event(change: Update, name: str) -> Cause | None:
    """Return the cause of a difference that no event has a value of; None for other fields."""
    if name == CREDENTIAL:
        return _secret_cause(change)
    return _taken_over(change.held) if name == OWNER else None


def _taken_over(held: ObservedObject) -> Cause:
    """Return the cause of a new owner: the tree that owned the object."""
    return Cause(CauseKind.TAKE_OVER, tree=held.owner or "")


def _compared(applied: object, field: FieldChange, writer: Cause) -> Cause:
    """Return the cause of a difference between what is held (before) and declared (after)."""
    if applied == field.before:
        return Cause(CauseKind.DECLARED)
    if applied == field.after:
        return writer
    return Cause(CauseKind.BOTH, writer.by, writer.at, writer.sequence, writer.tree)


def cause_in_plan(plan: Plan, change: Change) -> Cause:
    """Return why a change is there, as far as its plan knows: also what blocks a delete."""
    if plan.is_of_moments:
        told = _between_moments(plan, change).values()
        return max(told, key=lambda cause: cause.sequence, default=Cause(CauseKind.UNKNOWN))
    if plan.scope.undo:
        return OF_AN_UNDO
    if isinstance(change, Delete) and change.held.ref in plan.declared_elsewhere:
        return Cause(CauseKind.ELSEWHERE)
    if NOT_READ in plan.causes.get(ref_of(change), {}).values():
        return NOT_READ
    return cause_of(change, plan.scope.tree)


def _between_moments(plan: Plan, change: Change) -> Mapping[str, Cause]:
    """Return the causes of a change between two moments; of an update, by the names of fields."""
    known = plan.causes.get(ref_of(change), {})
    if isinstance(change, Update):
        names = {field.name for field in field_changes(change)}
        return {name: cause for name, cause in known.items() if name in names}
    return {name: cause for name, cause in known.items() if name == word(change)}


def cause_of_field(plan: Plan, change: Change, name: str) -> Cause | None:
    """Return why a field of an update differs; None for a change of another kind.

    Where the history was not read, the cause of the whole update stands for each field.
    """
    if not isinstance(change, Update):
        return None
    if plan.scope.undo:
        return OF_AN_UNDO
    known = plan.causes.get(ref_of(change), {}).get(name)
    own = _cause_without_event(change, name)
    return known or own or cause_of(change, plan.scope.tree)


def causes_in_words(plan: Plan, change: Change, *, dated: bool = True) -> Iterator[str]:
    """Yield why a change is there; fields are named only where their causes differ.

    Causes that are not ``dated`` have neither times nor sequences.
    """
    if plan.compared_with and not plan.is_of_moments:
        return
    fields: dict[Cause, list[str]] = {}
    known = plan.causes.get(ref_of(change), {})
    for name, cause in (_between_moments(plan, change) if plan.is_of_moments else known).items():
        fields.setdefault(_as_told(cause, dated=dated), []).append(name)
    if not fields:
        words = cause_in_words(_as_told(cause_in_plan(plan, change), dated=dated))
        if words:
            yield words
        is_asked = isinstance(change, Rewrite) and change.new_secret
        if is_asked and not is_secret_alone(change):
            yield f"{CREDENTIAL}: {cause_in_words(_secret_cause(change))}"
    for cause, names in fields.items():
        named = f"{', '.join(names)}: " if len(fields) > 1 else ""
        yield named + (_NOT_READ_IN_WORDS if cause == NOT_READ else cause_in_words(cause))


def _as_told(cause: Cause, *, dated: bool) -> Cause:
    return cause if dated else Cause(cause.kind, cause.by, tree=cause.tree, why=cause.why)


def cause_in_words(cause: Cause) -> str:
    """Return a cause as half a sentence; empty where there is nothing to say."""
    match cause.kind:
        case CauseKind.SERVICE:
            return f"changed on the service since, {writer_in_words(cause)}"
        case CauseKind.BOTH:
            writer = writer_in_words(cause)
            return f"declared differently, and changed on the service since, {writer}"
        case CauseKind.EVENT:
            return writer_in_words(cause) + (f", {cause.why}" if cause.why else "")
        case CauseKind.TAKE_OVER:
            return f"taken over from {f'tree {cause.tree}' if cause.tree else 'no tree'}"
        case _:
            return _PLAIN.get(cause.kind, "")


def writer_in_words(cause: Cause) -> str:
    """Return who wrote the event of a cause, for which tree, and when if that is known."""
    tree = f" for tree {cause.tree}" if cause.tree else ""
    when = f" at {cause.at} (sequence {cause.sequence})" if cause.at else ""
    return f"by {cause.by}{tree}{when}"
