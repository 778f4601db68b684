"""Organizations and projects: adding them, reading a project and updating it."""

from __future__ import annotations

from reconciler.resources.models import Name, with_fields_of
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import OrganizationAdded, ProjectAdded
from reconciler.service.domain.refusal import not_allowed
from reconciler.service.domain.state import change_project
from reconciler.service.operations.answers import (
    Answer,
    details_changed,
    details_created,
    project_view,
)
from reconciler.service.operations.callers import Role
from reconciler.service.operations.models import Id, Message, SpecMessage
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.projections.objects import state_of


class AddOrgRequest(Message):
    """Make an organization."""

    name: Name


@with_fields_of(Kind.PROJECT, after=True)
class AddProjectRequest(SpecMessage):
    """Make a project in the organization of the call."""

    name: Name


class UpdateProjectRequest(AddProjectRequest):
    """Update a whole project, its name included."""

    id: Id


class GetProjectByIDRequest(Message):
    """Read a project."""

    id: Id


def add_org(call: Writing, request: AddOrgRequest) -> Answer:
    """Make an organization, which only a caller that would see it may."""
    if call.caller.organizations is not None:
        raise not_allowed("org.create", Role.ADMIN, " for all organizations")
    row = call.create("", OrganizationAdded(request.name))
    return {"id": row.id, "details": details_created(row)}


def add_project(call: Writing, request: AddProjectRequest) -> Answer:
    """Make a project in the organization of the call."""
    owner = call.organization()
    row = call.create(owner.id, ProjectAdded(request.name, request.spec_of(Kind.PROJECT)))
    return {"id": row.id, "details": details_created(row)}


def get_project(call: Reading, request: GetProjectByIDRequest) -> Answer:
    """Answer one project."""
    return call.shown_alone("project", project_view, call.object(Kind.PROJECT, request.id))


def update_project(call: Writing, request: UpdateProjectRequest) -> Answer:
    """Update a whole project; what is left out is at its default afterwards."""
    row = call.target(Kind.PROJECT, request.id)
    changed = call.change(
        row, change_project(state_of(row), request.name, request.spec_of(Kind.PROJECT))
    )
    return {"details": details_changed(changed)}
