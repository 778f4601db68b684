"""The operations on projects."""

from __future__ import annotations

from reconciler.resources.ref import Kind
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import Answer, named, spec_of
from reconciler.service.operations.lists import BY_NAME, BY_OWNER, Listing, listed
from reconciler.service.operations.objects import ById, add, get, switches, update


def project_view(row: ObjectRow) -> Answer:
    """Return a project as it is answered."""
    members = named(row, "PROJECT_STATE")
    state = members.pop("state")  # stands after the name, in projects only
    return {**members, "state": state, **spec_of(row)}


_PROJECT = ById(Kind.PROJECT)
_LISTING = Listing(
    Kind.PROJECT,
    project_view,
    {"nameQuery": BY_NAME, "projectResourceOwnerQuery": BY_OWNER},
)
_READ, _WRITE = "project.read", "project.write"
ROWS = (
    add("AddProject", "project.create", Kind.PROJECT, answers=("id", "details")),
    listed("ListProjects", _READ, _LISTING),
    get("GetProjectByID", _READ, _PROJECT, "project", project_view),
    update("UpdateProject", _WRITE, _PROJECT),
    *switches("Project", _WRITE, _PROJECT),
)
