"""The tables of the PostgreSQL store, and every statement that is run on them.

Plain SQL, so that databases that speak PostgreSQL's protocol can run it: no extension, no
advisory lock, no LISTEN, no trigger, no function of our own. Texts are compared by code point
(``COLLATE "C"``), as in every store.
"""

from __future__ import annotations

import re

from reconciler.service.eventstore.postgres_batches import deleted, inserted, upserted
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
    Dialect,
    Statements,
    insert,
    select,
    upsert,
)

SCHEMA_VERSION = 2
EARLIER_VERSIONS = frozenset({"1"})  # which are upgraded when they are opened to be written to
PROGRAM = "reconciler identity service"

# Tables and indexes that version 2 adds.
OWED_TABLE = (
    """
CREATE TABLE IF NOT EXISTS reconciler_owed (
    id TEXT COLLATE "C" PRIMARY KEY,
    organization TEXT COLLATE "C" NOT NULL,
    made_at BIGINT NOT NULL,
    made_by TEXT COLLATE "C" NOT NULL,
    tree TEXT COLLATE "C" NOT NULL,
    run TEXT COLLATE "C" NOT NULL,
    seal TEXT COLLATE "C",
    slot BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS reconciler_owed_listed ON reconciler_owed (organization, id)",
    """
CREATE INDEX IF NOT EXISTS reconciler_owed_time ON reconciler_owed (expires_at)
    WHERE seal IS NOT NULL""",
    """
CREATE INDEX IF NOT EXISTS reconciler_owed_seal ON reconciler_owed (seal)
    WHERE seal IS NOT NULL""",
)

TABLES = (
    """
CREATE TABLE IF NOT EXISTS reconciler_meta (
    name TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
)""",
    """
CREATE TABLE IF NOT EXISTS reconciler_heads (
    organization TEXT COLLATE "C" PRIMARY KEY,
    sequence BIGINT NOT NULL,
    events BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    position BIGINT NOT NULL
)""",
    """
CREATE TABLE IF NOT EXISTS reconciler_events (
    position BIGINT PRIMARY KEY,
    organization TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    stream TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    payload TEXT COLLATE "C" NOT NULL,
    context TEXT COLLATE "C" NOT NULL,
    writer TEXT COLLATE "C" NOT NULL,
    recorded_at BIGINT NOT NULL,
    previous BYTEA NOT NULL,
    hash BYTEA NOT NULL,
    CONSTRAINT reconciler_events_stream UNIQUE (stream, version),
    CONSTRAINT reconciler_events_sequence UNIQUE (organization, sequence)
)""",
    """
CREATE TABLE IF NOT EXISTS reconciler_objects (
    id TEXT COLLATE "C" PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    organization TEXT COLLATE "C" NOT NULL,
    parent TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    folded TEXT COLLATE "C" NOT NULL,
    spec TEXT COLLATE "C" NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL,
    secret_hash TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    created BIGINT NOT NULL,
    changed_by TEXT COLLATE "C" NOT NULL,
    context TEXT COLLATE "C" NOT NULL,
    marks TEXT COLLATE "C" NOT NULL,
    CONSTRAINT reconciler_objects_name UNIQUE (parent, folded, kind)
)""",
    """
CREATE UNIQUE INDEX IF NOT EXISTS reconciler_objects_page
    ON reconciler_objects (organization, id)""",
    """
CREATE INDEX IF NOT EXISTS reconciler_objects_listed ON reconciler_objects (parent, kind, id)""",
    """
CREATE UNIQUE INDEX IF NOT EXISTS reconciler_objects_client ON reconciler_objects (client_id)
    WHERE client_id <> ''""",
    """
CREATE TABLE IF NOT EXISTS reconciler_seals (
    id TEXT COLLATE "C" PRIMARY KEY,
    sealed BYTEA NOT NULL,
    expires_at BIGINT NOT NULL
)""",
    """
CREATE TABLE IF NOT EXISTS reconciler_records (
    caller TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    answer TEXT COLLATE "C" NOT NULL,
    seal TEXT COLLATE "C",
    slot BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (caller, key)
)""",
    "CREATE INDEX IF NOT EXISTS reconciler_records_time ON reconciler_records (expires_at)",
    """
CREATE TABLE IF NOT EXISTS reconciler_leases (
    organization TEXT COLLATE "C" PRIMARY KEY,
    token TEXT COLLATE "C" NOT NULL,
    holder TEXT COLLATE "C" NOT NULL,
    fence BIGINT NOT NULL,
    acquired_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
)""",
    """
CREATE TABLE IF NOT EXISTS reconciler_tokens (
    name TEXT COLLATE "C" PRIMARY KEY,
    role TEXT COLLATE "C" NOT NULL,
    organizations TEXT COLLATE "C" NOT NULL,
    sha256 BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL,
    CONSTRAINT reconciler_tokens_hash UNIQUE (sha256)
)""",
    "CREATE SEQUENCE IF NOT EXISTS reconciler_positions",
    *OWED_TABLE,
)

# For databases that know no collations of columns. They may take these if the answer is true.
COLLATION = ' COLLATE "C"'
PLAIN_TABLES = tuple(statement.replace(COLLATION, "") for statement in TABLES)
IS_BY_CODE_POINT = (
    "SELECT max(sign) = '\U0001f600' AND min(sign) = 'B' AND count(*) = 5"
    " FROM (VALUES ('a'), ('B'), ('\u00e9'), ('\uff41'), ('\U0001f600')) AS signs (sign)"
)

# What is looked for to recognise a store: every table, and the columns it has.
COLUMNS: dict[str, frozenset[str]] = {
    "reconciler_meta": frozenset({"name", "value"}),
    "reconciler_heads": frozenset({*Head._fields, "position"}),
    "reconciler_events": frozenset(StoredEvent._fields),
    "reconciler_objects": frozenset(ObjectRow._fields),
    "reconciler_seals": frozenset(SealRow._fields),
    "reconciler_owed": frozenset(OwedRow._fields),
    "reconciler_records": frozenset(Record._fields),
    "reconciler_leases": frozenset(LeaseRow._fields),
    "reconciler_tokens": frozenset(TokenRow._fields),
}
# Version 1 lacks these.
ADDED_TABLES = frozenset({"reconciler_owed"})
ADDED_INDEXES = frozenset({"reconciler_owed_pkey"})
NAME_CONSTRAINT = "reconciler_objects_name"
# Without these, two writers may both get what only one can have.
UNIQUE_INDEXES = frozenset(
    {
        "reconciler_heads_pkey",
        "reconciler_events_pkey",
        "reconciler_events_stream",
        "reconciler_events_sequence",
        "reconciler_objects_pkey",
        NAME_CONSTRAINT,
        "reconciler_objects_client",
        "reconciler_records_pkey",
        "reconciler_owed_pkey",
        "reconciler_leases_pkey",
        "reconciler_tokens_pkey",
        "reconciler_tokens_hash",
    }
)

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


def in_postgres(statement: str) -> str:
    """Return a statement of both stores with PostgreSQL's marks and this store's table names."""
    text = statement.replace(IS_IN_LIST, IS_ANY).replace("?", "%s")
    return _TABLE.sub(r"\1 reconciler_", text)


_TABLE = re.compile(r"\b(FROM|INTO)\b ")
IS_ANY = "= ANY(%s)"
STATEMENTS = Statements().translated(in_postgres)

OBJECTS = STATEMENTS.get_objects
META = STATEMENTS.meta
READ_ALL_OF = in_postgres(
    select(
        StoredEvent._fields,
        "events",
        "WHERE position > ? AND organization = ANY(?) ORDER BY position LIMIT ?",
    )
)
RECORDS = in_postgres(select(Record._fields, "records", "WHERE caller = ANY(?) AND key = ANY(?)"))
LOCK_SEAL = STATEMENTS.seal + " FOR UPDATE"
LOCK_LEASE = STATEMENTS.lease + " FOR UPDATE"
LOCK_META = STATEMENTS.meta + " FOR UPDATE"
_TIP = (*Head._fields, "position")
LOCK_HEAD = in_postgres(select(_TIP, "heads", "WHERE organization = ? FOR UPDATE"))
LOCK_HEADS = in_postgres(select(_TIP, "heads", "ORDER BY organization FOR UPDATE"))
NAMES = in_postgres(
    select(
        ("parent", "kind", "folded", "id"),
        "objects",
        "WHERE parent = ANY(?) AND folded = ANY(?)",
    )
)
# One look into the index for each stream, whatever number of events it has.
VERSIONS = (
    "SELECT asked.stream, (SELECT max(version) FROM reconciler_events AS event"
    " WHERE event.stream = asked.stream) FROM unnest(%s::text[]) AS asked (stream)"
)
POSITIONS = "SELECT nextval('reconciler_positions') FROM generate_series(1, %s::int)"

# Rows that wait, and are written many at a time.
ADD_EVENT = inserted("reconciler_events", StoredEvent._fields)
PUT_HEAD = upserted("reconciler_heads", _TIP, is_last=True)
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
    "equals": "{} = %s",
    "starts": "left({}, length(%s::text)) = %s",
    "contains": "strpos({}, %s) > 0",
    "ends": "right({}, length(%s::text)) = %s",
}

DIALECT = Dialect(STATEMENTS, NAME_FILTERS, IS_ANY, "%s", list)
