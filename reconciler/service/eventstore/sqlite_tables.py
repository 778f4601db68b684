"""The tables of the SQLite store, and every statement that is run on them."""

from __future__ import annotations

import json

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
from reconciler.service.eventstore.sql import IS_IN_LIST, Dialect, Statements, insert, upsert

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

DIALECT = Dialect(Statements(), NAME_FILTERS, IS_IN_LIST, "?", json.dumps)
