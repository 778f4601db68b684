"""The tables of the PostgreSQL store, and every statement that is run on them.

Plain SQL, so that databases that speak PostgreSQL's protocol can run it: no extension, no
advisory lock, no LISTEN, no trigger, no function of our own. Texts are compared by code point
(``COLLATE "C"``), as in every store.
"""

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

_Key = type[ObjectKey | MarkedKey]
_Row = type[StoredEvent | Head | ObjectRow | Record | SealRow | OwedRow | LeaseRow | TokenRow]


def _select(row: _Row | _Key, table: str, rest: str) -> str:
    words = ["SELECT", ", ".join(row._fields), "FROM", table, rest]
    return " ".join(words)


def _insert(row: _Row, table: str, rest: str = "") -> str:
    columns = ", ".join(row._fields)
    places = ", ".join("%s" for _ in row._fields)
    words = ["INSERT INTO", table, f"({columns})", "VALUES", f"({places})", rest]
    return " ".join(words)


def _upsert(row: _Row, table: str, key: str) -> str:
    changed = ", ".join(f"{name} = excluded.{name}" for name in row._fields if name != key)
    return _insert(row, table, f"ON CONFLICT ({key}) DO UPDATE SET {changed}")


READ_STREAM = _select(
    StoredEvent, "reconciler_events", "WHERE stream = %s AND version > %s ORDER BY version LIMIT %s"
)
READ_ALL = _select(
    StoredEvent, "reconciler_events", "WHERE position > %s ORDER BY position LIMIT %s"
)
READ_ALL_OF = _select(
    StoredEvent,
    "reconciler_events",
    "WHERE position > %s AND organization = ANY(%s) ORDER BY position LIMIT %s",
)
READ_ORGANIZATION = _select(
    StoredEvent,
    "reconciler_events",
    "WHERE organization = %s AND sequence > %s ORDER BY sequence LIMIT %s",
)
HEADS = _select(Head, "reconciler_heads", "ORDER BY organization")
HEAD = _select(Head, "reconciler_heads", "WHERE organization = %s")
OBJECT = _select(ObjectRow, "reconciler_objects", "WHERE id = %s")
OBJECTS = _select(ObjectRow, "reconciler_objects", "WHERE id = ANY(%s)")
FIND_OBJECT = _select(
    ObjectRow, "reconciler_objects", "WHERE parent = %s AND kind = %s AND folded = %s"
)
_PAGE = "WHERE organization = %s AND id > %s AND id <> organization ORDER BY id LIMIT %s"
OBJECTS_PAGE = _select(ObjectRow, "reconciler_objects", _PAGE)
PAGE_KEYS = _select(MarkedKey, "reconciler_objects", _PAGE)
ALL_OBJECTS = _select(ObjectRow, "reconciler_objects", "ORDER BY id")
LIST_OBJECTS = _select(ObjectKey, "reconciler_objects", "WHERE kind = %s AND parent = %s")
COUNT_OBJECTS = "SELECT count(*) FROM reconciler_objects WHERE kind = %s AND parent = %s"
RECORD = _select(Record, "reconciler_records", "WHERE caller = %s AND key = %s")
RECORDS = _select(Record, "reconciler_records", "WHERE caller = ANY(%s) AND key = ANY(%s)")
SEAL = _select(SealRow, "reconciler_seals", "WHERE id = %s")
LOCK_SEAL = SEAL + " FOR UPDATE"
OWED = _select(OwedRow, "reconciler_owed", "WHERE id = ANY(%s)")
OWED_PAGE = _select(
    OwedRow, "reconciler_owed", "WHERE organization = %s AND id > %s ORDER BY id LIMIT %s"
)
OWED_IN = _select(OwedRow, "reconciler_owed", "WHERE seal = %s")
LEASE = _select(LeaseRow, "reconciler_leases", "WHERE organization = %s")
TOKENS = _select(TokenRow, "reconciler_tokens", "ORDER BY name")
TOKEN = _select(TokenRow, "reconciler_tokens", "WHERE sha256 = %s")
META = "SELECT value FROM reconciler_meta WHERE name = %s"

