"""The state of an object as its events add up, and the events that an update means."""

from __future__ import annotations

from dataclasses import replace

from reconciler.kinds.events import EVENTS
from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import (
    Added,
    Changed,
    ContextRecorded,
    Deactivated,
    Event,
    Held,
    ImpossibleHistoryError,
    MarkEvent,
    OwnEvent,
    Reactivated,
    Removed,
    Renamed,
    State,
    Unborn,
)
from reconciler.service.domain.refusal import in_that_state


def evolve(state: State, event: Event) -> State:
    """Return an object as it is after one more event.

    Raises:
        ImpossibleHistoryError: the event cannot follow what was before.
    """
    if isinstance(state, Unborn):
        if isinstance(event, Added):
            return _added(state, event)
        if isinstance(event, OwnEvent):
            return event.after(state)
    elif state is not None and state.kind is event.kind:
        return _changed(state, event)
    raise ImpossibleHistoryError(event, state)


def _added(state: Unborn, event: Added) -> Held:
    owner = state.organization
    parent = event.project or ("" if event.kind is Kind.ORGANIZATION else owner)
    return Held(
        event.kind, state.id, owner, parent, event.name, event.spec,
        event.client_id, event.secret_hash,
    )  # fmt: skip


def _changed(state: Held, event: Event) -> State:
    match event:
        case Renamed(name=name):
            return replace(state, name=name)
        case Changed(spec=spec):
            ended = EVENTS[state.kind].ends_secret(state.spec, spec)
            return replace(state, spec=spec, secret_hash="" if ended else state.secret_hash)
        case Deactivated() | Reactivated():
            return replace(state, active=isinstance(event, Reactivated))
        case ContextRecorded() | MarkEvent():
            return state
        case Removed():
            return None
        case OwnEvent():
            return event.after(state)
        case _:
            raise ImpossibleHistoryError(event, state)


def change(held: Held, *, name: str | None = None, spec: Spec | None = None) -> tuple[Event, ...]:
    """Return the events of an update of name or fields; what stays the same is no event."""
    events: list[Event] = []
    if name is not None and name != held.name:
        events.append(Renamed(held.kind, name))
    if spec is not None and spec != held.spec:
        events.append(Changed(held.kind, spec))
    return tuple(events)


def switch(held: Held, *, active: bool) -> tuple[Event, ...]:
    """Return the event of another state.

    Raises:
        Refusal: the object is in that state already.
    """
    if held.active is active:
        raise in_that_state("active" if held.active else "inactive")
    return (Reactivated(held.kind) if active else Deactivated(held.kind),)
