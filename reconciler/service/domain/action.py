"""An action: its events, and what they make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from reconciler.resources.ref import Kind
from reconciler.service.domain.held import Held, ImpossibleHistoryError, Removed, State, Unborn


@dataclass(frozen=True, slots=True)
class ActionAdded:
    """An action came into being."""

    TYPE: ClassVar[str] = "action.added"
    name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ActionChanged:
    """It was updated as a whole, its name included."""

    TYPE: ClassVar[str] = "action.changed"
    name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ActionRemoved:
    """It is no more."""

    TYPE: ClassVar[str] = "action.removed"


ActionEvent = ActionAdded | ActionChanged | ActionRemoved


def change(held: Held, name: str, spec: Mapping[str, Any]) -> tuple[ActionEvent, ...]:
    """Decide what an update means; one that changes nothing is no event."""
    if (held.name, held.spec) == (name, spec):
        return ()
    return (ActionChanged(name, spec),)


def evolve(state: State, event: ActionEvent) -> State:
    """Return the action as it is after one more event."""
    match event, state:
        case ActionAdded(name, spec), Unborn(action_id, owner):
            return Held(Kind.ACTION, action_id, owner, owner, name, spec)
        case ActionChanged(name, spec), Held():
            return replace(state, name=name, spec=spec)
        case ActionRemoved(), Held():
            return Removed(state.id, state.organization)
        case _:
            raise ImpossibleHistoryError(event, state)
