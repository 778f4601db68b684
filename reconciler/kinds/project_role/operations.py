"""The operations on the roles of projects, which name a role by its project and its key.

A role that is made again has the id that it had before, and its sequence goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from reconciler.kinds.project_role.fields import role_id
from reconciler.resources.fields import Field
from reconciler.resources.ref import Kind, fold
from reconciler.service.domain.events import Added
from reconciler.service.domain.refusal import role_exists
from reconciler.service.eventstore.rows import NameFilter, ObjectRow, StreamAt
from reconciler.service.operations.answers import Answer, details_read, spec_of
from reconciler.service.operations.form import Asked, Form, name_field
from reconciler.service.operations.lists import METHODS, Filters, Listing, Query, listed
from reconciler.service.operations.objects import PROJECT_ID, ById, remove, update
from reconciler.service.operations.operation import Effect, operation
from reconciler.service.operations.request import Fields
from reconciler.service.operations.session import Reading, Writing

_KEY = "roleKey"


@dataclass(frozen=True, slots=True)
class _ByKey(ById):
    """Fields by which a call names a role."""

    kind: Kind = Kind.PROJECT_ROLE
    id: str = _KEY

    def object(self, call: Reading, asked: Asked) -> ObjectRow:
        project = call.owner(Kind.PROJECT, asked["projectId"])
        return call.object(self.kind, role_id(project.id, asked[_KEY]))


def role_view(row: ObjectRow) -> Answer:
    """Return a role as it is answered."""
    return {"key": row.name, "details": details_read(row), **spec_of(row)}


def add_role(call: Writing, asked: Asked) -> Answer:
    """Make a role in a project."""
    project = call.owner(Kind.PROJECT, asked["projectId"])
    key = asked[_KEY]
    name = role_id(project.id, key)
    if call.view.get_object(name) is not None:
        raise role_exists()
    stream = StreamAt(project.organization, name, call.view.stream_version(name))
    row = call.begin(stream, Added(Kind.PROJECT_ROLE, key, project.id, spec=asked.spec))
    return {"details": details_read(row)}


# Each takes two texts, the first of them from a role.
_MATCHES: dict[str, Callable[[str, str], bool]] = {
    "equals": str.__eq__,
    "starts": str.startswith,
    "contains": str.__contains__,
    "ends": str.endswith,
}


def _by_key(filters: Filters, query: Fields) -> None:
    text = query.text("key")
    match, folded = METHODS[query.choice("method", tuple(METHODS))]
    if folded:
        filters.tests.append(lambda row: _MATCHES[match](fold(row.name), fold(text)))
    else:
        filters.names.append(NameFilter(match, text, folded=True))  # which is the key as it is


def _by_display_name(filters: Filters, query: Fields) -> None:
    text = query.text("displayName")
    match, folded = METHODS[query.choice("method", tuple(METHODS))]
    form = fold if folded else str
    filters.tests.append(lambda row: _MATCHES[match](form(spec_of(row)["displayName"]), form(text)))


_ROLE = _ByKey()
_FIELDS: tuple[Field, ...] = (PROJECT_ID, name_field(_KEY))
_LISTING = Listing(
    Kind.PROJECT_ROLE,
    role_view,
    {
        "keyQuery": Query(_by_key, "key", has_method=True),
        "displayNameQuery": Query(_by_display_name, "displayName", has_method=True),
    },
)
_WRITE = "project.role.write"
ROWS = (
    listed("ListProjectRoles", "project.role.read", _LISTING),
    replace(
        operation(
            "AddProjectRole", _WRITE, Effect.CREATES, add_role, Form(Kind.PROJECT_ROLE, _FIELDS)
        ),
        made=lambda fields: role_id(str(fields["projectId"]), str(fields[_KEY])),
    ),
    update("UpdateProjectRole", _WRITE, _ROLE, *_FIELDS),
    remove(
        "RemoveProjectRole",
        "project.role.delete",
        _ROLE,
        about="Remove a role; users who have it lose it.",
    ),
)
