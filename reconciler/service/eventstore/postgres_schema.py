"""The tables of a PostgreSQL store: making them, recognising them, bringing them up to date.

Plain SQL, so that databases that speak PostgreSQL's protocol can run it: no extension, no trigger,
no function of our own. Texts are compared by code point (``COLLATE "C"``), as in every store.

A database is looked at before anything is written to it: tables of these names that are not
ours, or that a newer version made, are refused and left as they are.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence

import psycopg

from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore.errors import StoreMissingError, StoreUnusableError
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

SCHEMA_VERSION = 2
EARLIER_VERSIONS = frozenset({"1"})  # which are upgraded when they are opened to be written to
PROGRAM = "reconciler identity service"

# Tables and indexes that version 2 adds.
OWED_TABLE = """
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
);
CREATE INDEX IF NOT EXISTS reconciler_owed_listed ON reconciler_owed (organization, id);
CREATE INDEX IF NOT EXISTS reconciler_owed_time ON reconciler_owed (expires_at)
    WHERE seal IS NOT NULL;
CREATE INDEX IF NOT EXISTS reconciler_owed_seal ON reconciler_owed (seal)
    WHERE seal IS NOT NULL;
"""

TABLES = (
    """
CREATE TABLE IF NOT EXISTS reconciler_meta (
    name TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);
CREATE TABLE IF NOT EXISTS reconciler_heads (
    organization TEXT COLLATE "C" PRIMARY KEY,
    sequence BIGINT NOT NULL,
    events BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    position BIGINT NOT NULL
);
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
);
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
);
CREATE UNIQUE INDEX IF NOT EXISTS reconciler_objects_page
    ON reconciler_objects (organization, id);
CREATE INDEX IF NOT EXISTS reconciler_objects_listed ON reconciler_objects (parent, kind, id);
CREATE UNIQUE INDEX IF NOT EXISTS reconciler_objects_client ON reconciler_objects (client_id)
    WHERE client_id <> '';
