"""The tables of the SQLite store, the statements that write to them, and the transaction.

Every row is written at once, so reads need no second look, and a savepoint is one of SQLite. The
transaction has the only right to write, so what it reads stays true until the commit.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reconciler.service.eventstore.errors import NameTakenError, StreamConflictError
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.rows import Head, StoredEvent, StreamAt
from reconciler.service.eventstore.sql import Dialect, Values, delete, insert, upsert
from reconciler.service.eventstore.sweeps import Sweeps
from reconciler.service.eventstore.tables import (
    EVENTS,
    HEADS,
    META,
    OBJECTS,
    SCHEMA_VERSION,
    TABLES,
    Table,
    Words,
)

APPLICATION_ID = 0x52436E6C  # "RCnl": tells this program's files from any other's

WORDS = Words(
    types={
        str: "TEXT NOT NULL",
        str | None: "TEXT",
        int: "INTEGER NOT NULL",
        bytes: "BLOB NOT NULL",
    },
    make="CREATE {}",
    by_key=" STRICT, WITHOUT ROWID",
    end=" STRICT",
    has_references=True,
)
VERSION = "PRAGMA user_version"
SET_VERSION = f"{VERSION} = {SCHEMA_VERSION}"

ADD_META = insert(META)
SET_META = upsert(META)
ADD_EVENT = insert(EVENTS)
PUT = {table.name: upsert(table) for table in TABLES}
REMOVE = {table.name: delete(table) for table in TABLES}
CLEAR_OBJECTS = "DELETE FROM objects"
IS_OWED_TOO_LONG = "SELECT 1 FROM owed WHERE seal IS NOT NULL AND expires_at <= ? LIMIT 1"
EXPIRE_OWED_SEALS = (
    "DELETE FROM seals WHERE id IN"
    " (SELECT seal FROM owed WHERE seal IS NOT NULL AND expires_at <= ?)"
)
EXPIRE_OWED = "UPDATE owed SET seal = NULL WHERE seal IS NOT NULL AND expires_at <= ?"
# Records that one commit deletes at most, because other writers wait for it; later ones go on.
MOST_EXPIRED = 1000
EXPIRE_RECORDS = (
    "DELETE FROM records WHERE rowid IN (SELECT rowid FROM records WHERE expires_at <= ? LIMIT ?)"
)
EXPIRE_PASSES = "DELETE FROM passes WHERE kept_until <= ?"
EXPIRE_SEALS = (
    "DELETE FROM seals WHERE expires_at <= ? AND id NOT IN"
    " (SELECT seal FROM records WHERE seal IS NOT NULL)"
)

# What a name filter asks, by its kind. NUL ends a text for SQLite, and no name contains it.
NAME_FILTERS = {
    "equals": "{} = ?",
    "starts": "substr({}, 1, length(?)) = ?",
    "contains": "instr({}, ?) > 0",
    "ends": "substr({}, -length(?)) = ?",
}

DIALECT = Dialect(NAME_FILTERS, json.dumps)


class SqliteTransaction(Transaction):
    """The rows, and writing them."""

    def __init__(
        self, connection: sqlite3.Connection, now: Callable[[], int], sweeps: Sweeps
    ) -> None:
        self._connection = connection
        self._sweeps = sweeps
        self._write = connection.cursor().execute
        self._now = now
        self._heads: dict[str, Head] = {}  # as this transaction left them
        super().__init__(self._write, DIALECT)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        # Savepoints never nest here, so one name will do.
        self._write("SAVEPOINT one")
        try:
            yield
        except BaseException:
            self._heads.clear()
            if self._connection.in_transaction:  # a full disk has rolled all of it back already
                self._write("ROLLBACK TO one")
                self._write("RELEASE one")
            raise
        self._write("RELEASE one")

    def head(self, organization: str) -> Head:
        return self._heads.get(organization) or super().head(organization)

    def _head_for(self, stream: StreamAt) -> Head:
        head = self.head(stream.organization)
        # A new stream of a chain that goes on needs no look: no stream has two first events.
        is_looked_up = stream.version or not head.events
        if is_looked_up and self.stream_version(stream.id) != stream.version:
            raise StreamConflictError
        if not head.events:
            self._put(HEADS, head)  # an event refers to the head of its chain
        return head

    def _added(self, event: StoredEvent, head: Head) -> StoredEvent:
        try:
            position = self._write(ADD_EVENT, (None, *event[1:])).lastrowid
        except sqlite3.IntegrityError as error:
            if "events.stream" not in str(error):
                raise
            raise StreamConflictError from error
        self._put(HEADS, head)
        self._heads[head.organization] = head
        return StoredEvent(position or 0, *event[1:])

    def _put(self, table: Table, row: Values) -> None:
        try:
            self._write(PUT[table.name], row)
        except sqlite3.IntegrityError as error:
            if table is not OBJECTS:
                raise
            taken = "objects.folded" in str(error)
            raise (NameTakenError if taken else StreamConflictError) from error

    def _remove(self, table: Table, row: Values) -> None:
        self._write(REMOVE[table.name], table.known_in(row))

    def clear_objects(self) -> None:
        self._write(CLEAR_OBJECTS)

    def expire(self, now: int) -> None:
        self._write(EXPIRE_PASSES, (now,))
        # Each step removes what only the one before it can have set free. Most commits do none.
        if self._write(IS_OWED_TOO_LONG, (now,)).fetchone():
            self._write(EXPIRE_OWED_SEALS, (now,))
            self._write(EXPIRE_OWED, (now,))
        self._write(EXPIRE_RECORDS, (now, MOST_EXPIRED))
        if self._sweeps.is_due(now):  # it reads every seal and every record
            self._write(EXPIRE_SEALS, (now,))
