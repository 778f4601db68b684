"""The state of an object as its events add up, and the events that an update means.

Kinds differ in their events, not in what is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import (
    ActionAdded,
    ActionChanged,
    AppOidcAdded,
    AppOidcConfigChanged,
    AppOidcSecretChanged,
    AppRenamed,
    ContextRecorded,
    Deactivated,
    Deleted,
    Event,
    FlowActionDropped,
    FlowRemoved,
    FlowTriggerSet,
    IdpJwtAdded,
    IdpJwtConfigChanged,
    IdpRenamed,
    OrganizationAdded,
    ProjectAdded,
    ProjectChanged,
    Reactivated,
    Renamed,
)
from reconciler.service.domain.oidc_application import check_spec, ends_secret
from reconciler.service.domain.refusal import in_that_state


@dataclass(frozen=True, slots=True)
class Unborn:
    """An id that no event was written under yet, and the organization it is meant for."""

    id: str
    organization: str


@dataclass(frozen=True, slots=True)
class Held:
    """The state of an object after its events so far.

    Attributes:
        parent: Project of an application, organization of anything else; an organization has
            none.
        spec: The fields in normal form.
        secret_hash: SHA-256 of the client secret, in hexadecimal; empty where there is none.
        active: Whether it is switched on. Every object is at first.
    """

    kind: Kind
    id: str
    organization: str
    parent: str
    name: str
    spec: Spec
    client_id: str = ""
    secret_hash: str = ""
    active: bool = True


@dataclass(frozen=True, slots=True)
class Removed:
    """An object that is no more. Its id is never used again."""

    id: str
    organization: str


State: TypeAlias = Unborn | Held | Removed


class ImpossibleHistoryError(ValueError):
    """An event that cannot follow what was before it: the log is not one this program wrote."""

    def __init__(self, event: object, state: State) -> None:
        super().__init__(f"{type(event).__name__} cannot follow {type(state).__name__}")


def evolve(state: State, event: Event) -> State:
    """Return an object as it is after one more event.

    Raises:
        ImpossibleHistoryError: the event cannot follow what was before.
    """
    # The same for every kind; what only some kinds have is in the two functions below.
    if isinstance(state, Unborn):
        return _added(state, event)
    if isinstance(state, Held):
        if isinstance(event, ContextRecorded):
            return state
        if isinstance(event, Deactivated | Reactivated):
            return replace(state, active=isinstance(event, Reactivated))
        is_last = isinstance(event, Deleted)
        return Removed(state.id, state.organization) if is_last else _changed(state, event)
    raise ImpossibleHistoryError(event, state)


def _added(state: Unborn, event: Event) -> Held:
    new, owner = state.id, state.organization
    match event:
        case OrganizationAdded(name):
            return Held(Kind.ORGANIZATION, new, owner, "", name, {})
        case ProjectAdded(name, spec):
            return Held(Kind.PROJECT, new, owner, owner, name, spec)
        case IdpJwtAdded(name, spec):
            return Held(Kind.IDP_JWT_CONFIG, new, owner, owner, name, spec)
        case AppOidcAdded(name, project, client_id, secret_hash, spec):
            kind = Kind.OIDC_APPLICATION
            return Held(kind, new, owner, project, name, spec, client_id, secret_hash)
        case ActionAdded(name, spec):
            return Held(Kind.ACTION, new, owner, owner, name, spec)
        case FlowTriggerSet(flow):
            return Held(Kind.ACTION_FLOW, new, owner, owner, flow, triggers_after({}, event))
        case _:
            raise ImpossibleHistoryError(event, state)


def _changed(state: Held, event: Event) -> Held:
    match event:
        case IdpRenamed(name) | AppRenamed(name):
            return replace(state, name=name)
        case IdpJwtConfigChanged(spec):
            return replace(state, spec=spec)
        case AppOidcConfigChanged(spec):
            kept = "" if ends_secret(state.spec, spec) else state.secret_hash
            return replace(state, spec=spec, secret_hash=kept)
        case AppOidcSecretChanged(secret_hash):
            return replace(state, secret_hash=secret_hash)
        case ProjectChanged(name, spec) | ActionChanged(name, spec):
            return replace(state, name=name, spec=spec)
        case FlowTriggerSet() | FlowActionDropped() if state.kind is Kind.ACTION_FLOW:
            return replace(state, spec=triggers_after(state.spec, event))
        case _:
            raise ImpossibleHistoryError(event, state)


def rename(held: Held, name: str, renamed: type[Renamed]) -> tuple[Event, ...]:
    """Return the event of another name; the same one is no event."""
    return () if held.name == name else (renamed(name),)


def change_project(held: Held, name: str, spec: Spec) -> tuple[Event, ...]:
    """Return the event of an update of a project; one that changes nothing is no event."""
    return () if (held.name, held.spec) == (name, spec) else (ProjectChanged(name, spec),)


def switch(held: Held, event: Deactivated | Reactivated) -> tuple[Event, ...]:
    """Return the event of another state.

    Raises:
        Refusal: the object is in that state already.
    """
    if held.active is isinstance(event, Reactivated):
        raise in_that_state("active" if held.active else "inactive")
    return (event,)


def change_jwt_config(held: Held, spec: Spec) -> tuple[Event, ...]:
    """Return the event of another JWT configuration; one that changes nothing is no event."""
    return () if held.spec == spec else (IdpJwtConfigChanged(spec),)


def change_oidc_config(held: Held, spec: Spec) -> tuple[Event, ...]:
    """Return the event of another OIDC configuration; one that changes nothing is no event.

    Raises:
        Refusal: OIDC does not know how to carry it out.
    """
    check_spec(spec)
    return () if held.spec == spec else (AppOidcConfigChanged(spec),)


def change_action(held: Held, name: str, spec: Spec) -> tuple[Event, ...]:
    """Return the event of an update of an action; one that changes nothing is no event."""
    return () if (held.name, held.spec) == (name, spec) else (ActionChanged(name, spec),)


def triggers_after(triggers: Spec, event: FlowTriggerSet | FlowActionDropped) -> Spec:
    """Return the triggers of a flow after one more event: names with the ids of their actions.

    Triggers without actions are left out.
    """
    if isinstance(event, FlowTriggerSet):
        after = {**triggers, event.trigger: [*event.actions]}
    else:
        after = {
            trigger: [action for action in actions if action != event.action]
            for trigger, actions in triggers.items()
        }
    return {trigger: actions for trigger, actions in after.items() if actions}


def change_flow(triggers: Spec, event: FlowTriggerSet | FlowActionDropped) -> tuple[Event, ...]:
    """Return the event of a change of a flow's triggers; one that changes nothing is no event.

    A flow that has no actions afterwards is removed.
    """
    after = triggers_after(triggers, event)
    if after == triggers:
        return ()
    return (event,) if after else (FlowRemoved(),)
