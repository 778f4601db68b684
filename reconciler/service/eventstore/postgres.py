"""The store in a PostgreSQL database: for more than one machine, and more than one writer.

Its connections are kept in a pool, and found to be lost when they are used.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TypeVar

import psycopg
from psycopg.errors import InvalidSqlStatementName as Unprepared
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from reconciler.resources.process import crashpoint
from reconciler.service.eventstore import postgres_schema as schema
from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore.errors import (
    StoreBusyError,
    StoreConflictError,
    StoreError,
    StoreMissingError,
    StoreUnreachableError,
    StoreUnusableError,
)
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.postgres_connection import (
    QUIET_SECONDS,
    Availability,
    BoundedConnection,
    Connection,
    SilentError,
    checked_address,
    configure,
    connect,
    place_of,
)
from reconciler.service.eventstore.postgres_errors import (
    AWAITS_STANDBY,
    READ_ONLY,
    first_cause,
    store_errors,
)
from reconciler.service.eventstore.postgres_transaction import PostgresTransaction
from reconciler.service.eventstore.rows import NO_LOOKUPS, Lookups
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.eventstore.sweeps import Sweeps
from reconciler.service.eventstore.writers import WRITERS_VERSION

SIZE = 16  # a server's threads; four servers stay below the usual max_connections of 100
WAIT_SECONDS = 10.0
RETRY_SECONDS = 3.0  # then the next caller begins anew, so that a wait never grows long
IDLE_SECONDS = 60.0
STANDBY_SECONDS = 5  # that a commit waits for a standby; then the server is not ready
CLOSE_SECONDS = 1.0  # for each thread of a pool; one that connects to a silent database is left

Pool = ConnectionPool[BoundedConnection]
T = TypeVar("T")

# A server may configure these loggers; a command must not have warnings on its terminal.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
# Of two failures of a transaction the first is raised. psycopg would log the second, such as a row
# that the database refused, in words that quote what a caller sent.
logging.getLogger("psycopg").addFilter(lambda record: "error ignored" not in str(record.msg))
# A pool whose database fell silent is left without a wait for its threads, which end by themselves.
logging.getLogger("psycopg.pool").addFilter(lambda record: "stop thread" not in str(record.msg))


class Connections:
    """Thread-safe connections to one database, opened as they are needed."""

    def __init__(self, address: str) -> None:
        """Take an address.

        Raises:
            StoreUnusableError: it is not an address, or holds a secret.
        """
        self._conninfo = checked_address(address)
        self.place = place_of(address)
        self._availability = Availability(self.place, self._probe, self._drop_pool)
        self._lock = Lock()
        self._pool: Pool | None = None

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """Yield a connection outside the pool, whose failure to connect has its cause.

        Raises:
            StoreError: it cannot be had, or what was done with it failed.
        """
        with store_errors(self.place):
            connection = connect(self._conninfo)
            try:
                self._configure(connection)
                yield connection
            finally:
                connection.close()

    @contextmanager
    def begun(self, begin: Callable[[Connection], T]) -> Iterator[T]:
        """Yield a transaction; what is not committed in the block is undone.

        ``begin`` begins it. Nothing may be written by that, because it is called again where the
        connection turns out to be lost.

        Raises:
            StoreError: the database failed.
            StoreUnreachableError: it does not answer; at once where that is known already.
        """
        with store_errors(self.place):
            pool, connection, begun = self._begun(begin)
            try:
                yield begun
            finally:
                _give_back(pool, connection)

    def _begun(self, begin: Callable[[Connection], T]) -> tuple[Pool, BoundedConnection, T]:
        """Begin on the first connection that turns out to be alive: the pool cannot know."""
        for _ in range(SIZE):
            pool = self._opened()
            connection = self._taken(pool)
            try:
                return pool, connection, begin(connection)
            except BaseException as error:
                # Its settings are lost, too, and psycopg would ask for the statement forever.
                if isinstance(error, psycopg.Error) and isinstance(first_cause(error), Unprepared):
                    connection.close()
                was_lost = connection.closed and not isinstance(error, SilentError)
                _give_back(pool, connection)
                if not (was_lost and isinstance(error, psycopg.Error)):
                    raise
        raise psycopg.OperationalError("this connection is closed")

    def _opened(self) -> Pool:
        """Return the pool, a new one after the database was away."""
        with self._lock:
            self._availability.require()
            if self._pool is None:
                self._pool = self._new_pool()
            return self._pool

    def _taken(self, pool: Pool) -> BoundedConnection:
        deadline = monotonic() + WAIT_SECONDS
        while True:
            try:
                return pool.getconn(timeout=QUIET_SECONDS)
            except (PoolTimeout, PoolClosed) as error:
                self._availability.require()
                if isinstance(error, PoolClosed):
                    raise
                if monotonic() > deadline:
                    self._require_admission()
                    raise
                self._availability.request_probe()

    def _require_admission(self) -> None:
        """Check that the database takes a connection: the pool does not say why it has none.

        Raises:
            StoreUnreachableError: it does not, whatever the reason. Calls that wait together fail
                together, and are not tried one by one.
            StoreBusyError: all its connections are in use.
        """
        try:
            with store_errors(self.place):
                connect(self._conninfo).close()
        except StoreUnusableError as failure:
            raise StoreUnreachableError(failure.problem, failure.remedy) from failure

    def _new_pool(self) -> Pool:
        return ConnectionPool(
            self._conninfo,
            connection_class=BoundedConnection,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=SIZE,
            configure=self._configure,
            timeout=WAIT_SECONDS,
            max_idle=IDLE_SECONDS,
            reconnect_timeout=RETRY_SECONDS,
            open=True,
        )

    def _drop_pool(self, seconds: float = 0.0) -> None:
        """Close idle connections, and fail the calls that wait for one."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(timeout=seconds)  # for each thread of the pool

    def _configure(self, connection: BoundedConnection) -> None:
        connection.availability, connection.outages = self._availability, self._availability.outages
        configure(connection)

    def _probe(self) -> None:
        try:
            with store_errors(self.place):
                connect(self._conninfo).close()
        except StoreUnreachableError:
            raise
        except StoreError:
            return  # a refusal in words is an answer, too

    def abandon(self) -> None:
        """Fail every call that waits for the database, and every later one."""
        self._availability.end()

    def close(self) -> None:
        """Close every connection."""
        self._drop_pool(CLOSE_SECONDS)


