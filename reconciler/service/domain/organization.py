"""An organization: it is added, and stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reconciler.resources.ref import Kind
from reconciler.service.domain.held import Held, ImpossibleHistoryError, State, Unborn


@dataclass(frozen=True, slots=True)
class OrganizationAdded:
    """An organization came into being. It owns itself."""

    TYPE: ClassVar[str] = "organization.added"
    name: str


OrganizationEvent = OrganizationAdded


def evolve(state: State, event: OrganizationEvent) -> State:
    """Return the organization as it is after one more event."""
    if isinstance(state, Unborn):
        return Held(Kind.ORGANIZATION, state.id, state.organization, "", event.name, {})
    raise ImpossibleHistoryError(event, state)
