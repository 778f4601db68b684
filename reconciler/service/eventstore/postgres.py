"""The store in a PostgreSQL database: for more than one machine, and more than one writer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from reconciler.resources.process import crashpoint
from reconciler.service.eventstore import postgres_schema as schema
from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore.errors import StoreError, StoreMissingError, StoreReadOnlyError
from reconciler.service.eventstore.postgres_pool import Connections
from reconciler.service.eventstore.postgres_writes import PostgresTransaction
from reconciler.service.eventstore.sql import Snapshot

SWEPT_EVERY = 60_000_000  # microseconds between looks for what has expired


class PostgresReadOnlyStore:
    """A store that is only looked at. Nothing is made, and nothing changed."""

    def __init__(self, address: str) -> None:
        """Open a store that exists.

        Raises:
            StoreMissingError: this database has no store.
            StoreError: the database cannot be used.
        """
        self._connections = Connections(address)
        self._place = self._connections.place
        with self._connections.alone() as connection:
            schema.recognise(connection, self._place)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Read, undisturbed by writers: every statement in the block sees the same moment."""
        with self._connections.begun(statements.BEGIN_READING) as connection:
            yield statements.snapshot(connection)

    def transaction(self) -> AbstractContextManager[PostgresTransaction]:
        """Refuse to write.

        Raises:
            StoreReadOnlyError: always.
        """
        raise StoreReadOnlyError(
            f"{self._place} was opened to be read only", "Open it for writing."
        )

    def is_outdated(self) -> bool:
        """Return whether an earlier version made the store, and nothing has upgraded it since."""
        with self._connections.begun(statements.BEGIN_READING) as connection:
            return schema.is_outdated(connection)

    def damage(self) -> Sequence[str]:
        """Return what is missing of what keeps writers apart. The rest is the database's care."""
        with self._connections.begun(statements.BEGIN_READING) as connection:
            missing = schema.missing_indexes(connection)
        return [f"the unique index {name} is missing or not valid" for name in missing]

    def backup(self, target: Path) -> None:
        """Refuse: the database has its own tools, which do it better.

        Raises:
            StoreError: always.
        """
        raise StoreError(
            f"a store in PostgreSQL is not copied to {target}",
            "Use the database's own tools, such as pg_dump or pg_basebackup;"
            " see docs/postgresql.md.",
        )

    def abandon(self) -> None:
        """Let what waits for the database fail, and what comes after it."""
        self._connections.abandon()

    def close(self) -> None:
        """Let go of every connection."""
        self._connections.close()


class PostgresEventStore(PostgresReadOnlyStore):
    """A thread-safe ``EventStore`` over a database that any number of processes may share."""

    def __init__(self, address: str, now: Callable[[], int]) -> None:
        """Open a store that exists.

        Raises:
            StoreMissingError: this database has no store.
            StoreError: the database cannot be used.
        """
        super().__init__(address)
        self._now = now
        self._swept = 0

    @contextmanager
    def transaction(self) -> Iterator[PostgresTransaction]:
        """Write: commit when the block ends, roll back when an exception leaves it.

        Raises:
            StoreUnreachableError: the database was lost; a commit that was under way may have
                been carried out.
            ConflictError: other writers got in the way; nothing was written.
            StoreError: the store cannot be written to; nothing was.
        """
        crashpoint("S1")
        with self._connections.begun(statements.BEGIN_WRITING) as connection:
            crashpoint("S2")
            writing = PostgresTransaction(connection, self._place, self._now, self._is_due)
            yield writing
            writing.finish()
        crashpoint("S8")

    def _is_due(self, now: int) -> bool:
        """Return whether to look for what has expired, which need not be done in every commit."""
        # Not under a lock: two threads that look at once only do it twice.
        if now - self._swept < SWEPT_EVERY:
            return False
        self._swept = now
        return True

    def bind(self, name: str, value: str) -> str:
        """Keep a fact about the store unless it is kept already; return what is kept."""
        with self._connections.begun(statements.BEGIN_WRITING) as connection:
            connection.execute(statements.ADD_META, (name, value))
            kept = statements.snapshot(connection).meta(name)
            connection.execute("COMMIT")
        return kept


def create(address: str) -> None:
    """Make an empty store in a database that has none. One that is there is kept.

    Raises:
        StoreError: the database cannot be used.
    """
    connections = Connections(address)
    with connections.alone() as connection:
        schema.create(connection, connections.place)


def exists(address: str) -> bool:
    """Return whether a database holds a store. Nothing is changed.

    Raises:
        StoreError: it cannot be looked at, or holds something else under our names.
    """
    connections = Connections(address)
    with connections.alone() as connection:
        try:
            schema.recognise(connection, connections.place)
        except StoreMissingError:
            return False
    return True
