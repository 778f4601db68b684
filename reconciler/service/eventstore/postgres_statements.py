"""The statements that are run on a PostgreSQL store.

Plain SQL, so that databases that speak PostgreSQL's protocol can run it: no advisory lock, no
LISTEN. What waits is written by one statement for all rows of a table, which are bound as one JSON
text: a statement costs the database, and the client, many times what a row costs. JSON is bound and
read several times faster than one array for each column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from reconciler.service.eventstore import tables
from reconciler.service.eventstore.changes import UNKNOWN, Waiting
from reconciler.service.eventstore.postgres_connection import Connection
from reconciler.service.eventstore.rows import Head, ObjectRow, Record
from reconciler.service.eventstore.sql import (
    IS_IN_LIST,
    Dialect,
    Row,
    Snapshot,
    Values,
    by_key,
    insert,
    on_conflict,
    select,
)
from reconciler.service.eventstore.tables import Table

MAX_CHARACTERS = 1 << 20  # of one statement's rows, so that neither side needs much memory at once
MOST_KNOWN = 256  # rows that a view remembers
LONGEST_KNOWN = 4096  # characters or bytes of one of them, and of its key
PREFIX = "reconciler_"


class ChainEnd(NamedTuple):
    """An organization's head, and the position of its last event."""

    organization: str
    sequence: int
    events: int
    hash: bytes
    position: int

    @property
    def head(self) -> Head:
        """Return the head alone."""
        return Head._make(self[:-1])


def _as_here(table: Table) -> Table:
    """Return a table with what is different in PostgreSQL."""
    if table.name == tables.HEADS.name:
        return table._replace(row=ChainEnd)
    if table.name == tables.OBJECTS.name:
        # Names are looked up for objects of every kind at once.
        by_name = table.indexes[0]._replace(columns=("parent", "folded", "kind"))
        # Made last: of two indexes that seem to cost the same, PostgreSQL takes the newer one. It
        # expects one row of a parent that is not in its statistics, whatever it looks up there.
        return table._replace(indexes=(*table.indexes[1:], by_name))
    return table


TABLES = tuple(map(_as_here, tables.TABLES))
_TABLES = {table.name: table for table in TABLES}


class Batched(NamedTuple):
    """The statements that write many rows of a table."""

    add: str
    put: str
    remove: str


@cache
def batched(name: str) -> Batched:
    """Return the statements for the rows of a table."""
    table = _TABLES[name]
    words = [
        "INSERT INTO",
        table.name,
        f"({', '.join(table.columns)})",
        _rows(table, table.columns),
    ]
    add = in_postgres(" ".join(words))
    known_by = ", ".join(table.known_by)
    words = ["DELETE FROM", table.name, f"WHERE ({known_by}) IN ({_rows(table, table.known_by)})"]
    return Batched(add, add + on_conflict(table), in_postgres(" ".join(words)))


def _rows(table: Table, columns: Sequence[str]) -> str:
    rows = f"json_populate_recordset(NULL::{PREFIX}{table.name}, ?::json)"
    return " ".join(["SELECT", ", ".join(columns), "FROM", rows])


FIND_COLUMNS = (
    "SELECT c.relname, a.attname FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
    " WHERE c.relname = ANY(%s) AND c.relkind IN ('r', 'p') AND a.attnum > 0"
    " AND NOT a.attisdropped AND pg_catalog.pg_table_is_visible(c.oid)"
)
USED_SCHEMA = "SELECT current_schema()"  # NULL where the user may use none of search_path
FIND_INDEXES = (
    "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_index i"
    " ON i.indexrelid = c.oid WHERE c.relname = ANY(%s) AND i.indisunique AND i.indisvalid"
    " AND pg_catalog.pg_table_is_visible(c.oid)"
)

BEGIN_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED"
# A transaction of several callers does not wait long for what one of them needs.
BE_IMPATIENT = "SET LOCAL lock_timeout = '50ms'"
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Asked in a transaction that was begun to write: it is "on" on a standby, and by a setting.
IS_READ_ONLY = "SHOW transaction_read_only"
# Seconds that the commit which waits longest has waited for a standby; NULL where none does.
STANDBY_WAIT = (
    "SELECT extract(epoch FROM max(clock_timestamp() - query_start))"
    " FROM pg_catalog.pg_stat_activity WHERE wait_event = 'SyncRep'"
)


_TABLE = re.compile(r"\b(FROM|INTO)\b (?!json_)")


@lru_cache(maxsize=256)
def in_postgres(statement: str) -> str:
    """Return a statement of both stores with PostgreSQL's marks and this store's table names."""
    text = statement.replace(IS_IN_LIST, "= ANY(?)").replace("?", "%s")
    return _TABLE.sub(r"\1 reconciler_", text)


def reading(connection: Connection) -> Connection:
    """Begin to read: every statement sees the same moment."""
    connection.execute(BEGIN_READING)
    return connection


def writing(connection: Connection) -> Connection:
    """Begin to write: every statement sees what was committed before it."""
    connection.execute(BEGIN_WRITING)
    return connection