CREATE TABLE IF NOT EXISTS reconciler_seals (
    id TEXT COLLATE "C" PRIMARY KEY,
    sealed BYTEA NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS reconciler_records (
    caller TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    answer TEXT COLLATE "C" NOT NULL,
    seal TEXT COLLATE "C",
    slot BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (caller, key)
);
CREATE INDEX IF NOT EXISTS reconciler_records_time ON reconciler_records (expires_at);
CREATE TABLE IF NOT EXISTS reconciler_leases (
    organization TEXT COLLATE "C" PRIMARY KEY,
    token TEXT COLLATE "C" NOT NULL,
    holder TEXT COLLATE "C" NOT NULL,
    fence BIGINT NOT NULL,
    acquired_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS reconciler_tokens (
    name TEXT COLLATE "C" PRIMARY KEY,
    role TEXT COLLATE "C" NOT NULL,
    organizations TEXT COLLATE "C" NOT NULL,
    sha256 BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL,
    CONSTRAINT reconciler_tokens_hash UNIQUE (sha256)
);
CREATE SEQUENCE IF NOT EXISTS reconciler_positions;
"""
    + OWED_TABLE
)

# For databases that know no collations of columns. They may take these if the answer is true.
COLLATION = ' COLLATE "C"'
PLAIN_TABLES = TABLES.replace(COLLATION, "")
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

TRIES = 20
REFUSED_COLLATION = (
    psycopg.errors.SyntaxError,
    psycopg.errors.InvalidParameterValue,
    psycopg.errors.FeatureNotSupported,
)
LOST_A_RACE = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateObject,
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
)


def recognise(connection: Connection, place: str) -> None:
    """Accept a database that holds a store of this version.

    Raises:
        StoreMissingError: it holds none.
        StoreUnusableError: it cannot hold one, or it holds another program's tables, or those
            of a newer version.
    """
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise StoreUnusableError(
            f"{place} cannot hold every text: its encoding is not UTF8",
            "Make a database with createdb --encoding=UTF8 --template=template0.",
        )
    if not _is_ours(connection, place):
        raise StoreMissingError(
            f"there is no store at {place}",
            "Make it with `reconciler apply`, `serve` or `token create`.",
        )


def create(connection: Connection, place: str) -> None:
    """Make the tables where there are none, whole or not at all. Several may try at once.

    Raises:
        StoreUnusableError: tables of other programs are in the way, or the database cannot
            keep texts in the order of their code points.
    """
    tables = TABLES
    for _ in range(TRIES):
        if _is_ours(connection, place):
            return
        # The loser of a race finds that tables or types of these names have come to be, or, with
        # databases that do not lock what is made, that the transaction cannot be carried out.
        try:
            with connection.transaction():
                _fill(connection, tables)
        except REFUSED_COLLATION:
            tables = _without_collation(connection, place)
        except LOST_A_RACE:
            continue
    if not _is_ours(connection, place):
        raise StoreUnusableError(
            f"the tables of a store could not be made at {place}",
            "Give this user the right to make tables; docs/postgresql.md says how.",
        )


def _fill(connection: Connection, tables: str) -> None:
    connection.execute(tables, prepare=False)  # several statements are never prepared
    for name, value in (
        ("schema", str(SCHEMA_VERSION)),
        ("instance", uuid.uuid4().hex),
        ("program", PROGRAM),  # last: with it the store is finished
    ):
        connection.execute(statements.ADD_META, (name, value))


def _without_collation(connection: Connection, place: str) -> str:
    """Return tables for a database that orders texts by code point, and in no other way.

    Raises:
        StoreUnusableError: it orders them in another way.
    """
    if connection.execute(IS_BY_CODE_POINT).fetchone() != (True,):
        raise StoreUnusableError(
            f"{place} cannot keep texts in the order of their code points",
            'Take a database that knows COLLATE "C" for columns.',
        )
    return PLAIN_TABLES


def is_outdated(connection: Connection) -> bool:
    """Return whether an earlier version made the tables, and nothing has upgraded them since."""
    return _meta(connection, "schema") in EARLIER_VERSIONS


def upgrade(connection: Connection) -> bool:
    """Make the tables that an earlier version lacks, in the transaction that was begun.

    Return whether there were any to make. Other servers that upgrade wait until the commit.
    """
    connection.execute(statements.LOCK_META, ("schema",))
    if not is_outdated(connection):
        return False
    try:
        with connection.transaction():
            connection.execute(OWED_TABLE)
    except REFUSED_COLLATION:
        connection.execute(OWED_TABLE.replace(COLLATION, ""))
    connection.execute(statements.SET_META, (str(SCHEMA_VERSION), "schema"))
    return True


def missing_indexes(connection: Connection) -> Sequence[str]:
    """Return the unique indexes that are missing or not sound."""
    wanted = UNIQUE_INDEXES
    if is_outdated(connection):
        wanted -= ADDED_INDEXES
    found = connection.execute(statements.FIND_INDEXES, (sorted(wanted),))
    return sorted(wanted - {name for (name,) in found})


def _is_ours(connection: Connection, place: str) -> bool:
    """Return whether our tables are there, all of them.

    Raises:
        StoreUnusableError: others of their names are, or those of a newer version.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for table, column in connection.execute(statements.FIND_COLUMNS, (sorted(COLUMNS),)):
        found[table].add(column)
    if not found:
        return False
    program = ""
    if frozenset(found["reconciler_meta"]) == COLUMNS["reconciler_meta"]:
        _check_version(_meta(connection, "schema"), place)
        program = _meta(connection, "program")
    if any(columns != COLUMNS[name] for name, columns in found.items() if columns):
        raise _not_ours(place)
    added = ADDED_TABLES if program and is_outdated(connection) else frozenset()
    is_whole = all(found[name] for name in COLUMNS.keys() - added)
    if program and (program != PROGRAM or not is_whole):
        raise _not_ours(place)
    # Tables of ours without that word are being made, by a database that shows them one by one.
    return bool(program)


def _not_ours(place: str) -> StoreUnusableError:
    return StoreUnusableError(
        f"{place} has tables of the store's names that are not the store's",
        "Name another database, or another schema of it. This one was left as it is.",
    )


def _meta(connection: Connection, name: str) -> str:
    found = connection.execute(statements.META, (name,)).fetchone()
    return str(found[0]) if found else ""


def _check_version(version: str, place: str) -> None:
    if version.isdecimal() and int(version) > SCHEMA_VERSION:
        raise StoreUnusableError(
            f"the store at {place} was made by a newer version (its schema is {version},"
            f" this version knows {SCHEMA_VERSION})",
            "Use that version or a newer one. The store was left as it is.",
        )
