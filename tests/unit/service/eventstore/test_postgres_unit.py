"""What waits in a unit of work: undone in memory, sent in the order of the decisions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from reconciler.service.eventstore.postgres_writes import PostgresTransaction
from reconciler.service.eventstore.rows import OwedRow, SealRow

KEPT, UNDONE = SealRow("kept", b"", 1), SealRow("undone", b"", 1)
OWED = OwedRow("1", "acme", 1, "us", "", "", "kept", 0, 9)


class Database:
    """A connection that finds nothing, and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.statusmessage = "COMMIT"

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        yield

    def execute(self, statement: str, values: Any = ()) -> Any:
        self.sent.append((statement, values))
        return self

    def fetchone(self) -> None:
        return None

    def words(self) -> list[str]:
        return [statement.split(" (")[0] for statement, _ in self.sent]


@pytest.fixture
def database() -> Any:
    return Database()


def begun(database: Any) -> PostgresTransaction:
    return PostgresTransaction(database, "here", lambda: 0, lambda _: False)


def fail(unit: PostgresTransaction) -> None:
    unit.put_seal(UNDONE)
    raise KeyError


def test_what_is_undone_while_it_waits_never_reaches_the_database(database: Any) -> None:
    """Not even a savepoint is made for it."""
    unit = begun(database)
    unit.put_seal(KEPT)
    with pytest.raises(KeyError), unit.savepoint():
        fail(unit)
    assert database.sent == []

    unit.finish()

    assert database.words() == ["INSERT INTO reconciler_seals", "COMMIT"]
    ((_, (rows,)), _) = database.sent
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
    """So that the block alone can be undone."""
    unit = begun(database)
    unit.put_seal(KEPT)
    with unit.savepoint():
        unit.put_owed(OWED)
        unit.meta("instance")

    assert database.words()[:3] == [
        "INSERT INTO reconciler_seals",
        "SAVEPOINT one",
        "INSERT INTO reconciler_owed",
    ]
    assert database.words()[-1] == "RELEASE SAVEPOINT one"
