"""Organizations and projects: adding them, and reading one."""

from __future__ import annotations

from typing import Literal

from reconciler.resources.models import Name
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import OrganizationAdded, ProjectAdded
from reconciler.service.domain.refusal import not_allowed
from reconciler.service.operations.answers import Answer, details_created, project_view
from reconciler.service.operations.callers import Role
from reconciler.service.operations.models import Id, Message
from reconciler.service.operations.session import Reading, Writing


class AddOrgRequest(Message):
    """Make an organization."""

    name: Name


class AddProjectRequest(Message):
    """Make a project in the organization of the call."""

    name: Name
    project_role_assertion: Literal[False] = False
    project_role_check: Literal[False] = False
    has_project_check: Literal[False] = False
    private_labeling_setting: Literal["PRIVATE_LABELING_SETTING_UNSPECIFIED"] = (
        "PRIVATE_LABELING_SETTING_UNSPECIFIED"
    )


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
    row = call.create(owner.id, ProjectAdded(request.name))
    return {"id": row.id, "details": details_created(row)}


def get_project(call: Reading, request: GetProjectByIDRequest) -> Answer:
    """Answer one project."""
    return call.shown_alone("project", project_view, call.object(Kind.PROJECT, request.id))
