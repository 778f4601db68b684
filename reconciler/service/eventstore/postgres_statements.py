"""The statements that are run on a PostgreSQL store.

Plain SQL, so that databases that speak PostgreSQL's protocol can run it: no advisory lock, no
LISTEN. What waits is written by statements that run once for many rows, which are bound as one JSON
text: a statement costs the database, and the client, many times what a row costs, so a commit of a
hundred calls has some three statements and not some three hundred. JSON is bound and read several
times faster than one array for each column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import psycopg
from psycopg.rows import TupleRow

from reconciler.service.eventstore.postgres_connection import Connection
from reconciler.service.eventstore.rows import (
    Head,
    LeaseRow,
    ObjectRow,
    OwedRow,
    Record,
    SealRow,
    StoredEvent,
    TokenRow,
)
from reconciler.service.eventstore.sql import (
    IS_IN_LIST,
    Column,
    Dialect,
    Snapshot,
    Values,
    insert,
    on_conflict,
    select,
    upsert,
)

MAX_CHARACTERS = 1 << 20  # of one statement's rows, so that neither side needs much memory at once


class Batched(NamedTuple):
    """A statement for many rows.

    Attributes:
        table: Statements of one table are sent in the order in which they were decided; those of
            different tables do not depend on each other.
        columns: Those of a row, in its order.
        is_once: Whether no two rows of one statement may have the same first column: PostgreSQL
            does not change a row twice in one ``ON CONFLICT DO UPDATE``.
        is_last: Whether, of the rows with the same first column, only the last one is needed.
    """

    table: str
    text: str
    columns: tuple[str, ...]
    is_once: bool = False
    is_last: bool = False


Waiting = Sequence[tuple[Batched, Values]]


def inserted(table: str, columns: tuple[str, ...]) -> Batched:
    """Return a statement that adds rows."""
    words = ["INSERT INTO", table, f"({', '.join(columns)})", _rows(table, columns)]
    return Batched(table, " ".join(words), columns)


def upserted(table: str, columns: tuple[str, ...], *, is_last: bool = False) -> Batched:
    """Return a statement that adds rows, or changes those of the same first column."""
    text = inserted(table, columns).text + on_conflict(columns, columns[0])
    return Batched(table, text, columns, is_once=True, is_last=is_last)


def deleted(table: str, *columns: str) -> Batched:
    """Return a statement that removes the rows that have these values in these columns."""
    words = ["DELETE FROM", table, f"WHERE ({', '.join(columns)}) IN ({_rows(table, columns)})"]
    return Batched(table, " ".join(words), columns)


def _rows(table: str, columns: Sequence[str]) -> str:
    listed = ", ".join(columns)
    return " ".join(["SELECT", listed, f"FROM json_populate_recordset(NULL::{table}, %s::json)"])


FIND_COLUMNS = (
    "SELECT c.relname, a.attname FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
    " WHERE c.relname = ANY(%s) AND c.relkind IN ('r', 'p') AND a.attnum > 0"
    " AND NOT a.attisdropped AND pg_catalog.pg_table_is_visible(c.oid)"
)
FIND_INDEXES = (
    "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_index i"
    " ON i.indexrelid = c.oid WHERE c.relname = ANY(%s) AND i.indisunique AND i.indisvalid"
    " AND pg_catalog.pg_table_is_visible(c.oid)"
)

BEGIN_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED"
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


_TABLE = re.compile(r"\b(FROM|INTO)\b ")


@lru_cache(maxsize=256)
def in_postgres(statement: str) -> str:
    """Return a statement of both stores with PostgreSQL's marks and this store's table names."""
    text = statement.replace(IS_IN_LIST, "= ANY(?)").replace("?", "%s")
    return _TABLE.sub(r"\1 reconciler_", text)


def snapshot(connection: Connection) -> Snapshot:
    """Return what the transaction of a connection sees."""
    return Snapshot(partial(run, connection), DIALECT)


def run(
    connection: Connection, statement: str, values: Sequence[object]
) -> psycopg.Cursor[TupleRow]:
    """Run a statement of both stores."""
    return connection.execute(in_postgres(statement), values)


OBJECTS = in_postgres(select(ObjectRow, "objects", f"WHERE id {IS_IN_LIST}"))
META = in_postgres("SELECT value FROM meta WHERE name = ?")
LOCK_META = META + " FOR UPDATE"
LOCK_LEASE = in_postgres(select(LeaseRow, "leases", "WHERE organization = ? FOR UPDATE"))
RECORDS = in_postgres(select(Record, "records", "WHERE caller = ANY(?) AND key = ANY(?)"))
_CHAIN_END = (*Head._fields, "position")
LOCK_HEADS = (
    "SELECT organization, sequence, events, hash, position FROM reconciler_heads"
    " ORDER BY organization FOR UPDATE"
)
LOCK_HEAD = LOCK_HEADS.replace("ORDER BY organization", "WHERE organization = %s")
NAMES = (
    "SELECT parent, kind, folded, id FROM reconciler_objects"
    " WHERE parent = ANY(%s) AND folded = ANY(%s)"
)
# One look into the index for each stream, whatever number of events it has.
VERSIONS = (
    "SELECT asked.stream, (SELECT max(version) FROM reconciler_events AS event"
    " WHERE event.stream = asked.stream) FROM unnest(%s::text[]) AS asked (stream)"
)
POSITIONS = "SELECT nextval('reconciler_positions') FROM generate_series(1, %s::int)"

# Rows that wait, and are written many at a time.
ADD_EVENT = inserted("reconciler_events", StoredEvent._fields)
PUT_HEAD = upserted("reconciler_heads", _CHAIN_END, is_last=True)
PUT_OBJECT = upserted("reconciler_objects", ObjectRow._fields)
REMOVE_OBJECT = deleted("reconciler_objects", "id")
ADD_RECORD = inserted("reconciler_records", Record._fields)
DROP_RECORD = deleted("reconciler_records", "caller", "key", "expires_at")
PUT_SEAL = upserted("reconciler_seals", SealRow._fields)
REMOVE_SEAL = deleted("reconciler_seals", "id")
PUT_OWED = upserted("reconciler_owed", OwedRow._fields)
REMOVE_OWED = deleted("reconciler_owed", "id", "made_at")

# Rows that are written at once, because a constraint decides, or a lock must be had.
DO_NOTHING = " ON CONFLICT ({}) DO NOTHING"
ADD_META = in_postgres(insert(("name", "value"), "meta")) + DO_NOTHING.format("name")
SET_META = "UPDATE reconciler_meta SET value = %s WHERE name = %s"
ADD_HEAD = (
    "INSERT INTO reconciler_heads (organization, sequence, events, hash, position)"
    " VALUES (%s, %s, %s, %s, 0) ON CONFLICT (organization) DO NOTHING"
)
PUT_OBJECT_NOW = in_postgres(upsert(ObjectRow._fields, "objects", "id"))
CLEAR_OBJECTS = (
    "DELETE FROM reconciler_objects WHERE organization = ANY(%s)"
    " OR organization NOT IN (SELECT organization FROM reconciler_heads)"
)
ADD_LEASE = in_postgres(insert(LeaseRow._fields, "leases")) + DO_NOTHING.format("organization")
PUT_LEASE = in_postgres(upsert(LeaseRow._fields, "leases", "organization"))
PUT_TOKEN = in_postgres(upsert(TokenRow._fields, "tokens", "name"))

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
EXPIRE = (EXPIRE_OWED_SEALS, EXPIRE_OWED, EXPIRE_RECORDS, EXPIRE_SEALS)

# What a name filter asks, by its kind. No pattern, so that no letter means anything else.
NAME_FILTERS = {
    "equals": "{} = ?",
    "starts": "left({}, length(?::text)) = ?",
    "contains": "strpos({}, ?) > 0",
    "ends": "right({}, length(?::text)) = ?",
}

DIALECT = Dialect(NAME_FILTERS, list)


def batches(waiting: Waiting) -> Iterator[tuple[str, str]]:
    """Yield statements, each with the JSON text of its rows, that write what waits.

    For instance, ``put a1, event, put b1, remove c, put a2`` of objects and events becomes
    ``put [a1, b1]``, ``remove [c]``, ``put [a2]`` and ``add [event]``.
    """
    tables: dict[str, list[tuple[Batched, Values]]] = {}
    for statement, row in waiting:
        tables.setdefault(statement.table, []).append((statement, row))
    for decided in tables.values():
        rows = _last_ones(decided) if decided[0][0].is_last else decided
        for statement, texts in _runs(rows):
            yield statement.text, f"[{','.join(texts)}]"


def _last_ones(rows: Waiting) -> Waiting:
    # A dict keeps the place of a key's first row, and the value of its last.
    return list({row[0]: (statement, row) for statement, row in rows}.values())


def _runs(rows: Waiting) -> Iterator[tuple[Batched, Sequence[str]]]:
    """Yield one statement after the other, each with as many rows as may share it."""
    import orjson  # loading it takes a plan longer than it gains by it

    current, texts, keys, size = rows[0][0], list[str](), set[Column](), 0
    for statement, row in rows:
        is_repeated = statement.is_once and row[0] in keys
        if texts and (statement is not current or is_repeated or size > MAX_CHARACTERS):
            yield current, texts
            texts, keys, size = [], set(), 0
        current = statement
        fields = dict(zip(statement.columns, row, strict=True))
        text = orjson.dumps(fields, default=_as_text).decode()
        texts.append(text)
        keys.add(row[0])
        size += len(text)
    yield current, texts


def _as_text(value: object) -> str:
    """Return bytes as PostgreSQL reads them from a text.

    Raises:
        TypeError: it is another value that JSON does not know.
    """
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    raise TypeError(f"no row holds a {type(value).__name__}")
