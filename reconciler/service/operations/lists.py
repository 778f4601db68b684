"""Lists, filtered and cut as the API asks: query, queries, sorting column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from reconciler.resources.ref import Kind, fold
from reconciler.service.eventstore.rows import NameFilter, ObjectKey, ObjectQuery, ObjectRow
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
SORTABLE: Mapping[Kind, Sequence[str]] = {
    Kind.ORGANIZATION: ("ORG_FIELD_NAME_UNSPECIFIED", "ORG_FIELD_NAME_NAME"),
    Kind.IDP_JWT_CONFIG: ("IDP_FIELD_NAME_UNSPECIFIED", "IDP_FIELD_NAME_NAME"),
    Kind.ACTION: (
        "ACTION_FIELD_NAME_UNSPECIFIED",
        "ACTION_FIELD_NAME_NAME",
        "ACTION_FIELD_NAME_ID",
        "ACTION_FIELD_NAME_STATE",
    ),
}
_View: TypeAlias = Callable[[ObjectRow], Answer]
_VIEWS: dict[Kind, _View] = {
    Kind.ORGANIZATION: organization_view,
    Kind.PROJECT: project_view,
    Kind.IDP_JWT_CONFIG: idp_view,
    Kind.OIDC_APPLICATION: app_view,
    Kind.ACTION: action_view,
}


_Queries = Mapping[str, Callable[[Fields], None]]


class Filters:
    """The queries of a list: all of them must hold."""

    def __init__(self, among: frozenset[str] | None = None) -> None:
        self.names: list[NameFilter] = []
        self.ids = among
        self.active: bool | None = None
        self.nothing = False

    def name(self, query: Fields) -> None:
        """Add a test of the name."""
        text = query.text("name")
        match, folded = METHODS[query.choice("method", tuple(METHODS))]
        self.names.append(NameFilter(match, fold(text) if folded else text, folded))

    def id(self, query: Fields) -> None:
        """Add a test of the id."""
        wanted = frozenset({query.text("id")})
        self.ids = wanted if self.ids is None else self.ids & wanted

    def state(self, query: Fields) -> None:
        """Add a test of an action's state."""
        word = query.choice("state", ACTION_STATES)
        wanted = {"ACTION_STATE_ACTIVE": True, "ACTION_STATE_INACTIVE": False}.get(word)
        if wanted is None or self.active not in {None, wanted}:
            self.nothing = True
        self.active = wanted

    def only(self, field: str, held: str, choices: Sequence[str]) -> Callable[[Fields], None]:
        """Return a test of something that is the same for every object."""

        def test(query: Fields) -> None:
            if query.choice(field, choices) != held:
                self.nothing = True

        return test


def list_orgs(call: Reading, fields: Fields) -> Answer:
    """List the organizations that the caller may see."""
    filters = Filters(call.caller.organizations)
    queries: _Queries = {
        "nameQuery": filters.name,
        "idQuery": filters.id,
        "stateQuery": filters.only("state", "ORG_STATE_ACTIVE", ORG_STATES),
    }
    return _listed(call, Kind.ORGANIZATION, "", fields, (filters, queries))


def list_projects(call: Reading, fields: Fields) -> Answer:
    """List the projects of the organization of the call."""
    owner, filters = call.organization(), Filters()

    def owned(query: Fields) -> None:
        if query.text("resourceOwner") != owner.id:
            filters.nothing = True

    queries: _Queries = {"nameQuery": filters.name, "projectResourceOwnerQuery": owned}
    return _listed(call, Kind.PROJECT, owner.id, fields, (filters, queries))


def list_idps(call: Reading, fields: Fields) -> Answer:
    """List the identity providers of the organization of the call."""
    owner = call.organization()
    return _listed(call, Kind.IDP_JWT_CONFIG, owner.id, fields, _provider_queries())


def list_providers(call: Reading, fields: Fields) -> Answer:
    """List the same identity providers, as the template calls answer them."""
    owner, queries = call.organization(), _provider_queries()
    return _listed(call, Kind.IDP_JWT_CONFIG, owner.id, fields, queries, provider_view)


def _provider_queries() -> tuple[Filters, _Queries]:
    filters = Filters()
    queries: _Queries = {
        "idpIdQuery": filters.id,
        "idpNameQuery": filters.name,
        "ownerTypeQuery": filters.only("ownerType", "IDP_OWNER_TYPE_ORG", IDP_OWNER_TYPES),
    }
    return filters, queries


def list_apps(call: Reading, fields: Fields) -> Answer:
    """List the applications of a project."""
    filters = Filters()
    project = call.owner(Kind.PROJECT, fields.text("projectId", required=True))
    queries: _Queries = {"nameQuery": filters.name}
    return _listed(call, Kind.OIDC_APPLICATION, project.id, fields, (filters, queries))


def list_actions(call: Reading, fields: Fields) -> Answer:
    """List the actions of the organization of the call."""
    filters = Filters()
    queries: _Queries = {
        "actionIdQuery": filters.id,
        "actionNameQuery": filters.name,
        "actionStateQuery": filters.state,
    }
    owner = call.organization()
    return _listed(call, Kind.ACTION, owner.id, fields, (filters, queries))


def _listed(
    call: Reading,
    kind: Kind,
    parent: str,
    fields: Fields,
    filtering: tuple[Filters, _Queries],
    view: _View | None = None,
) -> Answer:
    filters, queries = filtering
    parts = fields.parts("queries")
    if len(parts) > MAX_QUERIES:
        raise fields.wrong("queries", f"must be at most {MAX_QUERIES}")
    _read_queries(parts, queries)
    # The lists that have a view of their own have no column to sort by.
    is_sortable = kind in SORTABLE and view is None
    column = fields.choice("sortingColumn", SORTABLE[kind]) if is_sortable else ""
    cut = fields.part("query")
    query = ObjectQuery(
        kind,
        parent,
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
    total, keys = call.view.list_objects(query)
    answer: Answer = {"details": _list_details(total, keys)}
    if column:
        answer["sortingColumn"] = column
    answer["result"] = call.shown(view or _VIEWS[kind], keys)
    return answer


def _limit_of(cut: Fields) -> int:
    limit = cut.number("limit")
    if limit > MAX_PAGE:
        raise cut.wrong("limit", f"must be at most {MAX_PAGE}")
    return limit or MAX_PAGE


def _read_queries(parts: Sequence[Fields], queries: _Queries) -> None:
    for part in parts:
        names = part.names()
        if len(names) != 1:
            raise part.wrong("query", f"must be one of {', '.join(queries)}")
        if names[0] not in queries:
            part.end()
        query = part.part(names[0])
        queries[names[0]](query)
        query.end()
        part.end()


def _list_details(total: int, keys: Sequence[ObjectKey]) -> Answer:
    last = max([key.sequence for key in keys], default=0)
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
