"""The history of a flow, told as that of any other object: what it was after each event.

Events of a flow name one trigger each, and actions by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.resources.call import JsonObject
from reconciler.resources.ref import ACTION
from reconciler.state import ObjectEvent, ObservedState, Removal

_SET, _DROPPED, _REMOVED = "flow.trigger.set", "flow.action.dropped", "flow.removed"


def action_names(observed: ObservedState) -> Mapping[str, str]:
    """Return the names of the actions that are held, by id."""
    return {held.id: held.ref.name for held in observed.everything if held.ref.kind is ACTION}


def all_names(
    events: Sequence[ObjectEvent],
    names: Mapping[str, str],
    removals: Callable[[], Sequence[Removal]],
) -> Mapping[str, str]:
    """Return names of actions by id, with those of removed ones that events of a flow name.

    ``removals`` is a request: it is asked only where ``names`` lacks an action.
    """
    if names.keys() >= set(_actions(events)):
        return names
    removed = {gone.id: gone.ref.name for gone in removals() if gone.ref.kind is ACTION}
    return {**removed, **names}


def _actions(events: Sequence[ObjectEvent]) -> Iterator[str]:
    """Yield the id of each action that events of a flow name."""
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
