"""A connection to PostgreSQL that finds nothing, and keeps what it was sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Database:
    """The connection, and the answer to each of its statements: no rows."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.statusmessage = "COMMIT"
        self.info = self
        self.transaction_status = None

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        yield

    def execute(self, statement: str, values: Any = ()) -> Any:
        self.sent.append((statement, values))
        return self

    def add_notice_handler(self, handler: Any) -> None:
        """Take a handler; there are no notices."""

    def remove_notice_handler(self, handler: Any) -> None:
        """Forget a handler."""

    def fetchone(self) -> None:
        return None

    def fetchall(self) -> list[Any]:
        return []

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def words(self) -> list[str]:
        return [statement.split(" (")[0] for statement, _ in self.sent]
