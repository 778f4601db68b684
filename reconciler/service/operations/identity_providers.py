"""Identity providers: making, reading, changing and removing them.

There are two families of calls for the same objects. The template calls (``Provider``) are the
present ones, and the only ones that write the audience. The old calls (``IDP``), the source's 4.1
among them, leave it as it is.
"""

from __future__ import annotations

from typing import Literal

from reconciler.resources.models import Name, with_fields_of
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import (
    IdpDeactivated,
    IdpJwtAdded,
    IdpReactivated,
    IdpRemoved,
    IdpRenamed,
)
from reconciler.service.domain.state import change_jwt_config, rename
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import (
    Answer,
    details_at,
    details_read,
    idp_view,
    provider_view,
)
from reconciler.service.operations.models import Id, IdRequest, Message, SpecMessage
from reconciler.service.operations.operation import ADMIN, Effect, operation
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.projections.objects import state_of

AUDIENCE = "audience"  # which the source's calls do not know
Styling = Literal["STYLING_TYPE_UNSPECIFIED"]


@with_fields_of(Kind.IDP_JWT_CONFIG, but_for=AUDIENCE)
class AddOrgJWTIDPRequest(SpecMessage):
    """Make an identity provider in the organization of the call."""

    name: Name
    styling_type: Styling = "STYLING_TYPE_UNSPECIFIED"
    auto_register: Literal[False] = False


@with_fields_of(Kind.IDP_JWT_CONFIG, but_for=AUDIENCE)
class UpdateOrgIDPJWTConfigRequest(SpecMessage):
    """Update the whole JWT configuration of an identity provider (source 4.1)."""

    idp_id: Id


class UpdateOrgIDPRequest(Message):
    """Rename an identity provider."""

    idp_id: Id
    name: Name
    styling_type: Styling = "STYLING_TYPE_UNSPECIFIED"
    auto_register: Literal[False] = False


class IdpRequest(Message):
    """Name an identity provider, as the path of an old call does."""

    idp_id: Id


class ProviderOptions(Message):
    """Options of a provider: this service has those that an old call gives one, and no others."""

    is_linking_allowed: Literal[True] = True
    is_creation_allowed: Literal[True] = True
    is_auto_creation: Literal[False] = False
    is_auto_update: Literal[False] = False
    auto_linking: Literal["AUTO_LINKING_OPTION_UNSPECIFIED"] = "AUTO_LINKING_OPTION_UNSPECIFIED"


@with_fields_of(Kind.IDP_JWT_CONFIG)
class AddJWTProviderRequest(SpecMessage):
    """Make a JWT identity provider in the organization of the call."""

    name: Name
    provider_options: ProviderOptions = ProviderOptions()


@with_fields_of(Kind.IDP_JWT_CONFIG)
class UpdateJWTProviderRequest(SpecMessage):
    """Update name and configuration of a JWT identity provider."""

    id: Id
    name: Name
    provider_options: ProviderOptions = ProviderOptions()


def add_idp(call: Writing, request: AddOrgJWTIDPRequest) -> Answer:
    """Make an identity provider in the organization of the call."""
    row = _added(call, request)
    return {"details": details_read(row), "idpId": row.id}


def get_idp(call: Reading, request: IdRequest) -> Answer:
    """Answer one identity provider."""
    return call.shown_alone("idp", idp_view, call.object(Kind.IDP_JWT_CONFIG, request.id))


def rename_idp(call: Writing, request: UpdateOrgIDPRequest) -> Answer:
    """Give an identity provider another name."""
    row = call.target(Kind.IDP_JWT_CONFIG, request.idp_id)
    return call.update(row, rename(state_of(row), request.name, IdpRenamed))


def update_jwt_config(call: Writing, request: UpdateOrgIDPJWTConfigRequest) -> Answer:
    """Update the whole JWT configuration; a field that is sent empty is empty afterwards.

    This call does not know the audience, which stays.
    """
    row = call.target(Kind.IDP_JWT_CONFIG, request.idp_id)
    held = state_of(row)
    spec = {**request.spec_of(Kind.IDP_JWT_CONFIG), AUDIENCE: held.spec[AUDIENCE]}
    return call.update(row, change_jwt_config(held, spec))


