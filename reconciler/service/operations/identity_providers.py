"""Identity providers: adding, reading, renaming, updating their JWT configuration, removing.

There are two families of calls for the same objects. The template calls are the present ones, and
the only ones that write the audience. The old calls, the source's 4.1 among them, leave it as it
is.
"""

from __future__ import annotations

from typing import Literal

from reconciler.resources.models import Name, with_fields_of
from reconciler.resources.normal import LATER
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import IdpJwtAdded, IdpRemoved, IdpRenamed
from reconciler.service.domain.state import change_jwt_config, rename
from reconciler.service.operations.answers import (
    Answer,
    details_at,
    details_changed,
    details_created,
    idp_view,
    provider_view,
)
from reconciler.service.operations.models import Id, Message, SpecMessage
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.projections.objects import state_of

Styling = Literal["STYLING_TYPE_UNSPECIFIED"]


@with_fields_of(Kind.IDP_JWT_CONFIG, later=False)
class AddOrgJWTIDPRequest(SpecMessage):
    """Make an identity provider in the organization of the call."""

    name: Name
    styling_type: Styling = "STYLING_TYPE_UNSPECIFIED"
    auto_register: Literal[False] = False


@with_fields_of(Kind.IDP_JWT_CONFIG, later=False)
class UpdateOrgIDPJWTConfigRequest(SpecMessage):
    """Update the whole JWT configuration of an identity provider (source 4.1)."""

    idp_id: Id


class UpdateOrgIDPRequest(Message):
    """Rename an identity provider."""

    idp_id: Id
    name: Name
    styling_type: Styling = "STYLING_TYPE_UNSPECIFIED"
    auto_register: Literal[False] = False


class GetOrgIDPByIDRequest(Message):
    """Read an identity provider."""

    id: Id


class RemoveOrgIDPRequest(Message):
    """Remove an identity provider."""

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


class ProviderRequest(Message):
    """Read or remove an identity provider."""

    id: Id


def add_idp(call: Writing, request: AddOrgJWTIDPRequest) -> Answer:
    """Make an identity provider in the organization of the call."""
    owner = call.organization()
    row = call.create(owner.id, IdpJwtAdded(request.name, request.spec_of(Kind.IDP_JWT_CONFIG)))
    return {"details": details_created(row), "idpId": row.id}


def get_idp(call: Reading, request: GetOrgIDPByIDRequest) -> Answer:
    """Answer one identity provider."""
    return call.shown_alone("idp", idp_view, call.object(Kind.IDP_JWT_CONFIG, request.id))


def rename_idp(call: Writing, request: UpdateOrgIDPRequest) -> Answer:
    """Give an identity provider another name."""
    row = call.target(Kind.IDP_JWT_CONFIG, request.idp_id)
    changed = call.change(row, rename(state_of(row), request.name, IdpRenamed))
    return {"details": details_changed(changed)}


def update_jwt_config(call: Writing, request: UpdateOrgIDPJWTConfigRequest) -> Answer:
    """Update the whole JWT configuration; a field that is sent empty is empty afterwards.

    The audience is newer than this call, and stays.
    """
    row = call.target(Kind.IDP_JWT_CONFIG, request.idp_id)
    held = state_of(row)
    later = {n: held.spec[n] for n in LATER[Kind.IDP_JWT_CONFIG] if n in held.spec}
    spec = {**request.spec_of(Kind.IDP_JWT_CONFIG), **later}
    changed = call.change(row, change_jwt_config(held, spec))
    return {"details": details_changed(changed)}


def remove_idp(call: Writing, request: RemoveOrgIDPRequest) -> Answer:
    """Remove an identity provider."""
    call.remove(call.target(Kind.IDP_JWT_CONFIG, request.idp_id), IdpRemoved())
    return {}


def add_provider(call: Writing, request: AddJWTProviderRequest) -> Answer:
    """Make a JWT identity provider in the organization of the call."""
    owner = call.organization()
    row = call.create(owner.id, IdpJwtAdded(request.name, request.spec_of(Kind.IDP_JWT_CONFIG)))
    return {"details": details_created(row), "id": row.id}


def get_provider(call: Reading, request: ProviderRequest) -> Answer:
    """Answer one identity provider."""
    return {"idp": provider_view(call.object(Kind.IDP_JWT_CONFIG, request.id))}


def update_provider(call: Writing, request: UpdateJWTProviderRequest) -> Answer:
    """Update name and configuration; a field that is left out is empty afterwards."""
    row = call.target(Kind.IDP_JWT_CONFIG, request.id)
    held = state_of(row)
    renamed = rename(held, request.name, IdpRenamed)
    configured = change_jwt_config(held, request.spec_of(Kind.IDP_JWT_CONFIG))
    return {"details": details_changed(call.change(row, (*renamed, *configured)))}


def remove_provider(call: Writing, request: ProviderRequest) -> Answer:
    """Remove an identity provider."""
    row = call.target(Kind.IDP_JWT_CONFIG, request.id)
    stored = call.remove(row, IdpRemoved())
    return {"details": details_at(row.organization, stored.sequence)}