def snapshot(connection: Connection) -> Snapshot:
    """Return what the transaction of a connection sees."""
    return Snapshot(partial(run, connection), DIALECT)


class View(Snapshot):
    """A view of one moment, in which no short row is looked up twice.

    Calls of a batch look up the same few: their organization, their project. A long row is not
    kept: a call that is refused has a short answer, so that many of them fit into a turn.
    """

    def __init__(self, connection: Connection) -> None:
        # Most statements share one cursor: one for each would make it cost half as much again. So
        # the rows of a statement must be fetched before the next one is run.
        super().__init__(partial(run, connection.cursor()), DIALECT)
        self._connection = connection
        self._known: dict[Sequence[str], Any] = {}

    def _release(self) -> None:
        """Let go of the rows that the database sent, which a cursor keeps until its next statement.

        Long ones would take as much memory again while the answer is made of them.
        """
        self.run = partial(run, self._connection.cursor())

    def _all(self, row: type[Row], table: str, rest: str, *values: object) -> list[Row]:
        found = super()._all(row, table, rest, *values)
        self._release()
        return found

    def _row(self, table: Table, *key: str) -> Any:
        name = (table.name, *key)
        if name in self._known:
            return self._known[name]
        row = super()._row(table, *key)
        texts = (value for value in (*key, *(row or ())) if isinstance(value, (str, bytes)))
        if sum(map(len, texts)) <= LONGEST_KNOWN:
            if len(self._known) >= MOST_KNOWN:
                self._known = {}
            self._known[name] = row
        else:
            self._release()
        return row


def run(
    runner: Connection | psycopg.Cursor[TupleRow], statement: str, values: Sequence[object]
) -> psycopg.Cursor[TupleRow]:
    """Run a statement of both stores."""
    return runner.execute(in_postgres(statement), values)


LOCKED = {tables.LEASES.name, tables.SEALS.name}


def row_of(connection: Connection, table: Table, key: Sequence[str]) -> Any:
    """Return the row of a key; rows of some tables are locked until the commit."""
    rest = by_key(table) + (" FOR UPDATE" if table.name in LOCKED else "")
    found = run(connection, select(table.row, table.name, rest), key).fetchone()
    return tuple.__new__(table.row, found) if found else None


LOCK_META = in_postgres("SELECT value FROM meta WHERE name = ? FOR UPDATE")
# Changes, and locks, no row that has the version already, so that writers do not wait for it.
SIGN = "UPDATE reconciler_meta SET value = %s WHERE name = %s AND value::int < %s"
# Fails where a newer program has written, so that the COMMIT sent with it does nothing. It is the
# last statement: it sees what was committed before this transaction got its locks.
REQUIRE_CURRENT = (
    "SELECT 1 / CASE WHEN value::int > %s THEN 0 ELSE 1 END FROM reconciler_meta WHERE name = %s"
)
# Each row is looked for by itself. Of conditions with two lists, a database may use one for the
# index, and then reads all records of a caller, or all of a project.
RECORDS = " ".join(
    [
        "SELECT found.* FROM unnest(%s::text[], %s::text[]) AS asked (caller, key), LATERAL",
        "(SELECT",
        ", ".join(Record._fields),
        "FROM reconciler_records WHERE caller = asked.caller AND key = asked.key LIMIT 1) AS found",
    ]
)
# Each with the version of its stream.
OBJECTS = " ".join(
    [
        "SELECT found.*, (SELECT max(version) FROM reconciler_events WHERE stream = found.id)",
        "FROM unnest(%s::text[]) AS asked (id), LATERAL (SELECT",
        ", ".join(ObjectRow._fields),
        "FROM reconciler_objects WHERE id = asked.id LIMIT 1) AS found",
    ]
)
NAMES = (
    "SELECT found.* FROM unnest(%s::text[], %s::text[]) AS asked (parent, folded),"
    " LATERAL (SELECT parent, kind, folded, id FROM reconciler_objects"
    " WHERE parent = asked.parent AND folded = asked.folded LIMIT 100) AS found"
)
LOCK_ALL_HEADS = in_postgres(select(ChainEnd, "heads", "ORDER BY organization FOR UPDATE"))
# In order, so that no two writers wait for each other.
LOCK_HEADS = in_postgres(
    select(ChainEnd, "heads", "WHERE organization = ANY(?) ORDER BY organization FOR UPDATE")
)
POSITIONS = "SELECT nextval('reconciler_positions') FROM generate_series(1, %s::int)"

ADD_META = in_postgres(insert(tables.META)) + " ON CONFLICT (name) DO NOTHING"
CLEAR_OBJECTS = (
    "DELETE FROM reconciler_objects WHERE organization = ANY(%s)"
    " OR organization NOT IN (SELECT organization FROM reconciler_heads)"
)

