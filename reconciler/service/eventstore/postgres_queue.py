"""Sending, undoing and committing the rows of a transaction.

Rows wait in this process and are sent together: at the commit, or before a statement that must
see them. A savepoint is made in the database as soon as something inside it is sent; until
then, undoing it means forgetting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from reconciler.resources.crashpoint import crashpoint
from reconciler.service.eventstore.errors import StoreConflictError, StreamConflictError
from reconciler.service.eventstore.postgres_errors import first_cause, lost_while_committing
from reconciler.service.eventstore.postgres_locks import Locked, Locks
from reconciler.service.eventstore.postgres_pending import Pending
from reconciler.service.eventstore.postgres_rows import Connection, PostgresSnapshot

SENT_AT_ONCE = 1024
USABLE = {TransactionStatus.INTRANS, TransactionStatus.INERROR}


class PostgresQueue(PostgresSnapshot):
    """A view of a store whose changes wait until they must be sent."""

    def __init__(self, connection: Connection, place: str) -> None:
        super().__init__(connection)
        self._connection = connection
        self._place = place
        self._locks = Locks(connection)
        self._pending = Pending()
        self._kept: Pending | None = None  # what waited when the savepoint began
        self._held: dict[str, Locked] | None = None  # once the savepoint is in the database

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done in the block if an exception leaves it, and only that."""
        if len(self._pending) >= SENT_AT_ONCE:
            self._flush()
        self._kept = self._pending.copy()
        try:
            yield
            if self._held is not None:
                self._run("RELEASE SAVEPOINT one")
        except BaseException:
            self._undo(self._kept)
            raise
        finally:
            self._kept = self._held = None

    def _undo(self, kept: Pending) -> None:
        self._pending = kept
        if self._held is not None and self._connection.info.transaction_status in USABLE:
            self._locks.let_go(self._held)  # those since the savepoint
            self._run("ROLLBACK TO SAVEPOINT one")
            self._run("RELEASE SAVEPOINT one")

    def _settle(self) -> None:
        """Let the database know all that was decided."""
        if len(self._pending):
            self._flush()

    def _flush(self) -> None:
        """Send what waits; first what was decided before the savepoint, which then is made.

        Raises:
            StreamConflictError: what was decided since the savepoint does not hold.
            StoreConflictError: what was decided before it does not.
        """
        if self._kept is not None and self._held is None:
            self._make_savepoint(self._kept)
        self._send(self._pending)

    def _make_savepoint(self, kept: Pending) -> None:
        self._pending.sent_before(kept)
        try:
            self._send(kept)
        except StreamConflictError as error:
            raise self._lost_a_race() from error
        self._run("SAVEPOINT one")
        self._held = dict(self._locks.held)

    def _send(self, pending: Pending) -> None:
        statements = list(pending.statements())
        if statements:
            with self._one_writer_wins(), self._connection.pipeline():
                self._hand_over(statements)
        pending.sent()

    def _hand_over(self, statements: Sequence[tuple[str, Sequence[tuple[Any, ...]]]]) -> None:
        cursor = self._connection.cursor()
        for statement, rows in statements:
            cursor.executemany(statement, rows)

    @contextmanager
    def _one_writer_wins(self) -> Iterator[None]:
        """Tell a constraint that does not hold as the conflict that it is."""
        try:
            yield
        except psycopg.Error as error:
            if isinstance(first_cause(error), psycopg.errors.UniqueViolation):
                raise StreamConflictError from error
            raise

    def finish(self) -> None:
        """Send what waits, and commit.

        Raises:
            StreamConflictError: another writer had the same idea first.
            StoreConflictError: the database undid it all.
            StoreUnreachableError: nobody knows what became of it.
        """
        crashpoint("S7")
        try:
            with self._one_writer_wins(), self._connection.pipeline():
                self._hand_over(list(self._pending.statements()))
                committed = self._run("COMMIT")
        except psycopg.OperationalError as error:
            if self._connection.closed:
                raise lost_while_committing(self._place) from error
            raise
        if committed.statusmessage != "COMMIT":
            raise self._lost_a_race()

    def _lost_a_race(self) -> StoreConflictError:
        return StoreConflictError(
            f"other writers got in the way at {self._place}",
            "Run the command again. Nothing was written.",
        )
