"""Lists of one kind, filtered, sorted and cut as the caller asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from reconciler.kinds.fields import KINDS
from reconciler.resources.ref import IN_PROJECT, Kind, fold
from reconciler.service.eventstore.rows import NameFilter, ObjectKey, ObjectQuery, ObjectRow
from reconciler.service.operations.answers import Answer, timestamp
from reconciler.service.operations.operation import MANAGEMENT, Effect, Operation
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


@dataclass(slots=True)
class Filters:
    """The queries of a list, all of which must hold.

    Attributes:
        owner: Id of the organization or project that owns what is listed.
        tests: Of what the store has no column for; every object of the owner is read.
        nothing: Whether they exclude every object.
    """

    owner: str
    ids: frozenset[str] | None = None
    names: list[NameFilter] = field(default_factory=list)
    active: bool | None = None
    tests: list[Callable[[ObjectRow], bool]] = field(default_factory=list)
    nothing: bool = False


class Query(NamedTuple):
    """A test of objects that a caller may ask for.

    Attributes:
        narrow: Adds the test to the others.
        field: The field that it reads.
        words: The words that the field may have; empty for a text.
        has_method: Whether it also reads how the text is compared.
    """

    narrow: Callable[[Filters, Fields], None]
    field: str
    words: Sequence[str] = ()
    has_method: bool = False


def _by_name(filters: Filters, query: Fields) -> None:
    text = query.text("name")
    match, folded = METHODS[query.choice("method", tuple(METHODS))]
    filters.names.append(NameFilter(match, fold(text) if folded else text, folded))


def _by_id(filters: Filters, query: Fields) -> None:
    wanted = frozenset({query.text("id")})
    filters.ids = wanted if filters.ids is None else filters.ids & wanted


def _by_owner(filters: Filters, query: Fields) -> None:
    filters.nothing |= query.text("resourceOwner") != filters.owner


BY_NAME = Query(_by_name, "name", has_method=True)
BY_ID = Query(_by_id, "id")
BY_OWNER = Query(_by_owner, "resourceOwner")


def by_state(*words: str) -> Query:
    """Return a query for a state, of words that end in ``_ACTIVE`` and ``_INACTIVE``."""

    def narrow(filters: Filters, query: Fields) -> None:
        word = query.choice("state", words)
        wanted = {"ACTIVE": True, "INACTIVE": False}.get(word.rpartition("_")[2])
        filters.nothing |= wanted is None or filters.active not in {None, wanted}
        filters.active = wanted

    return Query(narrow, "state", words)


def by_constant(field: str, held: str, *words: str) -> Query:
    """Return a query for a value that every object of the list has, of all that there are."""

    def narrow(filters: Filters, query: Fields) -> None:
        filters.nothing |= query.choice(field, words) != held

    return Query(narrow, field, words)


@dataclass(frozen=True, slots=True)
class Listing:
    """The list of one kind.

    Attributes:
        sortable: The columns to sort by; empty for a list that is sorted by id.
    """

    kind: Kind
    view: View
    queries: Mapping[str, Query]
    sortable: Sequence[str] = ()

    def __call__(self, call: Reading, fields: Fields) -> Answer:
        """Return a page of the list."""
        filters = self._filters(call, fields)
        _read_queries(fields, self.queries, filters)
        column = fields.choice("sortingColumn", self.sortable) if self.sortable else ""
        cut = fields.part("query")
        query = ObjectQuery(
            self.kind,
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
        total, keys = _tested(call, query, filters) if filters.tests else _found(call, query)
        answer: Answer = {"details": _list_details(total, keys)}
        if column:
            answer["sortingColumn"] = column
        answer["result"] = call.shown("result", self.view, keys)
        return answer

    def _filters(self, call: Reading, fields: Fields) -> Filters:
        if self.kind is Kind.ORGANIZATION:
            return Filters("", call.caller.organizations)
        if self.kind in IN_PROJECT:
            project = fields.text("projectId", required=True)
            return Filters(call.owner(Kind.PROJECT, project).id)
        return Filters(call.organization().id)


def listed(
    name: str,
    permission: str,
    listing: Listing,
    *,
    service: str = MANAGEMENT,
    about: str = "",
) -> Operation:
    """Return the operation that lists objects of a kind."""
    row = KINDS[listing.kind]
    owner = "a project" if listing.kind in IN_PROJECT else "the organization of the call"
    about = about or f"List the {row.plural} of {owner}."
    return Operation(
        name, permission, Effect.READS, listing, grpc=(f"{service}/{name}",), about=about
    )


def _found(call: Reading, query: ObjectQuery) -> tuple[int, Sequence[ObjectKey]]:
    """Return what a query finds; counted only where something was written since it last was."""
    owner = call.batch.owners.get(query.parent)
    if owner is None or query.is_filtered:
        return call.view.list_objects(query)
    name, state = (query.kind, query.parent), call.view.head(owner.organization).hash
    total, keys = call.view.list_objects(query, call.runtime.totals.get(name, state))
    call.runtime.totals.put(name, state, total)
    return total, keys


def _tested(call: Reading, query: ObjectQuery, filters: Filters) -> tuple[int, Sequence[ObjectKey]]:
    _, keys = call.view.list_objects(query._replace(offset=0, limit=0))
    rows = call.view.get_objects([object_id for object_id, _ in keys])
    passing = {row.id for row in rows if all(test(row) for test in filters.tests)}
    found = [key for key in keys if key[0] in passing]
    return len(found), found[query.offset :][: query.limit]


def _read_queries(fields: Fields, queries: Mapping[str, Query], filters: Filters) -> None:
    for part in fields.parts("queries", MAX_QUERIES, f"must be at most {MAX_QUERIES}"):
        names = part.names()
        if len(names) != 1:
            raise part.wrong("query", f"must be one of {', '.join(queries)}")
        if names[0] not in queries:
            part.end()
        query = part.part(names[0])
        queries[names[0]].narrow(filters, query)
        query.end()
        part.end()


def _limit_of(cut: Fields) -> int:
    limit = cut.number("limit")
    if limit > MAX_PAGE:
        raise cut.wrong("limit", f"must be at most {MAX_PAGE}")
    return limit or MAX_PAGE


def _list_details(total: int, keys: Sequence[ObjectKey]) -> Answer:
    last = max(map(itemgetter(1), keys), default=0)
    return {
        "totalResult": str(total),
        "processedSequence": str(last),
        "viewTimestamp": timestamp(last),
    }
