"""A project: it is added to an organization, and stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reconciler.resources.ref import Kind
from reconciler.service.domain.held import Held, ImpossibleHistoryError, State, Unborn


@dataclass(frozen=True, slots=True)
class ProjectAdded:
    """A project came into being."""

    TYPE: ClassVar[str] = "project.added"
    name: str


ProjectEvent = ProjectAdded


def evolve(state: State, event: ProjectEvent) -> State:
    """Return the project as it is after one more event."""
    if isinstance(state, Unborn):
        return Held(Kind.PROJECT, state.id, state.organization, state.organization, event.name, {})
    raise ImpossibleHistoryError(event, state)