# Dropping what has expired, in this order. Rows that another server is just dropping are left to
# it: no server waits for another one here.
EXPIRE_OWED_SEALS = (
    "DELETE FROM reconciler_seals WHERE id IN (SELECT id FROM reconciler_seals WHERE id IN"
    " (SELECT seal FROM reconciler_owed WHERE seal IS NOT NULL AND expires_at <= %s)"
    " FOR UPDATE SKIP LOCKED)"
)
EXPIRE_OWED = (
    "UPDATE reconciler_owed SET seal = NULL WHERE id IN (SELECT id FROM reconciler_owed"
    " WHERE seal IS NOT NULL AND expires_at <= %s FOR UPDATE SKIP LOCKED)"
    " AND NOT EXISTS (SELECT 1 FROM reconciler_seals WHERE id = reconciler_owed.seal)"
)
EXPIRE_RECORDS = (
    "DELETE FROM reconciler_records WHERE (caller, key) IN (SELECT caller, key"
    " FROM reconciler_records WHERE expires_at <= %s FOR UPDATE SKIP LOCKED)"
)
EXPIRE_SEALS = (
    "DELETE FROM reconciler_seals WHERE id IN (SELECT id FROM reconciler_seals"
    " WHERE expires_at <= %s FOR UPDATE SKIP LOCKED) AND NOT EXISTS"
    " (SELECT 1 FROM reconciler_records WHERE seal = reconciler_seals.id)"
)
EXPIRE_PASSES = (
    "DELETE FROM reconciler_passes WHERE sha256 IN (SELECT sha256"
    " FROM reconciler_passes WHERE kept_until <= %s FOR UPDATE SKIP LOCKED)"
)
EXPIRE = (EXPIRE_OWED_SEALS, EXPIRE_OWED, EXPIRE_RECORDS, EXPIRE_SEALS, EXPIRE_PASSES)

# What a name filter asks, by its kind. No pattern, so that no letter means anything else.
NAME_FILTERS = {
    "equals": "{} = ?",
    "starts": "left({}, length(?::text)) = ?",
    "contains": "strpos({}, ?) > 0",
    "ends": "right({}, length(?::text)) = ?",
}

DIALECT = Dialect(NAME_FILTERS, list)


def batches(waiting: Iterable[Waiting]) -> Iterator[tuple[str, str]]:
    """Yield statements, each with the JSON text of its rows, that write what waits.

    Rows go before others come, so that a name that one object gave up is free for the next one. A
    row that was missing is added and never put over another, so that the constraint finds a writer
    who was faster.
    """
    by_table: dict[str, _Batch] = {}
    for each in waiting:
        name = each.key[0]
        if name in _TABLES:  # other rows are known, and not kept
            by_table.setdefault(name, _Batch([], [], [])).take(_TABLES[name], each)
    for name, batch in by_table.items():
        table, text = _TABLES[name], batched(name)
        yield from _texts(text.remove, table.known_by, batch.gone)
        yield from _texts(text.add, table.columns, batch.new)
        yield from _texts(text.put, table.columns, batch.put)


class _Batch(NamedTuple):
    """Rows of a table: those that go, those that are new, and those that may be there."""

    gone: list[Values]
    new: list[Values]
    put: list[Values]

    def take(self, table: Table, waiting: Waiting) -> None:
        """Add a row that waits."""
        key, row = waiting.key, waiting.row
        found: Any = None if table.is_log else waiting.found
        goes = found is not None and (row is None or _must_go(table, found, row))
        if goes:
            self.gone.append(key[1:] if found is UNKNOWN else table.known_in(found))
        if row is not None:
            (self.new if goes or found is None else self.put).append(row)


def _must_go(table: Table, found: Values, row: Values) -> bool:
    """Return whether the row that was found is removed before it is written anew.

    Another row may get a name that it gives up, and another writer may have put another record in
    its place.
    """
    if found is UNKNOWN:
        return False
    at = _unique_columns(table.name)
    return bool(table.guard) or [found[n] for n in at] != [row[n] for n in at]


@cache
def _unique_columns(name: str) -> Sequence[int]:
    table = _TABLES[name]
    names = {name for index in table.indexes if index.is_unique for name in index.columns}
    return [n for n, name in enumerate(table.columns) if name in names]


def _texts(
    statement: str, columns: Sequence[str], rows: Sequence[Values]
) -> Iterator[tuple[str, str]]:
    """Yield a statement, as often as it takes, with the JSON text of rows."""
    import orjson  # loading it takes a plan longer than it gains by it

    texts, size = list[str](), 0
    for row in rows:
        fields = dict(zip(columns, row, strict=True))
        texts.append(orjson.dumps(fields, default=_as_text).decode())
        size += len(texts[-1])
        if size > MAX_CHARACTERS:
            yield statement, f"[{','.join(texts)}]"
            texts, size = [], 0
    if texts:
        yield statement, f"[{','.join(texts)}]"


def _as_text(value: object) -> str:
    """Return bytes as PostgreSQL reads them from a text.

    Raises:
        TypeError: it is another value that JSON does not know.
    """
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    raise TypeError(f"no row holds a {type(value).__name__}")