ADD_META = "INSERT INTO reconciler_meta (name, value) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING"
SET_META = "UPDATE reconciler_meta SET value = %s WHERE name = %s"
LOCK_META = META + " FOR UPDATE"
LOCK_HEAD = (
    "SELECT organization, sequence, events, hash, position FROM reconciler_heads"
    " WHERE organization = %s FOR UPDATE"
)
LOCK_HEADS = (
    "SELECT organization, sequence, events, hash, position FROM reconciler_heads"
    " ORDER BY organization FOR UPDATE"
)
LOCK_LEASE = LEASE + " FOR UPDATE"
ADD_HEAD = (
    "INSERT INTO reconciler_heads (organization, sequence, events, hash, position)"
    " VALUES (%s, %s, %s, %s, 0) ON CONFLICT (organization) DO NOTHING"
)
SET_HEAD = (
    "UPDATE reconciler_heads SET sequence = %s, events = %s, hash = %s, position = %s"
    " WHERE organization = %s"
)
STREAM_VERSION = (
    "SELECT version FROM reconciler_events WHERE stream = %s ORDER BY version DESC LIMIT 1"
)
POSITIONS = "SELECT nextval('reconciler_positions') FROM generate_series(1, %s::int)"
NAMES = (
    "SELECT parent, kind, folded, id FROM reconciler_objects"
    " WHERE parent = ANY(%s) AND folded = ANY(%s)"
)
NAME = "SELECT id FROM reconciler_objects WHERE parent = %s AND kind = %s AND folded = %s"
ADD_EVENT = _insert(StoredEvent, "reconciler_events")
PUT_OBJECT = _upsert(ObjectRow, "reconciler_objects", "id")
REMOVE_OBJECT = "DELETE FROM reconciler_objects WHERE id = %s"
CLEAR_OBJECTS = (
    "DELETE FROM reconciler_objects WHERE organization = ANY(%s)"
    " OR organization NOT IN (SELECT organization FROM reconciler_heads)"
)
ADD_RECORD = _insert(Record, "reconciler_records")
DROP_RECORD = "DELETE FROM reconciler_records WHERE caller = %s AND key = %s AND expires_at = %s"
PUT_SEAL = _upsert(SealRow, "reconciler_seals", "id")
REMOVE_SEAL = "DELETE FROM reconciler_seals WHERE id = %s"
PUT_OWED = _upsert(OwedRow, "reconciler_owed", "id")
REMOVE_OWED = "DELETE FROM reconciler_owed WHERE id = %s AND made_at = %s"
# Rows that another server is just dropping are left to it: nobody waits for anybody here.
EXPIRE_RECORDS = (
    "DELETE FROM reconciler_records WHERE (caller, key) IN (SELECT caller, key"
    " FROM reconciler_records WHERE expires_at <= %s FOR UPDATE SKIP LOCKED)"
)
EXPIRE_SEALS = (
    "DELETE FROM reconciler_seals WHERE id IN (SELECT id FROM reconciler_seals"
    " WHERE expires_at <= %s FOR UPDATE SKIP LOCKED) AND NOT EXISTS"
    " (SELECT 1 FROM reconciler_records WHERE seal = reconciler_seals.id)"
)
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
ADD_LEASE = _insert(LeaseRow, "reconciler_leases", "ON CONFLICT (organization) DO NOTHING")
PUT_LEASE = _upsert(LeaseRow, "reconciler_leases", "organization")
PUT_TOKEN = _upsert(TokenRow, "reconciler_tokens", "name")

# What a name filter asks, by its kind. No pattern, so that no letter means anything else.
NAME_FILTERS = {
    ("equals", False): "name = %s",
    ("equals", True): "folded = %s",
    ("starts", False): "left(name, length(%s::text)) = %s",
    ("starts", True): "left(folded, length(%s::text)) = %s",
    ("contains", False): "strpos(name, %s) > 0",
    ("contains", True): "strpos(folded, %s) > 0",
    ("ends", False): "right(name, length(%s::text)) = %s",
    ("ends", True): "right(folded, length(%s::text)) = %s",
}
