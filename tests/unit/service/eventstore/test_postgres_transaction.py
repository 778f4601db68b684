"""What a transaction knows already is not looked up; what waits is undone here, or sent."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore.postgres_transaction import PostgresTransaction
from reconciler.service.eventstore.rows import (
    NO_LOOKUPS,
    Author,
    Lookups,
    NewEvent,
    OwedRow,
    SealRow,
    StreamAt,
)
from tests.postgres_double import Database

KEPT, UNDONE = SealRow("kept", b"", 1), SealRow("undone", b"", 1)
OWED = OwedRow("1", "acme", 1, "us", "", "", "kept", 0, 9)


@pytest.fixture
def database() -> Any:
    return Database()


def begun(database: Any, asked: Lookups = NO_LOOKUPS) -> PostgresTransaction:
    """Return a transaction that has begun, and forget what it sent for that."""
    transaction = PostgresTransaction(database, "here", lambda: 0, lambda _: False, asked)
    database.sent.clear()
    return transaction


def commit(unit: PostgresTransaction) -> None:
    with unit.carried_out(writers=1):
        pass


def fail(unit: PostgresTransaction) -> None:
    unit.put(UNDONE)
    raise KeyError


def test_heads_are_locked_first_and_records_looked_up_before_objects(database: Any) -> None:
    """Otherwise an object may be older than the record of a call that changed it."""
    organizations, records = frozenset({"9"}), frozenset({("ci", "k")})
    asked = Lookups(organizations, records, frozenset({"1"}), frozenset({("1", "a")}), 1)

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
    unit.put(KEPT)
    with pytest.raises(KeyError), unit.savepoint():
        fail(unit)
    assert database.sent == []

    commit(unit)

    *_, check, _ = database.words()
    assert database.words() == ["INSERT INTO reconciler_seals", check, "COMMIT"]
    assert database.sent[1][1] == (1, "writers")
    (_, (rows,)) = database.sent[0]
    assert "kept" in rows
    assert "undone" not in rows


def test_a_read_sends_what_waits_before_it(database: Any) -> None:
    """It must see what was decided."""
    unit = begun(database)
    unit.put(OWED)

    assert unit.meta("instance") == ""

    assert database.words()[0] == "INSERT INTO reconciler_owed"
    assert "reconciler_meta" in database.words()[1]


def test_a_read_in_a_block_makes_the_savepoint_between_what_came_before_and_since(
    database: Any,
) -> None:
    """So that the block alone can be undone; a block that only reads has none."""
    unit = begun(database)
    unit.put(KEPT)
    with unit.savepoint():
        unit.meta("instance")
    assert database.words()[0] == "INSERT INTO reconciler_seals"
    assert len(database.sent) == 2
    database.sent.clear()

    for _ in range(2):
        with unit.savepoint():
            unit.put(OWED)
            unit.meta("instance")

    assert [words for words in database.words() if "meta" not in words] == [
        "SAVEPOINT one",
        "INSERT INTO reconciler_owed",
        "RELEASE SAVEPOINT one",
        "SAVEPOINT one",
        "DELETE FROM reconciler_owed WHERE",
        "INSERT INTO reconciler_owed",
    ]


def test_what_was_looked_up_is_not_looked_up_again() -> None:
    """Also where nothing was found: that is known by then."""
    database = Database()
    organizations, records = frozenset({"9"}), frozenset({("ci", "k")})
    asked = Lookups(organizations, records, organizations, frozenset({("9", "a")}), 1)
    unit = begun(database, asked)

    assert unit.record("ci", "k") is None
    assert unit.get_object("9") is None
    assert unit.find_object("Action", "9", "a") is None
    assert database.sent == []


def test_what_was_not_announced_and_a_record_that_is_asked_for_again_are_looked_up() -> None:
    """Another writer may have been done meanwhile."""
    database = Database()
    unit = begun(database)
    for _ in range(2):
        unit.record("ci", "k")
        unit.find_object("Action", "9", "b")

    assert [
        statement.partition("FROM ")[2].partition(" ")[0] for statement, _ in database.sent
    ] == ["reconciler_records", "reconciler_objects", "reconciler_records"]


def test_the_first_stream_of_an_organization_waits_for_no_head() -> None:
    """Its id is new, and so is every name in it."""
    database = Database()
    unit = begun(database)
    unit._positions.extend([7])

    unit.append(StreamAt("9", "9", 0), (NewEvent("t", "{}"),), Author("us", ""))
    assert unit.find_object("Project", "9", "shop") is None
    assert database.sent == []
    commit(unit)

    assert database.words() == [
        "INSERT INTO reconciler_events",
        "INSERT INTO reconciler_heads",
        statements.REQUIRE_CURRENT,
        "COMMIT",
    ]
    assert not any("ON CONFLICT" in statement for statement, _ in database.sent)
