"""Listing what organizations hold, and reading it as observed state.

What cannot be understood is a ``ServiceError``. What contradicts itself is reported, and blocks the
plan: an incomplete listing gives false positives and false negatives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from reconciler.kinds.calls import CALLS
from reconciler.kinds.fields import KINDS
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.ref import IN_PROJECT, KIND_NAMED, PROJECT, Kind, ResourceRef, fold
from reconciler.resources.undone import undone_of
from reconciler.service_client.answers import (
    MOST_PAGES,
    PAGE,
    check_types,
    id_of,
    objects_of,
    read_spec,
    sequence_of,
    text_of,
    unsound,
)
from reconciler.service_client.kinds import KindCalls
from reconciler.service_client.wire import Wire, answers_of
from reconciler.state import UPGRADE, ObservedObject

TOGETHER = 32  # organizations: while one page is read, the service makes the next ones
Owner: TypeAlias = tuple[str, str]
"""Id and name of an organization, as the service spells it."""


class Listing:
    """Every page of what an organization holds.

    Attributes:
        owner: Whose objects they are.
        objects: What was listed so far.
        incomplete: Why it cannot be all, or empty.
    """

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.objects: list[JsonObject] = []
        self.incomplete = ""
        self.is_done = False
        self._cursor = ""
        self._cursors = {""}
        self._ids: set[str] = set()

    def next_call(self) -> Call:
        """Return the call for the next page."""
        owner, _ = self.owner
        fields = {"organizationId": owner, "cursor": self._cursor, "limit": PAGE}
        return Call("ListObjects", fields, organization=owner)

    def take(self, page: JsonObject) -> None:
        """Take in a page, and see whether another follows."""
        found = objects_of(page, "objects")
        self.objects += found
        self._cursor, known = text_of(page, "next"), len(self._ids)
        if not self._cursor:
            self.is_done = True
            return
        self._ids.update(id_of(each) for each in found)
        # A cursor that comes again, or a page without one new id, would go on for ever.
        if self._cursor in self._cursors or len(self._ids) == known:
            self._end(f"The listing of {self.owner[1]} repeats itself.")
        self._cursors.add(self._cursor)
        if len(self._cursors) > MOST_PAGES:
            self._end(f"The listing of {self.owner[1]} does not end.")

    def _end(self, incomplete: str) -> None:
        self.incomplete = self.incomplete or incomplete
        self.is_done = True


def listings(
    wire: Wire, organizations: Collection[str], known: Mapping[str, Owner]
) -> Iterator[Listing]:
    """Yield a listing of each organization that is there.

    Those that are not known by their folded name are looked for, one by one.

    Raises:
        ServiceError: a call was refused, or the service answers what it cannot mean.
    """
    # A page of each of these goes out together, so a far service costs the time of one listing.
    names = iter(organizations)
    while some := list(islice(names, TOGETHER)):
        found = {**known, **_found(wire, [name for name in some if fold(name) not in known])}
        owners = [found.get(fold(name)) for name in some]
        together = [Listing(owner) for owner in owners if owner is not None]
        while unfinished := [listing for listing in together if not listing.is_done]:
            pages = answers_of(wire, [listing.next_call() for listing in unfinished])
            for listing, page in zip(unfinished, pages, strict=True):
                listing.take(page)
        yield from together


def _found(wire: Wire, names: Sequence[str]) -> Mapping[str, Owner]:
    """Return the organizations of these names that are there, by their folded names."""
    queries = [{"name": name, "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"} for name in names]
    calls = [Call("ListOrgs", {"queries": [{"nameQuery": query}]}) for query in queries]
    found: dict[str, Owner] = {}
    for name, answer in zip(names, answers_of(wire, calls), strict=True):
        for fields in objects_of(answer, "result"):
            if fold(text_of(fields, "name")) == fold(name):
                found.setdefault(fold(name), owner_of(fields))
    return found


def owner_of(fields: JsonObject) -> Owner:
    """Return id and name of a listed organization."""
    return id_of(fields), text_of(fields, "name")


_TYPES = {
    "name": str,
    "organizationId": str,
    "projectId": str,
    "clientId": str,
    "changedBy": str,
    "state": str,
    "details": dict,
    "spec": dict,
    "preventDelete": bool,
    "critical": bool,
    "hasSecret": bool,
}


def observed_objects(
    organization: Owner, listed: Sequence[JsonObject], incomplete: list[str]
) -> dict[ResourceRef, ObservedObject]:
    """Return the objects of one organization, by the key of their ref, from its whole listing.

    What contradicts itself is left out and added to the incomplete.
    """
    owner, name = organization
    listed = with_names(listed, name, incomplete)
    names = {owner: name}
    seen: set[str] = set()
    objects: dict[ResourceRef, ObservedObject] = {}
    projects = [fields for fields in listed if fields.get("kind") == PROJECT]
    names.update((id_of(fields), text_of(fields, "name")) for fields in projects)
    for fields in listed:
        kind = KIND_NAMED.get(text_of(fields, "kind"))
        if kind is None:
            incomplete.append(f"{name} holds an object of a kind that is not known here: {UPGRADE}")
            continue
        found = _observed(kind, fields, names)
        if found is None or found.organization_id != owner:
            incomplete.append(f"{name} lists an object whose owner it does not list.")
            continue
        # Names are unique. Two objects of one name are one that was renamed while it was listed, or
        # a service that is not sound: either way the listing proves nothing.
        key = found.ref.key
        if found.id in seen or key in objects:
            incomplete.append(f"{name} lists {found.ref} (id {found.id}) twice.")
            continue
        seen.add(found.id)
        objects[key] = found
    if owner not in seen:
        incomplete.append(f"{name} is not in its own listing.")
    return objects


def _observed(kind: Kind, fields: JsonObject, names: Mapping[str, str]) -> ObservedObject | None:
    object_id = id_of(fields)
    try:
        check_types(_TYPES, fields)
        spec = read_spec(kind, fields["spec"])
    except ValueError as failure:
        raise unsound(object_id, str(failure)) from None
    organization, project = fields["organizationId"], fields["projectId"]
    details = fields["details"]
    # ``names`` are those of the organization and its projects, by id.
    if organization not in names or (project and project not in names):
        return None
    if (kind in IN_PROJECT) != bool(project):
        raise unsound(object_id, "its projectId is not that of its kind")
    return ObservedObject(
        ref=ResourceRef(
            kind, names[organization], names[project] if project else "", fields["name"]
        ),
        id=object_id,
        sequence=sequence_of(details),
        spec=spec.spec,
        organization_id=organization,
        project_id=project,
        client_id=fields["clientId"],
        trees=texts_of(fields, "trees"),
        changed_by=fields["changedBy"],
        changed_at=text_of(details, "changeDate"),
        changed_in=_said(fields.get("context"), "tree"),
        changed_for=_said(fields.get("context"), "plan"),
        prevent_delete=fields["preventDelete"],
        critical=fields["critical"],
        carried=spec.carried,
        uncarried=spec.uncarried,
        owner=None if fields.get("owner") is None else text_of(fields, "owner"),
        has_secret=fields["hasSecret"],
        active=_is_active(object_id, fields["state"]),
        created_at=text_of(details, "creationDate"),
        ignored=texts_of(fields, "ignore"),
        undone=undone_of(fields.get("undone")),
    )


def not_among(
    objects: Mapping[ResourceRef, ObservedObject], organizations: Iterable[str]
) -> tuple[str, ...]:
    """Return the names that no organization among the objects has."""
    there = {key.organization for key in objects if key.kind is Kind.ORGANIZATION}
    return tuple(name for name in organizations if fold(name) not in there)


def texts_of(fields: JsonObject, name: str) -> frozenset[str]:
    """Return a list of texts of an answered object, such as the trees that applied it."""
    value = fields.get(name)
    if not isinstance(value, list) or not all(type(each) is str for each in value):
        raise unsound(str(fields.get("id", "?")), f"its {name} is not a list of texts")
    return frozenset(value)


def _said(context: object, name: str) -> str:
    """Return a text from the context of the last change, or nothing."""
    text = context.get(name) if isinstance(context, dict) else None
    return text if isinstance(text, str) else ""


def _is_active(object_id: str, state: str) -> bool:
    """Return whether an object is active."""
    if state not in {"ACTIVE", "INACTIVE"}:
        raise unsound(object_id, "its state is neither ACTIVE nor INACTIVE")
    return state == "ACTIVE"


def with_names(
    listed: Sequence[JsonObject], organization: str, incomplete: list[str]
) -> Sequence[JsonObject]:
    """Return the listed objects of an organization with names where specs are answered with ids.

    An object whose spec has the id of one that is not listed is added to the incomplete.
    """
    for kind, calls in CALLS.items():
        if calls.named is None or not any(fields.get("kind") == kind for fields in listed):
            continue
        names = {
            str(fields.get("id")): str(fields.get("name"))
            for fields in listed
            if fields.get("kind") == calls.named
        }
        partly: list[object] = []
        listed = [
            _named(calls, fields, names, partly)
            if fields.get("kind") == kind and isinstance(fields.get("spec"), dict)
            else fields
            for fields in listed
        ]
        plural = KINDS[calls.named].plural
        incomplete += [
            f"{organization} lists {plural} of {name} that it does not list." for name in partly
        ]
    return listed


def _named(
    calls: KindCalls, fields: JsonObject, names: Mapping[str, str], partly: list[object]
) -> JsonObject:
    spec, is_whole = calls.with_names(fields["spec"], names)
    if not is_whole:
        partly.append(fields.get("name"))
    return {**fields, "spec": spec}
