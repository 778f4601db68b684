"""Statements and reads that the stores in SQLite and in PostgreSQL share.

Statements are written as SQLite takes them: values are ``?``, and a list is one value, which
``json_each`` takes apart. A store whose database writes them differently translates them once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from reconciler.service.eventstore.port import PAGE
from reconciler.service.eventstore.rows import (
    INACTIVE_MARK,
    Head,
    LeaseRow,
    MarkedKey,
    NameFilter,
    ObjectKey,
    ObjectQuery,
    ObjectRow,
    OwedRow,
    Record,
    SealRow,
    StoredEvent,
    TokenRow,
    first_head,
    length_of_page,
)

Column: TypeAlias = str | int | bytes | None
Values: TypeAlias = Sequence[Column]
Row = TypeVar("Row", bound=tuple[object, ...])
Columns = Sequence[str]
IS_IN_LIST = "IN (SELECT value FROM json_each(?))"


class Number(NamedTuple):
    """The row of a statement that counts."""

    value: int


class Found(Protocol):
    """The rows that a statement found."""

    def fetchone(self) -> Values | None:
        """Return the next row, or None."""
        ...

    def __iter__(self) -> Iterator[Values]: ...


Run = Callable[[str, Sequence[object]], Found]


def select(columns: Columns, table: str, rest: str) -> str:
    """Return a statement that reads columns of a table."""
    return " ".join(["SELECT", ", ".join(columns), "FROM", table, rest])


def insert(columns: Columns, table: str) -> str:
    """Return a statement that adds a row, one value for each column."""
    listed, places = ", ".join(columns), ", ".join("?" for _ in columns)
    return " ".join(["INSERT INTO", table, f"({listed})", "VALUES", f"({places})"])


def on_conflict(columns: Columns, *key: str) -> str:
    """Return the end of an ``INSERT`` that changes the row of a key where there is one."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"


def upsert(columns: Columns, table: str, *key: str) -> str:
    """Return a statement that adds a row, or changes the one of its key."""
    return insert(columns, table) + on_conflict(columns, *key)


# An organization is an object of itself, which its pages leave out.
_PAGE = "WHERE organization = ? AND id > ? AND id <> organization ORDER BY id LIMIT ?"


@dataclass(frozen=True)
class Statements:
    """What is asked of both databases, each statement under the name of the read that runs it."""

    read_stream: str = select(
        StoredEvent._fields,
        "events",
        "WHERE stream = ? AND version > ? ORDER BY version LIMIT ?",
    )
    stream_version: str = (
        "SELECT version FROM events WHERE stream = ? ORDER BY version DESC LIMIT 1"
    )
    read_all: str = select(
        StoredEvent._fields, "events", "WHERE position > ? ORDER BY position LIMIT ?"
    )
    read_organization: str = select(
        StoredEvent._fields,
        "events",
        "WHERE organization = ? AND sequence > ? ORDER BY sequence LIMIT ?",
    )
    heads: str = select(Head._fields, "heads", "ORDER BY organization")
    head: str = select(Head._fields, "heads", "WHERE organization = ?")
    get_object: str = select(ObjectRow._fields, "objects", "WHERE id = ?")
    get_objects: str = select(ObjectRow._fields, "objects", f"WHERE id {IS_IN_LIST}")
    find_object: str = select(
        ObjectRow._fields, "objects", "WHERE parent = ? AND kind = ? AND folded = ?"
    )
    objects_page: str = select(ObjectRow._fields, "objects", _PAGE)
    page_keys: str = select(MarkedKey._fields, "objects", _PAGE)
    all_objects: str = select(ObjectRow._fields, "objects", "ORDER BY id")
    list_objects: str = select(ObjectKey._fields, "objects", "WHERE kind = ? AND parent = ?")
    count_objects: str = "SELECT count(*) FROM objects WHERE kind = ? AND parent = ?"
    record: str = select(Record._fields, "records", "WHERE caller = ? AND key = ?")
    seal: str = select(SealRow._fields, "seals", "WHERE id = ?")
    owed: str = select(OwedRow._fields, "owed", f"WHERE id {IS_IN_LIST}")
    owed_page: str = select(
        OwedRow._fields, "owed", "WHERE organization = ? AND id > ? ORDER BY id LIMIT ?"
    )
    owed_in: str = select(OwedRow._fields, "owed", "WHERE seal = ?")
    lease: str = select(LeaseRow._fields, "leases", "WHERE organization = ?")
    tokens: str = select(TokenRow._fields, "tokens", "ORDER BY name")
    token: str = select(TokenRow._fields, "tokens", "WHERE sha256 = ?")
    meta: str = "SELECT value FROM meta WHERE name = ?"

    def translated(self, translate: Callable[[str], str]) -> Statements:
        """Return the same, as another database writes it."""
        return Statements(*map(translate, astuple(self)))


