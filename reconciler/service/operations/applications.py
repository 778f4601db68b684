"""OIDC applications: adding, reading, renaming, updating, removing, and their secrets."""

from __future__ import annotations

from typing import Literal

from reconciler.resources.models import Name, with_fields_of
from reconciler.resources.oidc import has_client_secret
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service.domain.events import (
    AppOidcAdded,
    AppOidcSecretChanged,
    AppRemoved,
    AppRenamed,
)
from reconciler.service.domain.oidc_application import check_spec, hash_of, make_secret
from reconciler.service.domain.refusal import not_found
from reconciler.service.domain.state import change_oidc_config, rename
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import (
    Answer,
    app_view,
    compliance_view,
    details_at,
    details_changed,
    details_created,
)
from reconciler.service.operations.models import Id, Message, SpecMessage
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.projections.objects import state_of


@with_fields_of(Kind.OIDC_APPLICATION)
class _WithConfig(SpecMessage):
    """A request that carries a whole configuration among its fields."""

    project_id: Id
    back_channel_logout_uri: Literal[""] = ""
    login_version: None = None


class AddOIDCAppRequest(_WithConfig):
    """Make an application in a project (source 4.2)."""

    name: Name


class UpdateOIDCAppConfigRequest(_WithConfig):
    """Update the whole configuration of an application; what is left out is at its default."""

    app_id: Id


class AppRequest(Message):
    """Name an application, as the path does."""

    project_id: Id
    app_id: Id


class UpdateAppRequest(AppRequest):
    """Rename an application."""

    name: Name


def add_oidc_app(call: Writing, request: AddOIDCAppRequest) -> Answer:
    """Make an application; if it signs in with a secret, answer the secret once."""
    spec = request.spec_of(Kind.OIDC_APPLICATION)
    check_spec(spec)
    project = call.owner(Kind.PROJECT, request.project_id)
    secret = make_secret(call.runtime.random_bytes) if has_client_secret(spec) else None
    event = AppOidcAdded(
        request.name,
        project.id,
        call.runtime.identifiers.next(),
        hash_of(secret) if secret else "",
        spec,
    )
    row = call.create(project.organization, event)
    return {
        "appId": row.id,
        "details": details_created(row),
        "clientId": row.client_id,
        **_once(secret),
        **compliance_view(spec),
    }


def get_app(call: Reading, request: AppRequest) -> Answer:
    """Answer one application."""
    row = _in_project(call, request.project_id, request.app_id)
    return call.shown_alone("app", app_view, row)


def rename_app(call: Writing, request: UpdateAppRequest) -> Answer:
    """Give an application another name."""
    row = target_app(call, request.project_id, request.app_id)
    changed = call.change(row, rename(state_of(row), request.name, AppRenamed))
    return {"details": details_changed(changed)}


def update_config(call: Writing, request: UpdateOIDCAppConfigRequest) -> Answer:
    """Update the whole configuration. No secret is made by it: that is an operation of its own."""
    row = target_app(call, request.project_id, request.app_id)
    changed = call.change(
        row, change_oidc_config(state_of(row), request.spec_of(Kind.OIDC_APPLICATION))
    )
    return {"details": details_changed(changed)}


def remove_app(call: Writing, request: AppRequest) -> Answer:
    """Remove an application; its client id and secret are gone for good."""
    row = target_app(call, request.project_id, request.app_id)
    stored = call.remove(row, AppRemoved())
    return {"details": details_at(row.organization, stored.sequence)}


def regenerate_secret(call: Writing, request: AppRequest) -> Answer:
    """Make a new client secret and answer it once; the one before ends now."""
    row = target_app(call, request.project_id, request.app_id)
    secret = make_secret(call.runtime.random_bytes)
    changed = call.change(row, (AppOidcSecretChanged(hash_of(secret)),))
    return {**_once(secret), "details": details_changed(changed)}


def _once(secret: Secret | None) -> Answer:
    return {"clientSecret": secret} if secret else {}


def _in_project(call: Reading, project_id: str, app_id: str) -> ObjectRow:
    row = call.object(Kind.OIDC_APPLICATION, app_id)
    if row.parent != project_id:
        raise not_found("application")
    return row


def target_app(call: Writing, project_id: str, app_id: str) -> ObjectRow:
    """Return the application that is to be changed or removed.

    Raises:
        Refusal: it is missing or must look so, or is no longer what the caller expects.
    """
    row = _in_project(call, project_id, app_id)
    call.expect(row)
    return row
