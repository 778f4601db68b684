"""Deactivating and reactivating objects. This service runs nothing, so the state is only told."""

from __future__ import annotations

from reconciler.resources.ref import Kind
from reconciler.service.domain.events import (
    ActionDeactivated,
    ActionReactivated,
    AppDeactivated,
    AppReactivated,
    Deactivated,
    IdpDeactivated,
    IdpReactivated,
    ProjectDeactivated,
    ProjectReactivated,
    Reactivated,
)
from reconciler.service.domain.state import switch
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.actions import ActionRequest
from reconciler.service.operations.answers import Answer, details_changed
from reconciler.service.operations.applications import AppRequest, target_app
from reconciler.service.operations.models import Id, Message
from reconciler.service.operations.session import Writing
from reconciler.service.projections.objects import state_of


class ProjectRequest(Message):
    """Name a project, as the path does."""

    id: Id


class IdpRequest(Message):
    """Name an identity provider, as the path does."""

    idp_id: Id


def deactivate_project(call: Writing, request: ProjectRequest) -> Answer:
    """Switch a project off; one that is off is refused."""
    return _switched(call, call.target(Kind.PROJECT, request.id), ProjectDeactivated())


def reactivate_project(call: Writing, request: ProjectRequest) -> Answer:
    """Switch a project on again; one that is on is refused."""
    return _switched(call, call.target(Kind.PROJECT, request.id), ProjectReactivated())


def deactivate_idp(call: Writing, request: IdpRequest) -> Answer:
    """Switch an identity provider off; one that is off is refused."""
    return _switched(call, call.target(Kind.IDP_JWT_CONFIG, request.idp_id), IdpDeactivated())


def reactivate_idp(call: Writing, request: IdpRequest) -> Answer:
    """Switch an identity provider on again; one that is on is refused."""
    return _switched(call, call.target(Kind.IDP_JWT_CONFIG, request.idp_id), IdpReactivated())


def deactivate_app(call: Writing, request: AppRequest) -> Answer:
    """Switch an application off; one that is off is refused."""
    return _switched(call, target_app(call, request.project_id, request.app_id), AppDeactivated())


def reactivate_app(call: Writing, request: AppRequest) -> Answer:
    """Switch an application on again; one that is on is refused."""
    return _switched(call, target_app(call, request.project_id, request.app_id), AppReactivated())


def deactivate_action(call: Writing, request: ActionRequest) -> Answer:
    """Switch an action off; one that is off is refused."""
    return _switched(call, call.target(Kind.ACTION, request.id), ActionDeactivated())


def reactivate_action(call: Writing, request: ActionRequest) -> Answer:
    """Switch an action on again; one that is on is refused."""
    return _switched(call, call.target(Kind.ACTION, request.id), ActionReactivated())


def _switched(call: Writing, row: ObjectRow, event: Deactivated | Reactivated) -> Answer:
    return {"details": details_changed(call.change(row, switch(state_of(row), event)))}
