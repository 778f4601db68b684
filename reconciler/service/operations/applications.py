"""Organizations, projects and OIDC applications: making, reading, changing and removing them."""

from __future__ import annotations

from typing import Literal

from reconciler.kinds.oidc_application.compliance import has_client_secret
from reconciler.resources.models import Name, with_fields_of
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service.domain.events import (
    AppDeactivated,
    AppOidcAdded,
    AppOidcSecretChanged,
    AppReactivated,
    AppRemoved,
    AppRenamed,
    OrganizationAdded,
    ProjectAdded,
    ProjectDeactivated,
    ProjectReactivated,
)
from reconciler.service.domain.oidc_application import check_spec, hash_of, make_secret
from reconciler.service.domain.refusal import not_allowed, not_found
from reconciler.service.domain.state import change_oidc_config, change_project, rename
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import (
    Answer,
    app_view,
    compliance_view,
    details_at,
    details_read,
    project_view,
)
from reconciler.service.operations.callers import Role
from reconciler.service.operations.models import Id, IdRequest, Message, SpecMessage
from reconciler.service.operations.operation import Effect, operation
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.projections.objects import state_of


class AddOrgRequest(Message):
    """Make an organization."""

    name: Name


@with_fields_of(Kind.PROJECT)
class AddProjectRequest(SpecMessage):
    """Make a project in the organization of the call."""

    name: Name


class UpdateProjectRequest(AddProjectRequest):
    """Update a whole project, its name included."""

    id: Id


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


def add_org(call: Writing, request: AddOrgRequest) -> Answer:
    """Make an organization, which only a caller that would see it may."""
    if call.caller.organizations is not None:
        raise not_allowed("org.create", Role.ADMIN, " for all organizations")
    row = call.create("", OrganizationAdded(request.name))
    return {"id": row.id, "details": details_read(row)}


def add_project(call: Writing, request: AddProjectRequest) -> Answer:
    """Make a project in the organization of the call."""
    owner = call.organization()
    row = call.create(owner.id, ProjectAdded(request.name, request.spec_of(Kind.PROJECT)))
    return {"id": row.id, "details": details_read(row)}


def get_project(call: Reading, request: IdRequest) -> Answer:
    """Answer one project."""
    return call.shown_alone("project", project_view, call.object(Kind.PROJECT, request.id))


def update_project(call: Writing, request: UpdateProjectRequest) -> Answer:
    """Update a whole project; what is left out is at its default afterwards."""
    row = call.target(Kind.PROJECT, request.id)
    spec = request.spec_of(Kind.PROJECT)
    return call.update(row, change_project(state_of(row), request.name, spec))


def deactivate_project(call: Writing, request: IdRequest) -> Answer:
    """Switch a project off; one that is off is refused."""
    return call.switch(call.target(Kind.PROJECT, request.id), ProjectDeactivated())


def reactivate_project(call: Writing, request: IdRequest) -> Answer:
    """Switch a project on again; one that is on is refused."""
    return call.switch(call.target(Kind.PROJECT, request.id), ProjectReactivated())


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
        "details": details_read(row),
        "clientId": row.client_id,
        **_once(secret),
        **compliance_view(spec),
    }


def get_app(call: Reading, request: AppRequest) -> Answer:
    """Answer one application."""
    return call.shown_alone("app", app_view, _in_project(call, request))


def rename_app(call: Writing, request: UpdateAppRequest) -> Answer:
    """Give an application another name."""
    row = _target(call, request)
    return call.update(row, rename(state_of(row), request.name, AppRenamed))


def update_config(call: Writing, request: UpdateOIDCAppConfigRequest) -> Answer:
    """Update the whole configuration. No secret is made by it: that is an operation of its own."""
    row = _target(call, request)
    return call.update(
        row, change_oidc_config(state_of(row), request.spec_of(Kind.OIDC_APPLICATION))
    )


def remove_app(call: Writing, request: AppRequest) -> Answer:
    """Remove an application; its client id and secret are gone for good."""
    row = _target(call, request)
    stored = call.remove(row, AppRemoved())
    return {"details": details_at(row.organization, stored.sequence)}


def regenerate_secret(call: Writing, request: AppRequest) -> Answer:
    """Make a new client secret and answer it once; the one before ends now."""
    row = _target(call, request)
    secret = make_secret(call.runtime.random_bytes)
    return {**_once(secret), **call.update(row, (AppOidcSecretChanged(hash_of(secret)),))}


def deactivate_app(call: Writing, request: AppRequest) -> Answer:
    """Switch an application off; one that is off is refused."""
    return call.switch(_target(call, request), AppDeactivated())


def reactivate_app(call: Writing, request: AppRequest) -> Answer:
    """Switch an application on again; one that is on is refused."""
    return call.switch(_target(call, request), AppReactivated())


def _once(secret: Secret | None) -> Answer:
    return {"clientSecret": secret} if secret else {}


def _in_project(call: Reading, request: AppRequest | UpdateOIDCAppConfigRequest) -> ObjectRow:
    row = call.object(Kind.OIDC_APPLICATION, request.app_id)
    if row.parent != request.project_id:
        raise not_found("application")
    return row


def _target(call: Writing, request: AppRequest | UpdateOIDCAppConfigRequest) -> ObjectRow:
    """Return the application to be changed or removed, as ``Writing.target`` does."""
    row = _in_project(call, request)
    call.expect(row)
    return row


_PROJECT, _APP = "project.write", "project.app.write"
ROWS = (
    operation("AddOrg", "org.create", Effect.CREATES, add_org, AddOrgRequest),
    operation("AddProject", "project.create", Effect.CREATES, add_project, AddProjectRequest),
    operation("GetProjectByID", "project.read", Effect.READS, get_project, IdRequest),
    operation("UpdateProject", _PROJECT, Effect.CHANGES, update_project, UpdateProjectRequest),
    operation("DeactivateProject", _PROJECT, Effect.CHANGES, deactivate_project, IdRequest),
    operation("ReactivateProject", _PROJECT, Effect.CHANGES, reactivate_project, IdRequest),
    operation("AddOIDCApp", _APP, Effect.CREATES, add_oidc_app, AddOIDCAppRequest),
    operation("GetAppByID", "project.app.read", Effect.READS, get_app, AppRequest),
    operation("UpdateApp", _APP, Effect.CHANGES, rename_app, UpdateAppRequest),
    operation(
        "UpdateOIDCAppConfig", _APP, Effect.CHANGES, update_config, UpdateOIDCAppConfigRequest
    ),
    operation("RemoveApp", "project.app.delete", Effect.REMOVES, remove_app, AppRequest),
    operation("RegenerateOIDCClientSecret", _APP, Effect.CHANGES, regenerate_secret, AppRequest),
    operation("DeactivateApp", _APP, Effect.CHANGES, deactivate_app, AppRequest),
    operation("ReactivateApp", _APP, Effect.CHANGES, reactivate_app, AppRequest),
)
