"""An identity provider that hands over JWTs: its events, and what they make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from reconciler.resources.ref import Kind
from reconciler.service.domain.held import Held, ImpossibleHistoryError, Removed, State, Unborn


@dataclass(frozen=True, slots=True)
class IdpJwtAdded:
    """An identity provider came into being, with its JWT configuration."""

    TYPE: ClassVar[str] = "idp.jwt.added"
    name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IdpRenamed:
    """It was given another name."""

    TYPE: ClassVar[str] = "idp.renamed"
    name: str


@dataclass(frozen=True, slots=True)
class IdpJwtConfigChanged:
    """Its JWT configuration was updated as a whole."""

    TYPE: ClassVar[str] = "idp.jwt.config.changed"
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IdpRemoved:
    """It is no more."""

    TYPE: ClassVar[str] = "idp.removed"


IdpEvent = IdpJwtAdded | IdpRenamed | IdpJwtConfigChanged | IdpRemoved


def rename(held: Held, name: str) -> tuple[IdpEvent, ...]:
    """Decide what another name means; the same one is no event."""
    return () if held.name == name else (IdpRenamed(name),)


def change_jwt_config(held: Held, spec: Mapping[str, Any]) -> tuple[IdpEvent, ...]:
    """Decide what another configuration means; one that changes nothing is no event."""
    return () if held.spec == spec else (IdpJwtConfigChanged(spec),)


def evolve(state: State, event: IdpEvent) -> State:
    """Return the identity provider as it is after one more event."""
    match event, state:
        case IdpJwtAdded(name, spec), Unborn(idp_id, owner):
            return Held(Kind.IDP_JWT_CONFIG, idp_id, owner, owner, name, spec)
        case IdpRenamed(name), Held():
            return replace(state, name=name)
        case IdpJwtConfigChanged(spec), Held():
            return replace(state, spec=spec)
        case IdpRemoved(), Held():
            return Removed(state.id, state.organization)
        case _:
            raise ImpossibleHistoryError(event, state)
