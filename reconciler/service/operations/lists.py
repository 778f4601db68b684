"""Lists of one kind, filtered, sorted and cut as the caller asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from reconciler.resources.ref import Kind, fold
from reconciler.service.eventstore.rows import NameFilter, ObjectKey, ObjectQuery
from reconciler.service.operations.answers import (
    Answer,
    action_view,
    app_view,
    idp_view,
    organization_view,
    project_view,
    provider_view,
    timestamp,
)
from reconciler.service.operations.operation import ADMIN, MANAGEMENT, Effect, light_operation
from reconciler.service.operations.request import Fields
from reconciler.service.operations.session import Reading
from reconciler.service.operations.texts import View

MAX_PAGE = 1000
MAX_QUERIES = 20
"""The cost of a list grows with both. A listing of everything takes several calls."""

METHODS = {
    "TEXT_QUERY_METHOD_EQUALS": ("equals", False),
    "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE": ("equals", True),
    "TEXT_QUERY_METHOD_STARTS_WITH": ("starts", False),
    "TEXT_QUERY_METHOD_STARTS_WITH_IGNORE_CASE": ("starts", True),
    "TEXT_QUERY_METHOD_CONTAINS": ("contains", False),
    "TEXT_QUERY_METHOD_CONTAINS_IGNORE_CASE": ("contains", True),
    "TEXT_QUERY_METHOD_ENDS_WITH": ("ends", False),
    "TEXT_QUERY_METHOD_ENDS_WITH_IGNORE_CASE": ("ends", True),
}
ORG_STATES = (
    "ORG_STATE_UNSPECIFIED",
    "ORG_STATE_ACTIVE",
    "ORG_STATE_INACTIVE",
    "ORG_STATE_REMOVED",
)
IDP_OWNER_TYPES = ("IDP_OWNER_TYPE_UNSPECIFIED", "IDP_OWNER_TYPE_SYSTEM", "IDP_OWNER_TYPE_ORG")
ACTION_STATES = ("ACTION_STATE_UNSPECIFIED", "ACTION_STATE_INACTIVE", "ACTION_STATE_ACTIVE")


@dataclass(slots=True)
class _Filters:
    """The queries of a list, all of which must hold.

    Attributes:
        owner: Id of the organization or project that owns what is listed.
        nothing: Whether they exclude every object.
    """

    owner: str
    ids: frozenset[str] | None = None
    names: list[NameFilter] = field(default_factory=list)
    active: bool | None = None
    nothing: bool = False


_Query: TypeAlias = Callable[[_Filters, Fields], None]


def _by_name(filters: _Filters, query: Fields) -> None:
    text = query.text("name")
    match, folded = METHODS[query.choice("method", tuple(METHODS))]
    filters.names.append(NameFilter(match, fold(text) if folded else text, folded))


def _by_id(filters: _Filters, query: Fields) -> None:
    wanted = frozenset({query.text("id")})
    filters.ids = wanted if filters.ids is None else filters.ids & wanted


def _by_owner(filters: _Filters, query: Fields) -> None:
    filters.nothing |= query.text("resourceOwner") != filters.owner


def _by_action_state(filters: _Filters, query: Fields) -> None:
    word = query.choice("state", ACTION_STATES)
    wanted = {"ACTION_STATE_ACTIVE": True, "ACTION_STATE_INACTIVE": False}.get(word)
    filters.nothing |= wanted is None or filters.active not in {None, wanted}
    filters.active = wanted


def _by_constant(field: str, held: str, choices: Sequence[str]) -> _Query:
    """Return a query for a value that every object of the list has."""

    def test(filters: _Filters, query: Fields) -> None:
        filters.nothing |= query.choice(field, choices) != held

    return test


class _Listing(NamedTuple):
    """A list of one kind.

    Attributes:
        sortable: The columns to sort by; empty for a list that is sorted by id.
    """

    kind: Kind
    view: View
    queries: Mapping[str, _Query]
    sortable: Sequence[str] = ()


_ORGANIZATIONS = _Listing(
    Kind.ORGANIZATION,
    organization_view,
    {
        "nameQuery": _by_name,
        "idQuery": _by_id,
        "stateQuery": _by_constant("state", "ORG_STATE_ACTIVE", ORG_STATES),
    },
    ("ORG_FIELD_NAME_UNSPECIFIED", "ORG_FIELD_NAME_NAME"),
)
_PROJECTS = _Listing(
    Kind.PROJECT,
    project_view,
    {"nameQuery": _by_name, "projectResourceOwnerQuery": _by_owner},
)
_IDPS = _Listing(
    Kind.IDP_JWT_CONFIG,
    idp_view,
    {
        "idpIdQuery": _by_id,
        "idpNameQuery": _by_name,
        "ownerTypeQuery": _by_constant("ownerType", "IDP_OWNER_TYPE_ORG", IDP_OWNER_TYPES),
    },
    ("IDP_FIELD_NAME_UNSPECIFIED", "IDP_FIELD_NAME_NAME"),
)
_PROVIDERS = _IDPS._replace(view=provider_view, sortable=())
_APPS = _Listing(Kind.OIDC_APPLICATION, app_view, {"nameQuery": _by_name})
_ACTIONS = _Listing(
    Kind.ACTION,
    action_view,
    {
        "actionIdQuery": _by_id,
        "actionNameQuery": _by_name,
        "actionStateQuery": _by_action_state,
    },
    (
        "ACTION_FIELD_NAME_UNSPECIFIED",
        "ACTION_FIELD_NAME_NAME",
        "ACTION_FIELD_NAME_ID",
        "ACTION_FIELD_NAME_STATE",
    ),
)
SORTABLE = {listing.kind: listing.sortable for listing in (_ORGANIZATIONS, _IDPS, _ACTIONS)}


def list_orgs(call: Reading, fields: Fields) -> Answer:
    """List the organizations that the caller may see."""
    return _listed(call, fields, _ORGANIZATIONS, _Filters("", call.caller.organizations))


def list_projects(call: Reading, fields: Fields) -> Answer:
    """List the projects of the organization of the call."""
    return _listed(call, fields, _PROJECTS, _Filters(call.organization().id))


def list_idps(call: Reading, fields: Fields) -> Answer:
    """List the identity providers of the organization of the call."""
    return _listed(call, fields, _IDPS, _Filters(call.organization().id))


def list_providers(call: Reading, fields: Fields) -> Answer:
    """List the same identity providers, as the template calls answer them."""
    return _listed(call, fields, _PROVIDERS, _Filters(call.organization().id))


def list_apps(call: Reading, fields: Fields) -> Answer:
    """List the applications of a project."""
    project = call.owner(Kind.PROJECT, fields.text("projectId", required=True))
    return _listed(call, fields, _APPS, _Filters(project.id))


def list_actions(call: Reading, fields: Fields) -> Answer:
    """List the actions of the organization of the call."""
    return _listed(call, fields, _ACTIONS, _Filters(call.organization().id))


def _listed(call: Reading, fields: Fields, listing: _Listing, filters: _Filters) -> Answer:
    _read_queries(fields, listing.queries, filters)
    column = fields.choice("sortingColumn", listing.sortable) if listing.sortable else ""
    cut = fields.part("query")
    query = ObjectQuery(
        listing.kind,
        filters.owner,
        frozenset() if filters.nothing else filters.ids,
        tuple(filters.names),
        filters.active,
        by_name=column.endswith("_FIELD_NAME_NAME"),
        offset=cut.number("offset"),
        limit=_limit_of(cut),
        descending=not cut.flag("asc") and not column.endswith("UNSPECIFIED") and column != "",
    )
    cut.end()
    fields.end()
    total, keys = _found(call, query)
    answer: Answer = {"details": _list_details(total, keys)}
    if column:
        answer["sortingColumn"] = column
    answer["result"] = call.shown(listing.view, keys)
    return answer


def _found(call: Reading, query: ObjectQuery) -> tuple[int, Sequence[ObjectKey]]:
    """Return what a query finds; counted only where something was written since it last was."""
    owner = call.batch.owners.get(query.parent)
    if owner is None or query.is_filtered:
        return call.view.list_objects(query)
    name, state = (query.kind, query.parent), call.view.head(owner.organization).hash
    total, keys = call.view.list_objects(query, call.runtime.totals.get(name, state))
    call.runtime.totals.put(name, state, total)
    return total, keys


def _read_queries(fields: Fields, queries: Mapping[str, _Query], filters: _Filters) -> None:
    for part in fields.parts("queries", MAX_QUERIES, f"must be at most {MAX_QUERIES}"):
        names = part.names()
        if len(names) != 1:
            raise part.wrong("query", f"must be one of {', '.join(queries)}")
        if names[0] not in queries:
            part.end()
        query = part.part(names[0])
        queries[names[0]](filters, query)
        query.end()
        part.end()


def _limit_of(cut: Fields) -> int:
    limit = cut.number("limit")
    if limit > MAX_PAGE:
        raise cut.wrong("limit", f"must be at most {MAX_PAGE}")
    return limit or MAX_PAGE


def _list_details(total: int, keys: Sequence[ObjectKey]) -> Answer:
    last = max([sequence for _, sequence in keys], default=0)
    return {
        "totalResult": str(total),
        "processedSequence": str(last),
        "viewTimestamp": timestamp(last),
    }


ROWS = (
    light_operation("ListOrgs", "org.read", Effect.READS, list_orgs, ADMIN),
    light_operation("ListProjects", "project.read", Effect.READS, list_projects, MANAGEMENT),
    light_operation("ListOrgIDPs", "org.idp.read", Effect.READS, list_idps, MANAGEMENT),
    light_operation("ListProviders", "org.idp.read", Effect.READS, list_providers, MANAGEMENT),
    light_operation("ListApps", "project.app.read", Effect.READS, list_apps, MANAGEMENT),
    light_operation("ListActions", "org.action.read", Effect.READS, list_actions, MANAGEMENT),
)
