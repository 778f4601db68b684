"""The tables of the SQLite store, the statements that write to them, and the transaction.

Every row is written at once, so reads need no second look, and a savepoint is one of SQLite. The
transaction has the only right to write, so what it reads stays true until the commit.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from reconciler.resources.process import crashpoint
from reconciler.service.eventstore.errors import NameTakenError, StreamConflictError
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.rows import (
    Author,
    Head,
    LeaseRow,
    Lookups,
    NewEvent,
    ObjectRow,
    OwedRow,
    Record,
    SealRow,
    StoredEvent,
    StreamAt,
    TokenRow,
    chained,
)
from reconciler.service.eventstore.sql import Dialect, insert, upsert

APPLICATION_ID = 0x52436E6C  # "RCnl": tells this program's files from any other's
SCHEMA_VERSION = 2
OLDEST_VERSION = 1  # which is upgraded when it is opened to be written to

# The table and indexes that version 2 adds. The indexes by time and by seal hold only rows that
# still have a secret.
OWED_TABLE = """
CREATE TABLE owed (
    id TEXT PRIMARY KEY,
    organization TEXT NOT NULL,
    made_at INTEGER NOT NULL,
    made_by TEXT NOT NULL,
    tree TEXT NOT NULL,
    run TEXT NOT NULL,
    seal TEXT,
    slot INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX owed_listed ON owed (organization, id);
CREATE INDEX owed_by_time ON owed (expires_at) WHERE seal IS NOT NULL;
CREATE INDEX owed_by_seal ON owed (seal) WHERE seal IS NOT NULL;
"""

TABLES = (
    """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE heads (
    organization TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL,
    events INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    organization TEXT NOT NULL REFERENCES heads (organization),
    sequence INTEGER NOT NULL,
    stream TEXT NOT NULL,
    version INTEGER NOT NULL,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    context TEXT NOT NULL,
    writer TEXT NOT NULL,
    recorded_at INTEGER NOT NULL,
    previous BLOB NOT NULL,
    hash BLOB NOT NULL,
    UNIQUE (stream, version),
    UNIQUE (organization, sequence)
) STRICT;
CREATE TABLE objects (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    organization TEXT NOT NULL,
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    spec TEXT NOT NULL,
    client_id TEXT NOT NULL,
    secret_hash TEXT NOT NULL,
    version INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    created INTEGER NOT NULL,
    changed_by TEXT NOT NULL,
    context TEXT NOT NULL,
    marks TEXT NOT NULL,
    UNIQUE (parent, kind, folded)
) STRICT;
CREATE UNIQUE INDEX objects_of_organization ON objects (organization, id);
CREATE INDEX objects_listed ON objects (parent, kind, id);
CREATE UNIQUE INDEX client_ids ON objects (client_id) WHERE client_id <> '';
CREATE TABLE seals (
    id TEXT PRIMARY KEY,
    sealed BLOB NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE records (
    caller TEXT NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    answer TEXT NOT NULL,
    seal TEXT,
    slot INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (caller, key)
) STRICT;
CREATE INDEX records_by_time ON records (expires_at);
CREATE TABLE leases (
    organization TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    holder TEXT NOT NULL,
    fence INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE tokens (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    organizations TEXT NOT NULL,
    sha256 BLOB NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""
    + OWED_TABLE
)


# These turn version 1 into version 2. Single statements, because a script would commit at once.
UPGRADE = (
    *(statement for statement in OWED_TABLE.split(";") if statement.strip()),
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
VERSION = "PRAGMA user_version"

ADD_META = "INSERT INTO meta (name, value) VALUES (?, ?)"
SET_META = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
ADD_EVENT = insert(StoredEvent._fields, "events")
PUT_HEAD = upsert(Head._fields, "heads", "organization")
PUT_OBJECT = upsert(ObjectRow._fields, "objects", "id")
REMOVE_OBJECT = "DELETE FROM objects WHERE id = ?"
CLEAR_OBJECTS = "DELETE FROM objects"
PUT_RECORD = upsert(Record._fields, "records", "caller", "key")
PUT_SEAL = upsert(SealRow._fields, "seals", "id")
REMOVE_SEAL = "DELETE FROM seals WHERE id = ?"
PUT_OWED = upsert(OwedRow._fields, "owed", "id")
REMOVE_OWED = "DELETE FROM owed WHERE id = ? AND made_at = ?"
IS_OWED_TOO_LONG = "SELECT 1 FROM owed WHERE seal IS NOT NULL AND expires_at <= ? LIMIT 1"
EXPIRE_OWED_SEALS = (
    "DELETE FROM seals WHERE id IN"
    " (SELECT seal FROM owed WHERE seal IS NOT NULL AND expires_at <= ?)"
)
EXPIRE_OWED = "UPDATE owed SET seal = NULL WHERE seal IS NOT NULL AND expires_at <= ?"
EXPIRE_RECORDS = "DELETE FROM records WHERE expires_at <= ?"
EXPIRE_SEALS = (
    "DELETE FROM seals WHERE expires_at <= ? AND id NOT IN"
    " (SELECT seal FROM records WHERE seal IS NOT NULL)"
)
PUT_LEASE = upsert(LeaseRow._fields, "leases", "organization")
PUT_TOKEN = upsert(TokenRow._fields, "tokens", "name")

# What a name filter asks, by its kind. NUL ends a text for SQLite, and no name contains it.
NAME_FILTERS = {
    "equals": "{} = ?",
    "starts": "substr({}, 1, length(?)) = ?",
    "contains": "instr({}, ?) > 0",
    "ends": "substr({}, -length(?)) = ?",
}

DIALECT = Dialect(NAME_FILTERS, json.dumps)


def is_outdated(connection: sqlite3.Connection) -> bool:
    """Return whether an earlier version made a store.

    The header of the file may say so for a while after an upgrade, until the log is copied in.
    """
    (version,) = connection.execute(VERSION).fetchone()
    return bool(version < SCHEMA_VERSION)


class SqliteTransaction(Transaction):
    """The rows, and writing them."""

    def __init__(self, connection: sqlite3.Connection, now: Callable[[], int]) -> None:
        self._connection = connection
        self._write = connection.cursor().execute
        self._now = now
        self._heads: dict[str, Head] = {}  # as this transaction left them
        super().__init__(self._write, DIALECT)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done in the block if an exception leaves it, and only that."""
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

    def prefetch(self, asked: Lookups) -> None:
        """Do nothing: a lookup in the file of this process costs no more alone than with others."""

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        return self._heads.get(organization) or super().head(organization)

    def append(
        self, stream: StreamAt, events: Sequence[NewEvent], author: Author
    ) -> Sequence[StoredEvent]:
        """Append events to a stream.

        Raises:
            StreamConflictError: the stream is not at this version.
        """
        head = self.head(stream.organization)
        crashpoint("S3")
        # A new stream of a chain that goes on needs no look: no stream has two first events.
        is_looked_up = stream.version or not head.events
        if is_looked_up and self.stream_version(stream.id) != stream.version:
            raise StreamConflictError
        if not head.events:
            self._write(PUT_HEAD, head)  # an event refers to the head of its chain
        stored = []
        for new in events:
            event, head = chained(head, stream, new, author, self._now())
            position = self._added(event)
            self._write(PUT_HEAD, head)
            self._heads[head.organization] = head
            stored.append(StoredEvent(position or 0, *event[1:]))
            stream = StreamAt(event.organization, event.stream, event.version)
            crashpoint("S4")
        return stored

    def _added(self, event: StoredEvent) -> int | None:
        """Insert an event and return its position."""
        try:
            return self._write(ADD_EVENT, (None, *event[1:])).lastrowid
        except sqlite3.IntegrityError as error:
            if "events.stream" not in str(error):
                raise
            raise StreamConflictError from error

    def put_object(self, row: ObjectRow) -> None:
        """Insert an object, or change the one of its id.

        Raises:
            NameTakenError: another object has its name.
            StreamConflictError: another object has its client id.
        """
        # The event was appended before. Where the name is taken, the savepoint undoes it.
        try:
            self._write(PUT_OBJECT, row)
        except sqlite3.IntegrityError as error:
            taken = "objects.folded" in str(error)
            raise (NameTakenError if taken else StreamConflictError) from error
        crashpoint("S5")

    def remove_object(self, object_id: str) -> None:
        """Remove an object; its events stay."""
        self._write(REMOVE_OBJECT, (object_id,))
        crashpoint("S5")

    def clear_objects(self) -> None:
        """Remove every object, to make them anew from the events."""
        self._write(CLEAR_OBJECTS)

    def put_record(self, record: Record) -> None:
        """Keep an answer. The seal it names may follow, up to the commit."""
        self._write(PUT_RECORD, record)
        crashpoint("S6")

    def put_seal(self, seal: SealRow) -> None:
        """Keep a seal, in the place of one of its id."""
        self._write(PUT_SEAL, seal)

    def remove_seal(self, seal_id: str) -> None:
        """Remove a seal for good; what refers to it finds nothing."""
        self._write(REMOVE_SEAL, (seal_id,))

    def put_owed(self, row: OwedRow) -> None:
        """Keep that a secret is owed, in the place of another of the same application."""
        self._write(PUT_OWED, row)

    def remove_owed(self, row: OwedRow) -> None:
        """Remove an owed secret, unless a newer one has taken its place."""
        self._write(REMOVE_OWED, (row.id, row.made_at))

    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come."""
        # Each step removes what only the one before it can have set free. Most commits do none.
        if self._write(IS_OWED_TOO_LONG, (now,)).fetchone():
            self._write(EXPIRE_OWED_SEALS, (now,))
            self._write(EXPIRE_OWED, (now,))
        if self._write(EXPIRE_RECORDS, (now,)).rowcount:
            self._write(EXPIRE_SEALS, (now,))

    def upgrade(self) -> bool:
        """Give a store of an earlier version the tables of this one; return whether it was one."""
        if not is_outdated(self._connection):
            return False
        for statement in UPGRADE:
            self._write(statement)
        return True

    def put_lease(self, lease: LeaseRow) -> None:
        """Make this the lease of its organization name."""
        self._write(PUT_LEASE, lease)

    def put_token(self, token: TokenRow) -> None:
        """Insert a token, or change the one of its name."""
        self._write(PUT_TOKEN, token)
