"""The history of an object: what each event changed, and what a tree applied last.

Events of a flow name one trigger each, and actions by id; here each has the whole spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from reconciler.plan.diff import ACTIVE, CRITICAL, NAME, PREVENT_DELETE, FieldChange
from reconciler.resources.call import JsonObject
from reconciler.resources.fields import Spec
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import ACTION, ACTION_FLOW
from reconciler.state import ObjectEvent, ObservedState, Removal

_REGENERATED = ".secret.changed"
_OF_SECRETS = (_REGENERATED, ".secret.claimed")  # they say nothing of what a tree declared
_STATES = (".deactivated", ".reactivated")
# Values before any event that says another one. No event tells of a trigger that stays empty.
AT_FIRST: Spec = {
    PREVENT_DELETE: False,
    CRITICAL: False,
    ACTIVE: True,
    **DEFAULTS[ACTION_FLOW],
}
_MARKS = {"preventDelete": PREVENT_DELETE, "critical": CRITICAL}


@dataclass(frozen=True, slots=True)
class Step:
    """One event of an object, and what it made different.

    Attributes:
        fields: By the names that manifests use; the first event has every field.
        secret: Whether the application was given another client secret.
        removed: Whether the object is no more.
    """

    event: ObjectEvent
    fields: tuple[FieldChange, ...]
    secret: bool = False
    removed: bool = False


def steps_of(events: Sequence[ObjectEvent]) -> Iterator[Step]:
    """Yield what each event changed, oldest first."""
    before: Spec = {}
    for event in events:
        after = _fields_after(before, event)
        yield Step(
            event,
            tuple(
                FieldChange(name, before.get(name, True if name == ACTIVE else None), value)
                for name, value in after.items()
                if name not in before or before[name] != value
            ),
            secret="secret_hash" in event.payload or gives_secret(event),
            removed=event.type.endswith(".removed"),
        )
        before = after


class SinceApplied(NamedTuple):
    """An object's fields as a tree applied them last, and what altered them afterwards.

    Attributes:
        applied: By the names that manifests use.
        altered: The last event that gave a field another value, by its name.
    """

    applied: Spec
    altered: Mapping[str, ObjectEvent]


def since_applied(events: Sequence[ObjectEvent], tree: str) -> SinceApplied | None:
    """Return what a tree applied last and what happened since; None if it applied nothing."""
    fields: Spec = {}
    altered: dict[str, ObjectEvent] = {}
    applied = None
    for event in events:
        before, fields = fields, _fields_after(fields, event)
        if event.context.get("tree") == tree and not event.type.endswith(_OF_SECRETS):
            applied, altered = fields, {}
            continue
        for name, value in fields.items():
            if before.get(name) != value:
                altered[name] = event
    return None if applied is None else SinceApplied(applied, altered)


def gives_secret(event: ObjectEvent) -> bool:
    """Return whether an event replaced the client secret of an existing application."""
    return event.type.endswith(_REGENERATED)


def _fields_after(before: Spec, event: ObjectEvent) -> Spec:
    after = dict(before)
    name, spec = event.payload.get("name"), event.payload.get("spec")
    if isinstance(name, str):
        after[NAME] = name
    for written, shown in _MARKS.items():
        value = event.context.get(written)
        if isinstance(value, bool) and (value or shown in before):
            after[shown] = value
    if isinstance(spec, dict):
        after.update(spec)
    if event.type.endswith(_STATES):
        after[ACTIVE] = event.type.endswith(_STATES[1])
    return after


_SET, _DROPPED, _REMOVED = "flow.trigger.set", "flow.action.dropped", "flow.removed"


def action_names(observed: ObservedState) -> Mapping[str, str]:
    """Return the names of the actions that are held, by id."""
    return {held.id: held.ref.name for held in observed.everything if held.ref.kind is ACTION}


def lacks_names(events: Sequence[ObjectEvent], names: Mapping[str, str]) -> bool:
    """Return whether events of a flow name an action that is not among ``names``, by id."""
    return not names.keys() >= set(_actions(events))


def names_of_removed(removals: Sequence[Removal]) -> Mapping[str, str]:
    """Return the names of the actions that were removed, by id."""
    return {gone.id: gone.ref.name for gone in removals if gone.ref.kind is ACTION}


def _actions(events: Sequence[ObjectEvent]) -> Iterator[str]:
    for event in events:
        if event.type == _SET:
            yield from _ids(event.payload)


def with_specs(events: Sequence[ObjectEvent], names: Mapping[str, str]) -> Sequence[ObjectEvent]:
    """Return events of an object; those of a flow with its whole spec.

    An action that is not among ``names``, which are by id, is told by its id.
    """
    triggers: dict[str, list[str]] = {}
    told = []
    for event in events:
        if event.type not in {_SET, _DROPPED, _REMOVED}:
            told.append(event)
            continue
        triggers = _after(triggers, event.type, event.payload)
        spec = {
            trigger: [names.get(action, f"(action of id {action})") for action in actions]
            for trigger, actions in triggers.items()
        }
        told.append(replace(event, payload={"spec": spec}))
    return told


def _after(
    triggers: Mapping[str, list[str]], event: str, payload: JsonObject
) -> dict[str, list[str]]:
    """Return the ids of the actions of each trigger that ever had any, after an event."""
    if event == _SET:
        return {**triggers, str(payload.get("trigger", "")): _ids(payload)}
    if event == _REMOVED:
        return {trigger: [] for trigger in triggers}
    gone = payload.get("action")
    return {
        trigger: [action for action in actions if action != gone]
        for trigger, actions in triggers.items()
    }


def _ids(payload: JsonObject) -> list[str]:
    actions = payload.get("actions")
    return [str(action) for action in actions] if isinstance(actions, list) else []