def remove_idp(call: Writing, request: IdpRequest) -> Answer:
    """Remove an identity provider."""
    call.remove(call.target(Kind.IDP_JWT_CONFIG, request.idp_id), IdpRemoved())
    return {}


def add_provider(call: Writing, request: AddJWTProviderRequest) -> Answer:
    """Make a JWT identity provider in the organization of the call."""
    row = _added(call, request)
    return {"details": details_read(row), "id": row.id}


def _added(call: Writing, request: AddOrgJWTIDPRequest | AddJWTProviderRequest) -> ObjectRow:
    owner = call.organization()
    return call.create(owner.id, IdpJwtAdded(request.name, request.spec_of(Kind.IDP_JWT_CONFIG)))


def get_provider(call: Reading, request: IdRequest) -> Answer:
    """Answer one identity provider."""
    return {"idp": provider_view(call.object(Kind.IDP_JWT_CONFIG, request.id))}


def update_provider(call: Writing, request: UpdateJWTProviderRequest) -> Answer:
    """Update name and configuration; a field that is left out is empty afterwards."""
    row = call.target(Kind.IDP_JWT_CONFIG, request.id)
    held = state_of(row)
    renamed = rename(held, request.name, IdpRenamed)
    configured = change_jwt_config(held, request.spec_of(Kind.IDP_JWT_CONFIG))
    return call.update(row, (*renamed, *configured))


def remove_provider(call: Writing, request: IdRequest) -> Answer:
    """Remove an identity provider."""
    row = call.target(Kind.IDP_JWT_CONFIG, request.id)
    stored = call.remove(row, IdpRemoved())
    return {"details": details_at(row.organization, stored.sequence)}


def deactivate_idp(call: Writing, request: IdpRequest) -> Answer:
    """Switch an identity provider off; one that is off is refused."""
    return call.switch(call.target(Kind.IDP_JWT_CONFIG, request.idp_id), IdpDeactivated())


def reactivate_idp(call: Writing, request: IdpRequest) -> Answer:
    """Switch an identity provider on again; one that is on is refused."""
    return call.switch(call.target(Kind.IDP_JWT_CONFIG, request.idp_id), IdpReactivated())


_READ, _WRITE = "org.idp.read", "org.idp.write"
ROWS = (
    operation("AddOrgJWTIDP", _WRITE, Effect.CREATES, add_idp, AddOrgJWTIDPRequest),
    operation("GetOrgIDPByID", _READ, Effect.READS, get_idp, IdRequest),
    operation("UpdateOrgIDP", _WRITE, Effect.CHANGES, rename_idp, UpdateOrgIDPRequest),
    operation(
        "UpdateOrgIDPJWTConfig",
        _WRITE,
        Effect.CHANGES,
        update_jwt_config,
        UpdateOrgIDPJWTConfigRequest,
        f"{ADMIN}/UpdateIDPJWTConfig",
    ),
    operation("RemoveOrgIDP", _WRITE, Effect.REMOVES, remove_idp, IdpRequest),
    operation("DeactivateOrgIDP", _WRITE, Effect.CHANGES, deactivate_idp, IdpRequest),
    operation("ReactivateOrgIDP", _WRITE, Effect.CHANGES, reactivate_idp, IdpRequest),
    operation("AddJWTProvider", _WRITE, Effect.CREATES, add_provider, AddJWTProviderRequest),
    operation("GetProviderByID", _READ, Effect.READS, get_provider, IdRequest),
    operation(
        "UpdateJWTProvider", _WRITE, Effect.CHANGES, update_provider, UpdateJWTProviderRequest
    ),
    operation("DeleteProvider", _WRITE, Effect.REMOVES, remove_provider, IdRequest),
)
