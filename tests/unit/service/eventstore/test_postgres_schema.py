"""The tables of a PostgreSQL store, as far as they can be judged without a database."""

from __future__ import annotations

import re

from reconciler.service.eventstore.postgres_schema import (
    COLUMNS,
    PLAIN_TABLES,
    TABLES,
    UNIQUE_INDEXES,
)


def columns_of(script: str) -> dict[str, list[str]]:
    """Return the columns of every table that a script makes."""
    made = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\n\)", script, re.DOTALL)
    return {name: re.findall(r"^    ([a-z]\w*) ", body, re.MULTILINE) for name, body in made}


def test_a_store_is_recognised_by_the_columns_that_are_made() -> None:
    """A column that only one of the two knows would make every store look like a stranger's."""
    assert {name: frozenset(found) for name, found in columns_of(TABLES).items()} == COLUMNS


def test_every_index_that_keeps_writers_apart_is_made() -> None:
    """By its own name, or as the key of its table."""
    keys = {f"{name}_pkey" for name in COLUMNS}

    assert [name for name in UNIQUE_INDEXES - keys if f"{name} " not in TABLES] == []


def test_a_database_without_collations_gets_the_same_tables() -> None:
    assert "COLLATE" not in PLAIN_TABLES
    assert columns_of(PLAIN_TABLES) == columns_of(TABLES)
