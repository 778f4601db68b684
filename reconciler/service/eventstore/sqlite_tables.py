"""The tables of the SQLite store, and every statement that is run on them."""

from __future__ import annotations

from reconciler.service.eventstore.rows import (
    Head,
    LeaseRow,
    MarkedKey,
    ObjectKey,
    ObjectRow,
    OwedRow,
    Record,
    SealRow,
    StoredEvent,
    TokenRow,
)

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


_Key = type[ObjectKey | MarkedKey]
_Row = type[StoredEvent | Head | ObjectRow | Record | SealRow | OwedRow | LeaseRow | TokenRow]


def _select(row: _Row | _Key, table: str, rest: str) -> str:
    words = ["SELECT", ", ".join(row._fields), "FROM", table, rest]
    return " ".join(words)


def _insert(row: _Row, table: str, verb: str = "INSERT INTO") -> str:
    columns = ", ".join(row._fields)
    places = ", ".join("?" for _ in row._fields)
    words = [verb, table, f"({columns})", "VALUES", f"({places})"]
    return " ".join(words)


# These turn version 1 into version 2. Single statements, because a script would commit at once.
UPGRADE = (
    *(statement for statement in OWED_TABLE.split(";") if statement.strip()),
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
VERSION = "PRAGMA user_version"

READ_STREAM = _select(
    StoredEvent, "events", "WHERE stream = ? AND version > ? ORDER BY version LIMIT ?"
)
READ_ALL = _select(StoredEvent, "events", "WHERE position > ? ORDER BY position LIMIT ?")
READ_ORGANIZATION = _select(
    StoredEvent, "events", "WHERE organization = ? AND sequence > ? ORDER BY sequence LIMIT ?"
)
HEADS = _select(Head, "heads", "ORDER BY organization")
HEAD = _select(Head, "heads", "WHERE organization = ?")
OBJECT = _select(ObjectRow, "objects", "WHERE id = ?")
OBJECTS = _select(ObjectRow, "objects", "WHERE id IN (SELECT value FROM json_each(?))")
FIND_OBJECT = _select(ObjectRow, "objects", "WHERE parent = ? AND kind = ? AND folded = ?")
_PAGE = "WHERE organization = ? AND id > ? AND id <> organization ORDER BY id LIMIT ?"
OBJECTS_PAGE = _select(ObjectRow, "objects", _PAGE)
PAGE_KEYS = _select(MarkedKey, "objects", _PAGE)
ALL_OBJECTS = _select(ObjectRow, "objects", "ORDER BY id")
LIST_OBJECTS = _select(ObjectKey, "objects", "WHERE kind = ? AND parent = ?")
COUNT_OBJECTS = "SELECT count(*) FROM objects WHERE kind = ? AND parent = ?"
RECORD = _select(Record, "records", "WHERE caller = ? AND key = ?")
RECORDS = _select(
    Record,
    "records",
    "WHERE (caller, key) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]')"
    " FROM json_each(?))",
)
SEAL = _select(SealRow, "seals", "WHERE id = ?")
OWED = _select(OwedRow, "owed", "WHERE id IN (SELECT value FROM json_each(?))")
OWED_PAGE = _select(OwedRow, "owed", "WHERE organization = ? AND id > ? ORDER BY id LIMIT ?")
OWED_IN = _select(OwedRow, "owed", "WHERE seal = ?")
LEASE = _select(LeaseRow, "leases", "WHERE organization = ?")
TOKENS = _select(TokenRow, "tokens", "ORDER BY name")
TOKEN = _select(TokenRow, "tokens", "WHERE sha256 = ?")
META = "SELECT value FROM meta WHERE name = ?"

ADD_META = "INSERT INTO meta (name, value) VALUES (?, ?)"
SET_META = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
ADD_EVENT = _insert(StoredEvent, "events")
LAST_POSITION = "SELECT coalesce(max(position), 0) FROM events"
STREAM_VERSION = "SELECT coalesce(max(version), 0) FROM events WHERE stream = ?"
PUT_HEAD = (
    _insert(Head, "heads")
    + " ON CONFLICT (organization) DO UPDATE SET"
    + " (sequence, events, hash) = (excluded.sequence, excluded.events, excluded.hash)"
)
ADD_OBJECT = _insert(ObjectRow, "objects")
SET_OBJECT = (
    "UPDATE objects SET (id, kind, organization, parent, name, folded, spec, client_id,"
    " secret_hash, version, sequence, created, changed_by, context, marks)"
    " = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE id = ?"
)
REMOVE_OBJECT = "DELETE FROM objects WHERE id = ?"
CLEAR_OBJECTS = "DELETE FROM objects"
PUT_RECORD = _insert(Record, "records", "REPLACE INTO")
PUT_SEAL = _insert(SealRow, "seals", "REPLACE INTO")
REMOVE_SEAL = "DELETE FROM seals WHERE id = ?"
PUT_OWED = _insert(OwedRow, "owed", "REPLACE INTO")
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
PUT_LEASE = _insert(LeaseRow, "leases", "REPLACE INTO")
PUT_TOKEN = _insert(TokenRow, "tokens", "REPLACE INTO")

# What a name filter asks, by its kind. NUL ends a text for SQLite, and no name contains it.
NAME_FILTERS = {
    ("equals", False): "name = ?",
    ("equals", True): "folded = ?",
    ("starts", False): "substr(name, 1, length(?)) = ?",
    ("starts", True): "substr(folded, 1, length(?)) = ?",
    ("contains", False): "instr(name, ?) > 0",
    ("contains", True): "instr(folded, ?) > 0",
    ("ends", False): "substr(name, -length(?)) = ?",
    ("ends", True): "substr(folded, -length(?)) = ?",
}
