"""Objects as a ZITADEL answers them, as observed objects.

Its JSON leaves out every zero value, so what is missing is at its default. What no manifest can
say (an API application, a grant type that is not known here) is observed all the same, marked
so that nothing ever writes to it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from reconciler.resources.call import Call, JsonObject
from reconciler.resources.normal import DEFAULTS, normal_form
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.answers import (
    MOST_PAGES,
    ReadSpec,
    id_of,
    objects_of,
    read_spec,
    sequence_of,
    text_of,
    unsound,
)
from reconciler.service_client.wire import Wire, WireRefusal, error_id
from reconciler.state import ObservedObject

OUTSIDE = frozenset({"id", "details", "state", "name"})
"""Fields of an answered object beside its configuration."""


class Owner(NamedTuple):
    """An organization or a project, by id and name."""

    id: str
    name: str


NO_PROJECT = Owner("", "")

PAGE = 500  # items
TOO_LARGE_A_PAGE = "QUERY-4M0fs"  # an operator may lower the limit; without one it is the most


def all_items(wire: Wire, operation: str, fields: JsonObject) -> Sequence[JsonObject] | WireRefusal:
    """Read a list to its end; return its items, or why it is refused.

    A page may have fewer items than there are places in it, so the next one begins where this
    one ends by the limit. That takes a limit that the server accepts.
    """
    limit, offset, items = PAGE, 0, list[JsonObject]()
    for _ in range(MOST_PAGES):
        query = {"offset": offset, "limit": limit, "asc": True}
        (reply,) = wire.send([Call(operation, {**fields, "query": query})])
        if isinstance(reply, WireRefusal):
            if error_id(reply) != TOO_LARGE_A_PAGE or limit == 1:
                return reply
            limit //= 2
            continue
        items += items_of(reply.fields)
        offset += limit
        # Past the end the total is 0.
        if offset >= total_of(reply.fields):
            return items
    raise unsound("?", "its pages do not end")


def items_of(answer: JsonObject) -> Sequence[JsonObject]:
    """Return the items of a page; an empty list is left out of the JSON."""
    return objects_of({"result": [], **answer}, "result")


def total_of(answer: JsonObject) -> int:
    """Return how many items a list has, over all of its pages."""
    details = answer.get("details", {})
    total = details.get("totalResult", "0") if isinstance(details, dict) else None
    if isinstance(total, str) and total.isascii() and total.isdecimal() and len(total) <= 9:
        return int(total)
    raise unsound("?", "details.totalResult is not a number")


def owner_of_item(fields: JsonObject) -> str:
    """Return the id of the organization that an answered object belongs to."""
    return text_of(_details(fields), "resourceOwner")


def is_active(fields: JsonObject) -> bool:
    """Return whether an answered object is active; a state that is missing is no other one."""
    return not str(fields.get("state", "")).endswith("_INACTIVE")


def organization(fields: JsonObject) -> ObservedObject:
    """Return an organization."""
    own = Owner(id_of(fields), text_of(fields, "name"))
    return object_of(Kind.ORGANIZATION, fields, own, ReadSpec({}, {}, ()))


def read_fields(kind: Kind, fields: JsonObject, said: JsonObject) -> ReadSpec:
    """Return what a configuration says, of the object of these fields."""
    try:
        read = read_spec(kind, {**DEFAULTS[kind], **said})
    except ValueError as failure:
        raise unsound(id_of(fields), str(failure)) from None
    return read._replace(spec=normal_form(kind, read.spec))


def strange_fields(fields: JsonObject, known: Collection[str] = ()) -> tuple[str, ...]:
    """Return what an object has instead of the configuration that manifests can say."""
    return tuple(sorted(fields.keys() - OUTSIDE - {*known})) or ("no configuration",)


def object_of(
    kind: Kind, fields: JsonObject, owner: Owner, read: ReadSpec, project: Owner = NO_PROJECT
) -> ObservedObject:
    """Return an answered object as an observed one."""
    details = _details(fields)
    return ObservedObject(
        ref=ResourceRef(kind, owner.name, project.name, text_of(fields, "name")),
        id=id_of(fields),
        sequence=sequence_of(details),
        spec=read.spec,
        organization_id=owner.id,
        project_id=project.id,
        changed_at=text_of({"changeDate": "", **details}, "changeDate"),
        carried=read.carried,
        uncarried=read.uncarried,
        active=is_active(fields),
        created_at=_created_at(details),
    )


def _created_at(details: JsonObject) -> str:
    """Return when an object was made; empty if unknown.

    Details of some kinds have only the time of the last event. That of sequence 1 made the object.
    """
    name = "changeDate" if sequence_of(details) == 1 else "creationDate"
    return text_of({name: "", **details}, name)


def _details(fields: JsonObject) -> JsonObject:
    details = fields.get("details")
    if not isinstance(details, dict):
        raise unsound(id_of(fields), "it has no details")
    return details
