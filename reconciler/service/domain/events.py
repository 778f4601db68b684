"""Events: everything that is ever written about an object. Each kind has its own.

An event is stored as its ``TYPE`` and its fields. Neither is ever changed, because logs of earlier
versions are read for good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, get_args

from reconciler.resources.fields import Spec


@dataclass(frozen=True, slots=True)
class OrganizationAdded:
    """An organization came into being. It owns itself."""

    TYPE: ClassVar[str] = "organization.added"
    name: str


@dataclass(frozen=True, slots=True)
class ProjectAdded:
    """A project came into being."""

    TYPE: ClassVar[str] = "project.added"
    name: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class ProjectChanged:
    """A project was updated as a whole, its name included."""

    TYPE: ClassVar[str] = "project.changed"
    name: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class IdpJwtAdded:
    """An identity provider came into being, with its JWT configuration."""

    TYPE: ClassVar[str] = "idp.jwt.added"
    name: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class IdpRenamed:
    """An identity provider was given another name."""

    TYPE: ClassVar[str] = "idp.renamed"
    name: str


@dataclass(frozen=True, slots=True)
class IdpJwtConfigChanged:
    """The JWT configuration of an identity provider was updated as a whole."""

    TYPE: ClassVar[str] = "idp.jwt.config.changed"
    spec: Spec


@dataclass(frozen=True, slots=True)
class IdpRemoved:
    """An identity provider is no more."""

    TYPE: ClassVar[str] = "idp.removed"


@dataclass(frozen=True, slots=True)
class AppOidcAdded:
    """An application came into being in a project. Of its secret only the hash is kept."""

    TYPE: ClassVar[str] = "app.oidc.added"
    name: str
    project: str
    client_id: str
    secret_hash: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class AppRenamed:
    """An application was given another name."""

    TYPE: ClassVar[str] = "app.renamed"
    name: str


@dataclass(frozen=True, slots=True)
class AppOidcConfigChanged:
    """The configuration of an application was updated as a whole."""

    TYPE: ClassVar[str] = "app.oidc.config.changed"
    spec: Spec


@dataclass(frozen=True, slots=True)
class AppOidcSecretChanged:
    """An application was given a new client secret; the one before has ended."""

    TYPE: ClassVar[str] = "app.oidc.secret.changed"
    secret_hash: str


@dataclass(frozen=True, slots=True)
class AppRemoved:
    """An application is no more."""

    TYPE: ClassVar[str] = "app.removed"


@dataclass(frozen=True, slots=True)
class ActionAdded:
    """An action came into being."""

    TYPE: ClassVar[str] = "action.added"
    name: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class ActionChanged:
    """An action was updated as a whole, its name included."""

    TYPE: ClassVar[str] = "action.changed"
    name: str
    spec: Spec


@dataclass(frozen=True, slots=True)
class ActionRemoved:
    """An action is no more."""

    TYPE: ClassVar[str] = "action.removed"


@dataclass(frozen=True, slots=True)
class FlowTriggerSet:
    """A trigger of a flow got actions, by their ids and in their order; none empties it.

    The first one is the beginning of a flow, and so is the first one after ``FlowRemoved``.
    """

    TYPE: ClassVar[str] = "flow.trigger.set"
    flow: str
    trigger: str
    actions: Sequence[str]


@dataclass(frozen=True, slots=True)
class FlowActionDropped:
    """An action that was removed left every trigger of a flow."""

    TYPE: ClassVar[str] = "flow.action.dropped"
    action: str


@dataclass(frozen=True, slots=True)
class FlowRemoved:
    """No trigger of a flow has actions any more."""

    TYPE: ClassVar[str] = "flow.removed"


@dataclass(frozen=True, slots=True)
class ProjectDeactivated:
    """A project was switched off."""

    TYPE: ClassVar[str] = "project.deactivated"


@dataclass(frozen=True, slots=True)
class ProjectReactivated:
    """A project was switched on again."""

    TYPE: ClassVar[str] = "project.reactivated"


@dataclass(frozen=True, slots=True)
class IdpDeactivated:
    """An identity provider was switched off."""

    TYPE: ClassVar[str] = "idp.deactivated"


@dataclass(frozen=True, slots=True)
class IdpReactivated:
    """An identity provider was switched on again."""

    TYPE: ClassVar[str] = "idp.reactivated"


@dataclass(frozen=True, slots=True)
class AppDeactivated:
    """An application was switched off."""

    TYPE: ClassVar[str] = "app.deactivated"


@dataclass(frozen=True, slots=True)
class AppReactivated:
    """An application was switched on again."""

    TYPE: ClassVar[str] = "app.reactivated"


@dataclass(frozen=True, slots=True)
class ActionDeactivated:
    """An action was switched off."""

    TYPE: ClassVar[str] = "action.deactivated"


@dataclass(frozen=True, slots=True)
class ActionReactivated:
    """An action was switched on again."""

    TYPE: ClassVar[str] = "action.reactivated"


@dataclass(frozen=True, slots=True)
class ContextRecorded:
    """Nothing about the object changed, but why it is as it is: a tree took it over."""

    TYPE: ClassVar[str] = "context.recorded"


@dataclass(frozen=True, slots=True)
class AppOidcSecretClaimed:
    """An owed secret was answered again. It changes nothing, and stands in a stream of its own.

    Attributes:
        application: Its id.
        made_at: Sequence of the event that made the secret, as text.
    """

    TYPE: ClassVar[str] = "app.oidc.secret.claimed"
    application: str
    made_at: str


Added: TypeAlias = OrganizationAdded | ProjectAdded | IdpJwtAdded | AppOidcAdded | ActionAdded
FlowChanged: TypeAlias = FlowTriggerSet | FlowActionDropped
Renamed: TypeAlias = IdpRenamed | AppRenamed
Deleted: TypeAlias = IdpRemoved | AppRemoved | ActionRemoved | FlowRemoved
Deactivated: TypeAlias = ProjectDeactivated | IdpDeactivated | AppDeactivated | ActionDeactivated
Reactivated: TypeAlias = ProjectReactivated | IdpReactivated | AppReactivated | ActionReactivated
Event: TypeAlias = (
    Added
    | Renamed
    | Deleted
    | ProjectChanged
    | Deactivated
    | Reactivated
    | IdpJwtConfigChanged
    | AppOidcConfigChanged
    | AppOidcSecretChanged
    | ActionChanged
    | FlowChanged
    | ContextRecorded
)
EVENTS: Mapping[str, type[Event]] = {event.TYPE: event for event in get_args(Event)}

# Side events tell of an object and leave it, and its sequence, as they are.
SideEvent: TypeAlias = AppOidcSecretClaimed
SIDE_EVENTS: Mapping[str, type[SideEvent]] = {AppOidcSecretClaimed.TYPE: AppOidcSecretClaimed}


def side_stream(object_id: str) -> str:
    """Return the stream of the side events of an object."""
    return f"{object_id}.beside"
