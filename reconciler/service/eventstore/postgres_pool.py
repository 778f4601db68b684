"""Connections to PostgreSQL: how they are set up, kept and found to be lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from time import monotonic

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from reconciler.service.eventstore.errors import StoreError, StoreUnreachableError
from reconciler.service.eventstore.postgres_connection import (
    QUIET_SECONDS,
    Availability,
    BoundedConnection,
    Connection,
    SilentError,
    checked_address,
    connect,
    place_of,
)
from reconciler.service.eventstore.postgres_errors import store_errors

SIZE = 16  # a server's threads; four servers stay below the usual max_connections of 100
WAIT_SECONDS = 10.0
RETRY_SECONDS = 3.0  # then the next caller begins anew, so that a wait never grows long
IDLE_SECONDS = 60.0
CLOSE_SECONDS = 1.0  # for each thread of a pool; one that connects to a silent database is left
# A paused server must not keep an organization to itself; and nothing is acknowledged that a
# power cut would undo, whatever the database's own default.
SETTINGS = (
    ("statement_timeout", "30s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "30s"),
)
SET = "SELECT set_config(%s, %s, false)"
# So that the database, too, soon notices a peer that is gone and ends what it began. Not every
# database that speaks the protocol has these.
KEEPALIVES = (
    ("5", "tcp_keepalives_idle"),
    ("3", "tcp_keepalives_interval"),
    ("3", "tcp_keepalives_count"),
)
SET_KNOWN = "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = %s"
SET_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)
CLOSED = "this connection is closed"

Pool = ConnectionPool[BoundedConnection]

# A server may configure these loggers; a command must not have warnings on its terminal.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
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
    def begun(self, begin: str) -> Iterator[Connection]:
        """Yield a connection in a transaction; what is not committed in the block is undone.

        Raises:
            StoreError: the database failed.
            StoreUnreachableError: it does not answer; at once where that is known already.
        """
        with store_errors(self.place):
            pool, connection = self._begun(begin)
            try:
                yield connection
            finally:
                if connection.info.transaction_status != TransactionStatus.IDLE:
                    with suppress(psycopg.Error):
                        connection.execute("ROLLBACK")
                pool.putconn(connection)

    def _begun(self, begin: str) -> tuple[Pool, BoundedConnection]:
        """Begin on the first connection that turns out to be alive: the pool cannot know."""
        for _ in range(SIZE):
            pool = self._opened()
            connection = self._taken(pool)
            try:
                connection.execute(begin)
            except psycopg.Error as error:
                was_lost = connection.closed and not isinstance(error, SilentError)
                pool.putconn(connection)
                if not was_lost:
                    raise
            else:
                return pool, connection
        raise psycopg.OperationalError(CLOSED)

    def _opened(self) -> Pool:
        """Return the pool, a new one after the database was away.

        Raises:
            StoreUnreachableError: it is away.
        """
        with self._lock:
            self._availability.require()
            if self._pool is None:
                self._pool = self._new_pool()
            return self._pool

    def _taken(self, pool: Pool) -> BoundedConnection:
        """Return a connection of the pool.

        Raises:
            StoreUnreachableError: the database is away.
            psycopg.OperationalError: all were in use for too long.
        """
        deadline = monotonic() + WAIT_SECONDS
        while True:
            try:
                return pool.getconn(timeout=QUIET_SECONDS)
            except (PoolTimeout, PoolClosed) as error:
                self._availability.require()
                if isinstance(error, PoolClosed) or monotonic() > deadline:
                    raise
                self._availability.request_probe()

    def _new_pool(self) -> Pool:
        return ConnectionPool(
            self._conninfo,
            connection_class=BoundedConnection,
            # A pipeline that the database ended takes prepared statements with it unseen.
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=0,
            max_size=SIZE,
            configure=self._configure,
            timeout=WAIT_SECONDS,
            max_idle=IDLE_SECONDS,
            reconnect_timeout=RETRY_SECONDS,
            open=True,
        )

    def _drop_pool(self, seconds: float = 0.0) -> None:
        """Close idle connections, and fail the calls that wait for one.

        ``seconds`` is how long each thread of the pool is waited for.
        """
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close(timeout=seconds)

    def _configure(self, connection: BoundedConnection) -> None:
        connection.availability, connection.outages = self._availability, self._availability.outages
        connection.adapters.register_dumper(int, Int8Dumper)
        with connection.pipeline():
            for setting in SETTINGS:
                connection.execute(SET, setting)
            for setting in KEEPALIVES:
                connection.execute(SET_KNOWN, setting)
            connection.execute(SET_DURABLE)

    def _probe(self) -> None:
        """Connect once more; a refusal in words is an answer, too.

        Raises:
            StoreUnreachableError: there is no answer.
        """
        try:
            with store_errors(self.place):
                connect(self._conninfo).close()
        except StoreUnreachableError:
            raise
        except StoreError:
            return

    def abandon(self) -> None:
        """Fail every call that waits for the database, and every later one."""
        self._availability.end()

    def close(self) -> None:
        """Close every connection."""
        self._drop_pool(CLOSE_SECONDS)
