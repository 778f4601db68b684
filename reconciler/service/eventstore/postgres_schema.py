"""The tables of a PostgreSQL store: making them, recognising them.

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
from reconciler.service.eventstore.postgres_errors import NO_SCHEMA
from reconciler.service.eventstore.postgres_statements import PREFIX
from reconciler.service.eventstore.postgres_statements import TABLES as TABLES_HERE
from reconciler.service.eventstore.tables import SCHEMA_VERSION, Words, script
from reconciler.service.eventstore.writers import WRITERS, WRITERS_VERSION

PROGRAM = "reconciler identity service"

WORDS = Words(
    types={
        str: 'TEXT COLLATE "C" NOT NULL',
        str | None: 'TEXT COLLATE "C"',
        int: "BIGINT NOT NULL",
        bytes: "BYTEA NOT NULL",
    },
    make="CREATE {} IF NOT EXISTS",
    prefix=PREFIX,
)
TABLES = script(TABLES_HERE, WORDS) + f"CREATE SEQUENCE IF NOT EXISTS {PREFIX}positions;\n"

# For databases that know no collations of columns. They may take these if the answer is true.
COLLATION = ' COLLATE "C"'
PLAIN_TABLES = TABLES.replace(COLLATION, "")
IS_BY_CODE_POINT = (
    "SELECT max(sign) = '\U0001f600' AND min(sign) = 'B' AND count(*) = 5"
    " FROM (VALUES ('a'), ('B'), ('\u00e9'), ('\uff41'), ('\U0001f600')) AS signs (sign)"
)

# What is looked for to recognise a store: every table, and the columns it has.
COLUMNS = {PREFIX + table.name: frozenset(table.columns) for table in TABLES_HERE}
UNIQUE_INDEXES = frozenset(
    f"{PREFIX}{table.name}_{name}"
    for table in TABLES_HERE
    for name in ("pkey", *(index.name for index in table.indexes if index.is_unique))
)
"""Without one of them two writers may both get what only one can have."""

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
            of a newer version, or its schema is missing or hidden from this user.
    """
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise StoreUnusableError(
            f"{place} cannot hold every text: its encoding is not UTF8",
            "Make a database with createdb --encoding=UTF8 --template=template0.",
        )
    if not _is_ours(connection, place):
        if connection.execute(statements.USED_SCHEMA).fetchone() == (None,):
            raise NO_SCHEMA.at(place)
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
        (WRITERS, str(WRITERS_VERSION)),
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


def missing_indexes(connection: Connection) -> Sequence[str]:
    """Return the unique indexes that are missing or not sound."""
    found = connection.execute(statements.FIND_INDEXES, (sorted(UNIQUE_INDEXES),))
    return sorted(UNIQUE_INDEXES - {name for (name,) in found})


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
        kept = statements.snapshot(connection)
        _check_version(kept.meta("schema"), place)
        program = kept.meta("program")
    if any(columns != COLUMNS[name] for name, columns in found.items() if columns):
        raise _not_ours(place)
    is_whole = all(found[name] for name in COLUMNS)
    if program and (program != PROGRAM or not is_whole):
        raise _not_ours(place)
    # Tables of ours without that word are being made, by a database that shows them one by one.
    return bool(program)


def _not_ours(place: str) -> StoreUnusableError:
    return StoreUnusableError(
        f"{place} has tables of the store's names that are not the store's",
        "Name another database, or another schema of it. This one was left as it is.",
    )


def _check_version(version: str, place: str) -> None:
    if version.isdecimal() and int(version) > SCHEMA_VERSION:
        raise StoreUnusableError(
            f"the store at {place} was made by a newer version (its schema is {version},"
            f" this version knows {SCHEMA_VERSION})",
            "Use that version or a newer one. The store was left as it is.",
        )
