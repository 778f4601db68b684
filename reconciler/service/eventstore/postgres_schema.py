"""The tables of a PostgreSQL store: making them, and recognising them.

A database is looked at before anything is written to it: tables of these names that are not
ours, or that a newer version made, are refused and left as they are.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence

import psycopg

from reconciler.service.eventstore import postgres_tables as tables
from reconciler.service.eventstore.errors import StoreMissingError, StoreUnusableError
from reconciler.service.eventstore.postgres_connection import Connection

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
    _check_version(_meta(connection, "schema"), place)


def create(connection: Connection, place: str) -> None:
    """Make the tables where there are none, whole or not at all. Several may try at once.

    Raises:
        StoreUnusableError: tables of other programs are in the way, or the database cannot
            keep texts in the order of their code points.
    """
    statements: Sequence[str] = tables.TABLES
    for _ in range(TRIES):
        if _is_ours(connection, place):
            return
        # The loser of a race finds that tables or types of these names have come to be, or, with
        # databases that do not lock what is made, that the transaction cannot be carried out.
        try:
            with connection.transaction():
                _fill(connection, statements)
        except REFUSED_COLLATION:
            statements = _without_collation(connection, place)
        except LOST_A_RACE:
            continue
    if not _is_ours(connection, place):
        raise StoreUnusableError(
            f"the tables of a store could not be made at {place}",
            "Give this user the right to make tables; docs/postgresql.md says how.",
        )


def _fill(connection: Connection, statements: Sequence[str]) -> None:
    _run_all(connection, statements)
    for name, value in (
        ("schema", str(tables.SCHEMA_VERSION)),
        ("instance", uuid.uuid4().hex),
        ("program", tables.PROGRAM),  # last: with it the store is finished
    ):
        connection.execute(tables.ADD_META, (name, value))


def _without_collation(connection: Connection, place: str) -> Sequence[str]:
    """Return tables for a database that orders texts by code point, and in no other way.

    Raises:
        StoreUnusableError: it orders them in another way.
    """
    found = connection.execute(tables.IS_BY_CODE_POINT).fetchone()
    if found != (True,):
        raise StoreUnusableError(
            f"{place} cannot keep texts in the order of their code points",
            'Take a database that knows COLLATE "C" for columns.',
        )
    return tables.PLAIN_TABLES


def is_outdated(connection: Connection) -> bool:
    """Return whether an earlier version made the tables, and nothing has upgraded them since."""
    return _meta(connection, "schema") in tables.EARLIER_VERSIONS


def upgrade(connection: Connection) -> bool:
    """Make the tables that an earlier version lacks, in the transaction that was begun.

    Return whether there were any to make. Other servers that upgrade wait until the commit.
    """
    connection.execute(tables.LOCK_META, ("schema",))
    if not is_outdated(connection):
        return False
    try:
        with connection.transaction():
            _run_all(connection, tables.OWED_TABLE)
    except REFUSED_COLLATION:
        plain = [statement.replace(tables.COLLATION, "") for statement in tables.OWED_TABLE]
        _run_all(connection, plain)
    connection.execute(tables.SET_META, (str(tables.SCHEMA_VERSION), "schema"))
    return True


def _run_all(connection: Connection, statements: Sequence[str]) -> None:
    for statement in statements:
        connection.execute(statement)


def missing_indexes(connection: Connection) -> Sequence[str]:
    """Return the unique indexes that are missing or not sound."""
    wanted = tables.UNIQUE_INDEXES
    if is_outdated(connection):
        wanted -= tables.ADDED_INDEXES
    found = connection.execute(tables.FIND_INDEXES, (sorted(wanted),))
    return sorted(wanted - {name for (name,) in found})


def _is_ours(connection: Connection, place: str) -> bool:
    """Return whether our tables are there, all of them.

    Raises:
        StoreUnusableError: others of their names are, or those of a newer version.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for table, column in connection.execute(tables.FIND_COLUMNS, (sorted(tables.COLUMNS),)):
        found[table].add(column)
    if not found:
        return False
    program = ""
    if frozenset(found["reconciler_meta"]) == tables.COLUMNS["reconciler_meta"]:
        _check_version(_meta(connection, "schema"), place)
        program = _meta(connection, "program")
    if any(columns != tables.COLUMNS[name] for name, columns in found.items() if columns):
        raise _not_ours(place)
    is_old = program != "" and is_outdated(connection)
    added = tables.ADDED_TABLES if is_old else frozenset()
    is_whole = all(found[name] for name in tables.COLUMNS.keys() - added)
    if program and (program != tables.PROGRAM or not is_whole):
        raise _not_ours(place)
    # Tables of ours without that word are being made, by a database that shows them one by one.
    return bool(program)


def _not_ours(place: str) -> StoreUnusableError:
    return StoreUnusableError(
        f"{place} has tables of the store's names that are not the store's",
        "Name another database, or another schema of it. This one was left as it is.",
    )


def _meta(connection: Connection, name: str) -> str:
    found = connection.execute(tables.META, (name,)).fetchone()
    return str(found[0]) if found else ""


def _check_version(version: str, place: str) -> None:
    if version.isdecimal() and int(version) > tables.SCHEMA_VERSION:
        raise StoreUnusableError(
            f"the store at {place} was made by a newer version (its schema is {version},"
            f" this version knows {tables.SCHEMA_VERSION})",
            "Use that version or a newer one. The store was left as it is.",
        )