class Dialect(NamedTuple):
    """How a database writes the statements, and takes a list as one value.

    Attributes:
        name_filters: Conditions by what they compare, with ``{}`` for the column. None is a
            pattern, so that no letter of a name has a meaning.
    """

    statements: Statements
    name_filters: Mapping[str, str]
    is_in_list: str
    mark: str
    as_list: Callable[[list[str]], object]


class SqlSnapshot:
    """The rows as they are seen inside one transaction of a connection."""

    def __init__(self, run: Run, dialect: Dialect) -> None:
        self._run = run
        self._dialect = dialect
        self._sql = dialect.statements
        self._as_list = dialect.as_list

    def _all(self, row: type[Row], statement: str, *values: object) -> list[Row]:
        # The columns of each statement are the fields of its tuple, in their order. ``_make`` of a
        # named tuple counts them for each row, which takes longer than to read the row.
        return list(map(partial(tuple.__new__, row), self._run(statement, values)))

    def _one(self, row: type[Row], statement: str, *values: object) -> Row | None:
        found = self._run(statement, values).fetchone()
        return tuple.__new__(row, found) if found else None

    def read_stream(
        self, stream: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return a stream's events past a version, oldest first."""
        return self._all(StoredEvent, self._sql.read_stream, stream, after, limit)

    def stream_version(self, stream: str) -> int:
        """Return how many events a stream has."""
        found = self._one(Number, self._sql.stream_version, stream)
        return found.value if found else 0

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Return events of every stream past a position, those of one organization in order."""
        return self._all(StoredEvent, self._sql.read_all, after, limit)

    def read_organization(
        self, organization: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return an organization's events past a sequence, oldest first."""
        statement = self._sql.read_organization
        return self._all(StoredEvent, statement, organization, after, limit)

    def heads(self) -> Sequence[Head]:
        """Return where every organization's chain ends, by organization."""
        return self._all(Head, self._sql.heads)

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        return self._one(Head, self._sql.head, organization) or first_head(organization)

    def get_object(self, object_id: str) -> ObjectRow | None:
        """Return the object of an id."""
        return self._one(ObjectRow, self._sql.get_object, object_id)

    def get_objects(self, ids: Collection[str]) -> Sequence[ObjectRow]:
        """Return the objects of these ids, less those that are missing."""
        return self._all(ObjectRow, self._sql.get_objects, self._as_list(list(ids)))

    def find_object(self, kind: str, parent: str, folded: str) -> ObjectRow | None:
        """Return the object of a folded name."""
        return self._one(ObjectRow, self._sql.find_object, parent, kind, folded)

    def objects_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[ObjectRow]:
        """Return objects of an organization, less itself, with ids past one, by id."""
        return self._all(ObjectRow, self._sql.objects_page, organization, after, limit)

    def page_keys(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[MarkedKey]:
        """Return the keys of what ``objects_page`` returns."""
        return self._all(MarkedKey, self._sql.page_keys, organization, after, limit)

    def list_objects(self, query: ObjectQuery) -> tuple[int, Sequence[ObjectKey]]:
        """Return how many objects a query finds, and the keys of those of its page."""
        # Two statements: a count in the same one would read every row that the page skips. Both run
        # in one transaction, so they see the same rows.
        where, values = self._filters(query)
        counted = self._one(Number, self._sql.count_objects + where, *values)
        total = counted.value if counted else 0
        limit = length_of_page(query, total)
        if not limit:
            return total, []
        mark = self._dialect.mark
        rest = f"{where}{_ORDERS[query.by_name, query.descending]} LIMIT {mark} OFFSET {mark}"
        statement = self._sql.list_objects + rest
        return total, self._all(ObjectKey, statement, *values, limit, query.offset)

    def _filters(self, query: ObjectQuery) -> tuple[str, list[object]]:
        """Return the conditions of a query beyond kind and parent, and all values to bind."""
        texts = [""]
        values: list[object] = [query.kind, query.parent]
        if query.ids is not None:
            texts.append(f"id {self._dialect.is_in_list}")
            values.append(self._as_list(sorted(query.ids)))
        for name in query.names:
            if not _is_always_true(name):
                texts.append(self._name_filter(name))
                # Some conditions take the text twice, once for its length.
                values += [name.text] * texts[-1].count(self._dialect.mark)
        if query.active is not None:
            texts.append(f"marks {'NOT ' if query.active else ''}LIKE {self._dialect.mark}")
            values.append(f"%{INACTIVE_MARK}%")
        return " AND ".join(texts), values

    def _name_filter(self, name: NameFilter) -> str:
        return self._dialect.name_filters[name.match].format("folded" if name.folded else "name")

    def all_objects(self) -> Sequence[ObjectRow]:
        """Return every object there is, by id."""
        return self._all(ObjectRow, self._sql.all_objects)

    def record(self, caller: str, key: str) -> Record | None:
        """Return the answer kept under a caller's idempotency key."""
        return self._one(Record, self._sql.record, caller, key)

    def seal(self, seal_id: str) -> SealRow | None:
        """Return a seal."""
        return self._one(SealRow, self._sql.seal, seal_id)

    def owed(self, ids: Collection[str]) -> Sequence[OwedRow]:
        """Return the secrets that these applications owe."""
        return self._all(OwedRow, self._sql.owed, self._as_list(list(ids)))

    def owed_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[OwedRow]:
        """Return secrets owed in an organization, of applications with ids past one, by id."""
        return self._all(OwedRow, self._sql.owed_page, organization, after, limit)

    def owed_in(self, seal_id: str) -> Sequence[OwedRow]:
        """Return the owed secrets that a seal holds."""
        return self._all(OwedRow, self._sql.owed_in, seal_id)

    def lease(self, organization: str) -> LeaseRow | None:
        """Return the last lease of a folded organization name, whether or not it still counts."""
        return self._one(LeaseRow, self._sql.lease, organization)

    def tokens(self) -> Sequence[TokenRow]:
        """Return every token, by name."""
        return self._all(TokenRow, self._sql.tokens)

    def token(self, sha256: bytes) -> TokenRow | None:
        """Return the token of a hash."""
        return self._one(TokenRow, self._sql.token, sha256)

    def meta(self, name: str) -> str:
        """Return a fact about the store itself: ``instance``, ``seal_key``; empty if not kept."""
        found = self._run(self._sql.meta, (name,)).fetchone()
        return str(found[0]) if found else ""


# Each order is that of an index, from either end: no page is ever sorted. Names repeat across
# kinds, so the id makes the order by name total, and pages neither repeat nor skip an object.
_ORDERS = {
    (False, False): " ORDER BY id",
    (False, True): " ORDER BY id DESC",
    (True, False): " ORDER BY folded, id",
    (True, True): " ORDER BY folded DESC, id DESC",
}


def _is_always_true(name: NameFilter) -> bool:
    """Return whether every name begins with, contains and ends with the text: it is empty."""
    return not name.text and name.match != "equals"
