"""What waits in a unit of work: undone in memory, and sent when it must be."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore.postgres_writes import PostgresTransaction
from reconciler.service.eventstore.rows import (
    Lookups,
    OwedRow,
    SealRow,
)
from tests.postgres_double import Database

KEPT, UNDONE = SealRow("kept", b"", 1), SealRow("undone", b"", 1)
OWED = OwedRow("1", "acme", 1, "us", "", "", "kept", 0, 9)


@pytest.fixture
def database() -> Any:
    return Database()


def begun(database: Any) -> PostgresTransaction:
    """Return a transaction that has begun, and forget what it sent for that."""
    transaction = PostgresTransaction(database, "here", lambda: 0, lambda _: False)
    database.sent.clear()
    return transaction


def fail(unit: PostgresTransaction) -> None:
    unit.put_seal(UNDONE)
    raise KeyError


def test_heads_are_locked_first_and_records_looked_up_before_objects(database: Any) -> None:
    """Otherwise an object may be older than the record of a call that changed it."""
    organizations, records = frozenset({"9"}), frozenset({("ci", "k")})
    asked = Lookups(organizations, records, frozenset({"1"}), frozenset({"a"}), 1)

    PostgresTransaction(database, "here", lambda: 0, lambda _: False, asked)

    assert [statement for statement, _ in database.sent] == [
        statements.BEGIN_WRITING,
        statements.LOCK_HEADS,
        statements.RECORDS,
        statements.OBJECTS,
        statements.NAMES,
        statements.POSITIONS,
    ]


def test_what_is_undone_while_it_waits_never_reaches_the_database(database: Any) -> None:
    """Not even a savepoint is made for it."""
    unit = begun(database)
    unit.put_seal(KEPT)
    with pytest.raises(KeyError), unit.savepoint():
        fail(unit)
    assert database.sent == []

    unit.finish(writers=1)

    *_, check, _ = database.words()
    assert database.words() == ["INSERT INTO reconciler_seals", check, "COMMIT"]
    assert database.sent[1][1] == (1, "writers")
    (_, (rows,)) = database.sent[0]
    assert "kept" in rows
    assert "undone" not in rows


def test_a_read_sends_what_waits_before_it(database: Any) -> None:
    """It must see what was decided."""
    unit = begun(database)
    unit.put_owed(OWED)

    assert unit.meta("instance") == ""

    assert database.words()[0] == "INSERT INTO reconciler_owed"
    assert "reconciler_meta" in database.words()[1]


def test_a_read_in_a_block_makes_the_savepoint_between_what_came_before_and_since(
    database: Any,
) -> None:
    """So that the block alone can be undone; a block that only reads has none."""
    unit = begun(database)
    unit.put_seal(KEPT)
    with unit.savepoint():
        unit.meta("instance")
    assert database.words()[0] == "INSERT INTO reconciler_seals"
    assert len(database.sent) == 2
    database.sent.clear()

    for _ in range(2):
        with unit.savepoint():
            unit.put_owed(OWED)
            unit.meta("instance")

    assert [words for words in database.words() if "meta" not in words] == [
        "SAVEPOINT one",
        "INSERT INTO reconciler_owed",
        "RELEASE SAVEPOINT one",
        "SAVEPOINT one",
        "DELETE FROM reconciler_owed WHERE",
        "INSERT INTO reconciler_owed",
    ]
