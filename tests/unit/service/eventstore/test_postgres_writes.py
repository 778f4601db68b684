"""Rows that a transaction on PostgreSQL knows already, and so does not look up."""

from __future__ import annotations

from typing import Any

from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore.postgres_writes import PostgresTransaction
from reconciler.service.eventstore.rows import NO_LOOKUPS, Author, Lookups, NewEvent, StreamAt
from tests.postgres_double import Database


def begun(database: Any, asked: Lookups = NO_LOOKUPS) -> PostgresTransaction:
    """Return a transaction that has begun, and forget what it sent for that."""
    transaction = PostgresTransaction(database, "here", lambda: 0, lambda _: False, asked)
    database.sent.clear()
    return transaction


def test_what_was_looked_up_is_not_looked_up_again() -> None:
    """Also where nothing was found: that is known by then."""
    database = Database()
    organizations, records = frozenset({"9"}), frozenset({("ci", "k")})
    asked = Lookups(organizations, records, organizations, frozenset({"a"}), 1)
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
    unit.finish(1)

    assert database.words() == [
        "INSERT INTO reconciler_events",
        "INSERT INTO reconciler_heads",
        statements.REQUIRE_CURRENT,
        "COMMIT",
    ]
    assert not any("ON CONFLICT" in statement for statement, _ in database.sent)