class PostgresReadOnlyStore(EventStore):
    """A store that is only looked at. Nothing is made, and nothing changed."""

    def __init__(self, address: str) -> None:
        """Open a store that exists.

        Raises:
            StoreMissingError: this database has no store.
            StoreError: the database cannot be used.
        """
        self._connections = Connections(address)
        self.place = self._connections.place
        with self._connections.alone() as connection:
            schema.recognise(connection, self.place)

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Read, undisturbed by writers: every statement in the block sees the same moment."""
        with self._connections.begun(statements.reading) as connection:
            yield statements.View(connection)
            with suppress(psycopg.Error):  # all was read
                connection.commit()  # to roll back would end what is prepared, too

    def damage(self) -> Sequence[str]:
        """Return what is missing of what keeps writers apart. The rest is the database's care."""
        with self._connections.begun(statements.reading) as connection:
            missing = schema.missing_indexes(connection)
        return [f"the unique index {name} is missing or not valid" for name in missing]

    def backup(self, target: Path) -> None:
        """Refuse: the database has its own tools, which do it better."""
        raise StoreError(
            f"a store in PostgreSQL is not copied to {target}",
            "Use the database's own tools, such as pg_dump or pg_basebackup;"
            " see docs/postgresql.md.",
        )

    def abandon(self) -> None:
        self._connections.abandon()

    def require_writable(self) -> None:
        with self._connections.begun(statements.writing) as connection:
            if connection.execute(statements.IS_READ_ONLY).fetchone() == ("on",):
                raise READ_ONLY.at(self.place)
            if self._standby_wait(connection) >= STANDBY_SECONDS:
                raise AWAITS_STANDBY.at(self.place)

    def _standby_wait(self, connection: Connection) -> float:
        """Return for how many seconds a commit of this user has waited for a standby."""
        found = connection.execute(statements.STANDBY_WAIT).fetchone()
        return float(found[0]) if found and found[0] is not None else 0.0

    def _awaits_standby(self) -> bool:
        with suppress(StoreError), self._connections.alone() as connection:
            return self._standby_wait(connection) > 0
        return False

    def close(self) -> None:
        self._connections.close()


class PostgresEventStore(PostgresReadOnlyStore):
    """A thread-safe ``EventStore`` over a database that any number of processes may share."""

    def __init__(
        self, address: str, now: Callable[[], int], writers: int = WRITERS_VERSION
    ) -> None:
        """Open a store that exists, as a program of some version of the writers.

        Raises:
            StoreMissingError: this database has no store.
            StoreError: the database cannot be used.
        """
        super().__init__(address)
        self._now = now
        self._is_due = Sweeps().is_due
        self._writers = writers
        self._has_signed = False  # whether the store keeps this version, or a higher one

    @contextmanager
    def transaction(self, asked: Lookups = NO_LOOKUPS) -> Iterator[PostgresTransaction]:
        crashpoint("S1")
        begin = partial(
            PostgresTransaction, place=self.place, now=self._now, is_due=self._is_due, asked=asked
        )
        try:
            with self._connections.begun(begin) as writing:
                crashpoint("S2")
                with writing.carried_out(self._writers):
                    if not self._has_signed:
                        writing.sign(self._writers)
                    yield writing
                self._has_signed = True
        except StoreBusyError as error:  # a lock of a commit that waits, perhaps
            is_final = not (asked.is_shared or isinstance(error, StoreConflictError))
            if is_final and self._awaits_standby():
                raise AWAITS_STANDBY.at(self.place) from error
            raise
        crashpoint("S8")

    def bind(self, name: str, value: str) -> str:
        """Keep a fact about the store unless it is kept already; return what is kept."""
        with self._connections.begun(statements.writing) as connection:
            connection.execute(statements.ADD_META, (name, value))
            kept = statements.snapshot(connection).meta(name)
            connection.execute("COMMIT")
        return kept


def _give_back(pool: Pool, connection: BoundedConnection) -> None:
    # Of a transaction that failed, the database may have skipped what psycopg takes for prepared:
    # all of that goes here. After a commit nothing is done.
    with suppress(psycopg.Error):
        connection.rollback()
    pool.putconn(connection)


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
    try:
        PostgresReadOnlyStore(address).close()
    except StoreMissingError:
        return False
    return True
