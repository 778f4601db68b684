"""The script that makes tables is written from their description."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import NamedTuple

from reconciler.service.eventstore import sqlite_tables
from reconciler.service.eventstore.tables import (
    TABLES,
    Index,
    Table,
    Words,
    script,
    statements,
)

TYPES: dict[object, str] = {str: "T!", str | None: "T", int: "N!", bytes: "B!"}


class Row(NamedTuple):
    """A row with a column of each type."""

    id: str
    owner: str | None
    size: int
    hash: bytes


ROWS = Table(
    "rows",
    Row,
    ("id", "size"),
    (
        Index("hash", ("hash",), is_unique=True),
        Index("owner", ("owner", "size"), "owner IS NOT NULL"),
    ),
    refers={"owner": "owners"},
)


COLUMNS = """
    id T!,
    owner T REFERENCES my_owners (owner),
    size N!,
    hash B!,
    PRIMARY KEY (id, size)"""


def test_a_table_is_written_with_the_words_of_its_database() -> None:
    """Columns in the order of the row, then the key, then indexes."""
    words = Words(TYPES, "MAKE {}", "my_", by_key=" BY KEY", end=" ANY", has_references=True)

    assert list(statements((ROWS, ROWS._replace(indexes=(), is_by_key=False)), words)) == [
        f"MAKE TABLE my_rows ({COLUMNS}\n) BY KEY",
        "MAKE UNIQUE INDEX my_rows_hash ON my_rows (hash)",
        "MAKE INDEX my_rows_owner ON my_rows (owner, size) WHERE owner IS NOT NULL",
        f"MAKE TABLE my_rows ({COLUMNS}\n) ANY",
    ]


def test_a_database_that_checks_no_references_is_not_told_of_them() -> None:
    assert "REFERENCES" not in script((ROWS,), Words(TYPES, "MAKE {}"))


def test_every_table_of_sqlite_has_the_columns_of_its_row() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script(TABLES, sqlite_tables.WORDS))
        for table in TABLES:
            found = connection.execute(f"PRAGMA table_info({table.name})")
            assert tuple(name for _, name, *_ in found) == table.columns
