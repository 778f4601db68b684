"""Lookups that a batch on PostgreSQL makes before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reconciler.service.eventstore import postgres_statements as tables
from reconciler.service.eventstore.postgres_writes import PostgresTransaction
from reconciler.service.eventstore.rows import Lookups


class EmptyDatabase:
    """A connection that finds nothing, and keeps the statements that it was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        yield

    def execute(self, statement: str, _: object = ()) -> list[Any]:
        self.sent.append(statement)
        return []


def test_records_are_looked_up_before_objects() -> None:
    """Otherwise an object may be older than the record of a call that changed it."""
    database: Any = EmptyDatabase()
    transaction = PostgresTransaction(database, "here", lambda: 0, lambda _: False)

    transaction.prefetch(Lookups(frozenset({("ci", "k")}), frozenset({"1"}), frozenset(), 1))

    assert database.sent == [tables.RECORDS, tables.OBJECTS]
