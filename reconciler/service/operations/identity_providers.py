"""Identity providers: adding, reading, renaming, updating their JWT configuration, removing."""

from __future__ import annotations

from typing import Literal

from reconciler.resources.models import Name, with_fields_of
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import IdpJwtAdded, IdpRemoved, IdpRenamed
from reconciler.service.domain.state import change_jwt_config, rename
from reconciler.service.operations.answers import Answer, details_changed, details_created, idp_view
from reconciler.service.operations.models import Id, Message, SpecMessage
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.projections.objects import state_of

Styling = Literal["STYLING_TYPE_UNSPECIFIED"]


@with_fields_of(Kind.IDP_JWT_CONFIG)
class AddOrgJWTIDPRequest(SpecMessage):
    """Make an identity provider in the organization of the call."""

    name: Name
    styling_type: Styling = "STYLING_TYPE_UNSPECIFIED"
    auto_register: Literal[False] = False


@with_fields_of(Kind.IDP_JWT_CONFIG)
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
    """Update the whole JWT configuration; a field that is sent empty is empty afterwards."""
    row = call.target(Kind.IDP_JWT_CONFIG, request.idp_id)
    changed = call.change(
        row, change_jwt_config(state_of(row), request.spec_of(Kind.IDP_JWT_CONFIG))
    )
    return {"details": details_changed(changed)}


def remove_idp(call: Writing, request: RemoveOrgIDPRequest) -> Answer:
    """Remove an identity provider."""
    call.remove(call.target(Kind.IDP_JWT_CONFIG, request.idp_id), IdpRemoved())
    return {}
