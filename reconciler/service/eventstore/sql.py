"""One view of a store, and the statements that the stores in SQLite and in PostgreSQL share.

Statements are written as SQLite takes them: values are ``?``, and a list is one value, which
``json_each`` takes apart. A store whose database writes them differently translates them as they
are run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from reconciler.resources.ref import fold
from reconciler.service.eventstore.rows import (
    INACTIVE_MARK,
    EventKey,
    EventNote,
    EventTrace,
    Head,
    LeaseRow,
    NameFilter,
    ObjectKey,
    ObjectName,
    ObjectQuery,
    ObjectRow,
    OwedRow,
    PassRow,
    Record,
    SealRow,
    StoredEvent,
    TokenRow,
    TrustRow,
    first_head,
    length_of_page,
)
from reconciler.service.eventstore.tables import HEADS, LEASES, OBJECTS, RECORDS, SEALS, Table

PAGE = 1000  # rows of one read, so that memory does not grow with the store

Column: TypeAlias = str | int | bytes | None
Values: TypeAlias = Sequence[Column]
Row = TypeVar("Row", bound=NamedTuple)
Value = TypeVar("Value", bytes, str)
IS_IN_LIST = "IN (SELECT value FROM json_each(?))"


class Found(Protocol):
    """The rows that a statement found."""

    def fetchone(self) -> Values | None:
        """Return the next row, or None."""
        ...

    def fetchall(self) -> Sequence[Values]:
        """Return the rest of the rows: faster than to go over them."""
        ...

    def __iter__(self) -> Iterator[Values]: ...


Run = Callable[[str, Sequence[object]], Found]


class Dialect(NamedTuple):
    """The parts of statements that two databases write differently.

    Attributes:
        name_filters: Conditions by what they compare, with ``{}`` for the column. None is a
            pattern, so that no letter of a name has a meaning.
        as_list: Makes one value of a list.
    """

    name_filters: Mapping[str, str]
    as_list: Callable[[list[str] | list[int]], object]


@lru_cache(maxsize=256)
def select(row: type[NamedTuple], table: str, rest: str) -> str:
    """Return a statement that reads the columns of a row."""
    return " ".join(["SELECT", ", ".join(row._fields), "FROM", table, rest])


def insert(table: Table) -> str:
    """Return a statement that adds a row, one value for each column."""
    listed, places = ", ".join(table.columns), ", ".join("?" for _ in table.columns)
    return " ".join(["INSERT INTO", table.name, f"({listed})", "VALUES", f"({places})"])


def on_conflict(table: Table) -> str:
    """Return the end of an ``INSERT`` that changes the row of a key where there is one."""
    columns = (name for name in table.columns if name not in table.key)
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return f" ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {changed}"


def upsert(table: Table) -> str:
    """Return a statement that adds a row, or changes the one of its key."""
    return insert(table) + on_conflict(table)


@cache
def _where(*columns: str) -> str:
    return f"WHERE {' AND '.join(f'{name} = ?' for name in columns)}"


def by_key(table: Table) -> str:
    """Return the condition that finds the row of a key."""
    return _where(*table.key)


def delete(table: Table) -> str:
    """Return a statement that removes the row of a key, and of the guard that goes with it."""
    words = ["DELETE FROM", table.name, _where(*table.known_by)]
    return " ".join(words)


# An organization is an object of itself, which its pages leave out.
_PAGE = "WHERE organization = ? AND id > ? AND id <> organization ORDER BY id LIMIT ?"

# Each order is that of an index, from either end: no page is ever sorted. Names repeat across
# kinds, so the id makes the order by name total, and pages neither repeat nor skip an object.
_ORDERS = {
    (False, False): " ORDER BY id",
    (False, True): " ORDER BY id DESC",
    (True, False): " ORDER BY folded, id",
    (True, True): " ORDER BY folded DESC, id DESC",
}


class Snapshot:
    """One consistent view of a store: the rows that one transaction of a connection sees.

    Attributes:
        run: Runs a statement, written as SQLite takes it, in that transaction.
    """

    def __init__(self, run: Run, dialect: Dialect) -> None:
        self.run = run
        self.dialect = dialect
        self._held: dict[bytes, TokenRow | None] = {}
        self._held_short: dict[bytes, PassRow | None] = {}
        self._held_rules: dict[str, TrustRow | None] = {}

    def _all(self, row: type[Row], table: str, rest: str, *values: object) -> list[Row]:
        # The columns of each statement are the fields of its tuple, in their order. ``_make`` of a
        # named tuple counts them for each row, which takes longer than to read the row.
        found = self.run(select(row, table, rest), values).fetchall()
        return list(map(partial(tuple.__new__, row), found))

    def _keys(self, rest: str, *values: object) -> Sequence[ObjectKey]:
        words = ["SELECT id, sequence FROM objects", rest]
        return cast("Sequence[ObjectKey]", self.run(" ".join(words), values).fetchall())

    def _one(self, row: type[Row], table: str, rest: str, *values: object) -> Row | None:
        found = self.run(select(row, table, rest), values).fetchone()
        return tuple.__new__(row, found) if found else None

    def _row(self, table: Table, *key: str) -> Any:
        """Return the row of a key."""
        return self._one(table.row, table.name, by_key(table), *key)

    def _value(self, statement: str, *values: object) -> Column:
        found = self.run(statement, values).fetchone()
        return found[0] if found else None

    def read_stream(
        self, stream: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return a stream's events past a version, oldest first."""
        rest = "WHERE stream = ? AND version > ? ORDER BY version LIMIT ?"
        return self._all(StoredEvent, "events", rest, stream, after, limit)

    def stream_version(self, stream: str) -> int:
        """Return how many events a stream has."""
        statement = "SELECT version FROM events WHERE stream = ? ORDER BY version DESC LIMIT 1"
        return int(self._value(statement, stream) or 0)

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Return events of every stream past a position, those of one organization in order.

        Positions are for paging within one view. Another view may have events of another
        organization at positions that were passed; those of one organization only grow.
        In a transaction, no other one can append from then on to what was there.
        """
        rest = "WHERE position > ? ORDER BY position LIMIT ?"
        return self._all(StoredEvent, "events", rest, after, limit)

    def event_keys(
        self, organization: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[EventKey]:
        """Return the keys of an organization's events past a sequence, oldest first."""
        rest = "WHERE organization = ? AND sequence > ? ORDER BY sequence LIMIT ?"
        return self._all(EventKey, "events", rest, organization, after, limit)

    def last_event_keys(self, organization: str, before: int, limit: int) -> Sequence[EventKey]:
        """Return the keys of an organization's events before a sequence, newest first."""
        rest = "WHERE organization = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?"
        return self._all(EventKey, "events", rest, organization, before, limit)

    def event_notes(self, organization: str, sequences: Collection[int]) -> Sequence[EventNote]:
        """Return the events of an organization at these sequences, in any order."""
        listed = self.dialect.as_list([*sequences])
        rest = f"WHERE organization = ? AND sequence {IS_IN_LIST}"
        return self._all(EventNote, "events", rest, organization, listed)

    def traces_before(self, stream: str, version: int, limit: int = PAGE) -> Sequence[EventTrace]:
        """Return traces of a stream's events before a version, newest first."""
        rest = "WHERE stream = ? AND version < ? ORDER BY version DESC LIMIT ?"
        return self._all(EventTrace, "events", rest, stream, version, limit)

    def heads(self) -> Sequence[Head]:
        """Return where every organization's chain ends, by organization."""
        return self._all(Head, "heads", "ORDER BY organization")

    def heads_of(self, organizations: Collection[str]) -> Sequence[Head]:
        """Return where the chains of these organizations end, in any order."""
        listed = self.dialect.as_list([*organizations])
        return self._all(Head, "heads", f"WHERE organization {IS_IN_LIST}", listed)

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        head: Head | None = self._row(HEADS, organization)
        return head or first_head(organization)

    def get_object(self, object_id: str) -> ObjectRow | None:
        """Return the object of an id."""
        row: ObjectRow | None = self._row(OBJECTS, object_id)
        return row

    def get_objects(self, ids: Collection[str]) -> Sequence[ObjectRow]:
        """Return the objects of these ids, in any order, less those that are missing."""
        listed = self.dialect.as_list(list(ids))
        return self._all(ObjectRow, "objects", f"WHERE id {IS_IN_LIST}", listed)

    def object_names(self, ids: Collection[str]) -> Sequence[ObjectName]:
        """Return the names of the objects of these ids, in any order, less those missing."""
        listed = self.dialect.as_list([*ids])
        return self._all(ObjectName, "objects", f"WHERE id {IS_IN_LIST}", listed)

    def find_object(self, kind: str, parent: str, folded: str) -> ObjectRow | None:
        """Return the object of a folded name."""
        rest = "WHERE parent = ? AND kind = ? AND folded = ?"
        return self._one(ObjectRow, "objects", rest, parent, kind, folded)

    def objects_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[ObjectRow]:
        """Return objects of an organization, less itself, with ids past one, by id."""
        return self._all(ObjectRow, "objects", _PAGE, organization, after, limit)

    def page_keys(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[ObjectKey]:
        """Return the keys of what ``objects_page`` returns."""
        return self._keys(_PAGE, organization, after, limit)

    def page_marks(self, organization: str, limit: int = PAGE) -> Sequence[str]:
        """Return the marks of the first objects of an organization, less itself."""
        words = ["SELECT marks FROM objects", _PAGE]
        found = self.run(" ".join(words), (organization, "", limit))
        return [str(marks) for (marks,) in found]

    def list_objects(
        self, query: ObjectQuery, total: int | None = None
    ) -> tuple[int, Sequence[ObjectKey]]:
        """Return how many objects a query finds, and the keys of those of its page.

        They are counted unless ``total`` says how many there are.
        """
        where, values = self._filters(query)
        if any(name.match == "equals" for name in query.names):
            # Names are unique, so there is one at most. If it had to be in an order, PostgreSQL
            # would go through the index of that order, to the end of the list.
            keys = self._keys(where, *values)
            return len(keys), keys[query.offset :][: query.limit or 1]
        # Two statements: a count in the same one would read every row that the page skips. Both run
        # in one transaction, so they see the same rows.
        if total is None:
            words = ["SELECT count(*) FROM objects", where]
            total = int(self._value(" ".join(words), *values) or 0)
        limit = length_of_page(query, total)
        if not limit:
            return total, []
        rest = f"{where}{_ORDERS[query.by_name, query.descending]} LIMIT ? OFFSET ?"
        return total, self._keys(rest, *values, limit, query.offset)

    def _filters(self, query: ObjectQuery) -> tuple[str, list[object]]:
        """Return the conditions of a query, and the values to bind."""
        texts = ["WHERE kind = ? AND parent = ?"]
        values: list[object] = [query.kind, query.parent]
        if query.ids is not None:
            texts.append(f"id {IS_IN_LIST}")
            values.append(self.dialect.as_list(sorted(query.ids)))
        for name in query.names:
            if name.match == "equals" and not name.folded:
                texts.append("folded = ?")  # which has an index
                values.append(fold(name.text))
            # Every name begins with, contains and ends with an empty text.
            if name.text or name.match == "equals":
                texts.append(self._name_filter(name))
                # Some conditions take the text twice, once for its length.
                values += [name.text] * texts[-1].count("?")
        if query.active is not None:
            texts.append(f"marks {'NOT ' if query.active else ''}LIKE ?")
            values.append(f"%{INACTIVE_MARK}%")
        return " AND ".join(texts), values

    def _name_filter(self, name: NameFilter) -> str:
        return self.dialect.name_filters[name.match].format("folded" if name.folded else "name")

    def all_objects(self) -> Sequence[ObjectRow]:
        """Return every object there is, by id."""
        return self._all(ObjectRow, "objects", "ORDER BY id")

    def record(self, caller: str, key: str) -> Record | None:
        """Return the answer kept under a caller's idempotency key."""
        record: Record | None = self._row(RECORDS, caller, key)
        return record

    def seal(self, seal_id: str) -> SealRow | None:
        """Return a seal. In a transaction, no other one can change it until the end."""
        seal: SealRow | None = self._row(SEALS, seal_id)
        return seal

    def owed(self, ids: Collection[str]) -> Sequence[OwedRow]:
        """Return the secrets that these applications owe, in any order."""
        listed = self.dialect.as_list(list(ids))
        return self._all(OwedRow, "owed", f"WHERE id {IS_IN_LIST}", listed)

    def owed_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[OwedRow]:
        """Return secrets owed in an organization, of applications with ids past one, by id."""
        rest = "WHERE organization = ? AND id > ? ORDER BY id LIMIT ?"
        return self._all(OwedRow, "owed", rest, organization, after, limit)

    def owed_counts(self, organizations: Collection[str], now: int) -> Mapping[str, int]:
        """Return how many secrets these organizations owe that are still kept, where any are."""
        listed = self.dialect.as_list([*organizations])
        words = ["SELECT organization, count(*) FROM owed WHERE organization", IS_IN_LIST]
        words.append("AND seal IS NOT NULL AND expires_at > ? GROUP BY organization")
        found = self.run(" ".join(words), (listed, now))
        return {str(name): int(count or 0) for name, count in found}

    def owed_in(self, seal_id: str) -> Sequence[OwedRow]:
        """Return the owed secrets that a seal holds, in any order."""
        return self._all(OwedRow, "owed", "WHERE seal = ?", seal_id)

    def lease(self, organization: str) -> LeaseRow | None:
        """Return the last lease of a folded organization name, whether or not it still counts.

        In a transaction, no other one can change it until the end.
        """
        lease: LeaseRow | None = self._row(LEASES, organization)
        return lease

    def tokens(self) -> Sequence[TokenRow]:
        """Return every token, by name. In a transaction, no other can change them until the end."""
        return self._all(TokenRow, "tokens", "ORDER BY name")

    def hold_tokens(self, hashes: Collection[bytes]) -> None:
        """Read the tokens of these hashes, and the rules of short ones, in three statements.

        ``token``, ``short_token`` and ``trust`` answer from them from now on.
        """
        self._held = self._held_by("sha256", TokenRow, "tokens", hashes)
        short = [sha256 for sha256, row in self._held.items() if row is None]
        self._held_short = self._held_by("sha256", PassRow, "passes", short)
        rules = {row.rule for row in self._held_short.values() if row is not None}
        self._held_rules = self._held_by("name", TrustRow, "trusts", rules)

    def _held_by(
        self, column: str, row: type[Row], table: str, values: Collection[Value]
    ) -> dict[Value, Row | None]:
        """Return the row of each value of a column, or None."""
        held: dict[Value, Row | None] = dict.fromkeys(values)
        if values:
            # The first one is asked for several times, so that there are few statements, and not
            # one for each number of callers: databases keep those ready that come again.
            asked = [*values]
            asked += asked[:1] * ((1 << (len(asked) - 1).bit_length()) - len(asked))
            marks = ", ".join("?" for _ in asked)
            found = self._all(row, table, f"WHERE {column} IN ({marks})", *asked)
            held.update((getattr(each, column), each) for each in found)
        return held

    def token(self, sha256: bytes) -> TokenRow | None:
        """Return the token of a hash."""
        if sha256 in self._held:
            return self._held[sha256]
        return self._one(TokenRow, "tokens", "WHERE sha256 = ?", sha256)

    def trusts(self) -> Sequence[TrustRow]:
        """Return every rule, by name. In a transaction, no other can change them until the end."""
        return self._all(TrustRow, "trusts", "ORDER BY name")

    def trust(self, name: str) -> TrustRow | None:
        """Return the rule of a name."""
        if name in self._held_rules:
            return self._held_rules[name]
        return self._one(TrustRow, "trusts", "WHERE name = ?", name)

    def trusts_of(self, issuer: str) -> Sequence[TrustRow]:
        """Return the rules for the tokens of an issuer, by name."""
        return self._all(TrustRow, "trusts", "WHERE issuer = ? ORDER BY name", issuer)

    def short_token(self, sha256: bytes) -> PassRow | None:
        """Return the short token of a hash, whether or not it still counts."""
        if sha256 in self._held_short:
            return self._held_short[sha256]
        return self._one(PassRow, "passes", "WHERE sha256 = ?", sha256)

    def is_used(self, digest: str) -> bool:
        """Return whether a signed token that is exchanged only once was exchanged."""
        return self._value("SELECT 1 FROM passes WHERE used = ?", digest) is not None

    def meta(self, name: str) -> str:
        """Return a fact about the store itself: ``instance``, ``seal_key``; empty if not kept."""
        return str(self._value("SELECT value FROM meta WHERE name = ?", name) or "")
