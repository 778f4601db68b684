"""Every event there is, and which function remembers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, get_args

from reconciler.service.domain import (
    action,
    identity_provider,
    oidc_application,
    organization,
    project,
)
from reconciler.service.domain.action import ActionEvent
from reconciler.service.domain.held import Held, ImpossibleHistoryError, State
from reconciler.service.domain.identity_provider import IdpEvent
from reconciler.service.domain.oidc_application import AppEvent, AppOidcSecretClaimed
from reconciler.service.domain.organization import OrganizationEvent
from reconciler.service.domain.project import ProjectEvent


@dataclass(frozen=True, slots=True)
class ContextRecorded:
    """Nothing about the object changed, but why it is as it is: a tree took it over."""

    TYPE: ClassVar[str] = "context.recorded"


Event: TypeAlias = (
    OrganizationEvent | ProjectEvent | IdpEvent | AppEvent | ActionEvent | ContextRecorded
)


def _record_context(state: State, event: ContextRecorded) -> State:
    if isinstance(state, Held):
        return state
    raise ImpossibleHistoryError(event, state)


_EVOLVE: Mapping[type[Any], Callable[[State, Any], State]] = {
    organization.OrganizationAdded: organization.evolve,
    project.ProjectAdded: project.evolve,
    **dict.fromkeys(get_args(IdpEvent), identity_provider.evolve),
    **dict.fromkeys(get_args(AppEvent), oidc_application.evolve),
    **dict.fromkeys(get_args(ActionEvent), action.evolve),
    ContextRecorded: _record_context,
}

# Events in streams of their own: they tell of an object, and change nothing about it.
Beside: TypeAlias = AppOidcSecretClaimed
BESIDE: Mapping[str, type[Beside]] = {AppOidcSecretClaimed.TYPE: AppOidcSecretClaimed}

EVENTS: Mapping[str, type[Event]] = {event.TYPE: event for event in _EVOLVE}


def beside(object_id: str) -> str:
    """Return the stream of the events that stand beside an object's own."""
    return f"{object_id}.beside"


def evolve(state: State, event: Event) -> State:
    """Return an object as it is after one more event.

    Raises:
        ImpossibleHistoryError: the event cannot follow what was before.
    """
    return _EVOLVE[type(event)](state, event)
