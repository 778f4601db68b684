"""Connections to PostgreSQL: how they are made, kept and found to be lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg_pool import ConnectionPool

from reconciler.service.eventstore import postgres_address as addresses
from reconciler.service.eventstore.errors import StoreUnusableError
from reconciler.service.eventstore.postgres_errors import in_words
from reconciler.service.eventstore.postgres_rows import Connection

SIZE = 16  # a server's threads; four servers stay below the usual max_connections of 100
WAIT_SECONDS = 10.0
RETRY_SECONDS = 3.0  # then the next who asks begins anew, so that a wait never grows long
IDLE_SECONDS = 60.0
# What an address may say otherwise. A lost peer is noticed after some 15 seconds.
USUAL: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "fallback_application_name": "reconciler",
}
# A paused server must not keep an organization to itself; and nothing is acknowledged that a
# power cut would undo, whatever the database's own default.
SETTINGS = (
    ("statement_timeout", "30s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "30s"),
)
SET = "SELECT set_config(%s, %s, false)"
SET_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)
CLOSED = "this connection is closed"

# Whoever serves may listen to the pool; a command does not get its warnings on the terminal.
logging.getLogger("psycopg").addHandler(logging.NullHandler())


class Connections:
    """Connections to one database, opened as they are needed. Any thread may use it."""

    def __init__(self, address: str) -> None:
        """Take an address.

        Raises:
            StoreUnusableError: it is none, or holds a secret.
        """
        addresses.check(address)
        self.place = addresses.place_of(address)
        self._conninfo = _complete(address)
        self._pool = ConnectionPool(
            self._conninfo,
            # A pipeline that the database ended takes prepared statements with it unseen.
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=0,
            max_size=SIZE,
            configure=_configure,
            timeout=WAIT_SECONDS,
            max_idle=IDLE_SECONDS,
            reconnect_timeout=RETRY_SECONDS,
            open=False,
        )

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """Yield a connection outside the pool: whoever cannot be reached says why.

        Raises:
            StoreError: it cannot be had, or what was done with it failed.
        """
        with in_words(self.place):
            connection = psycopg.connect(self._conninfo, autocommit=True)
            try:
                _configure(connection)
                yield connection
            finally:
                connection.close()

    @contextmanager
    def begun(self, begin: str) -> Iterator[Connection]:
        """Yield a connection in a transaction; what is not committed in the block is undone.

        Raises:
            StoreError: the database failed.
        """
        with in_words(self.place):
            connection = self._begun(begin)
            try:
                yield connection
            finally:
                if connection.info.transaction_status != TransactionStatus.IDLE:
                    with suppress(psycopg.Error):
                        connection.execute("ROLLBACK")
                self._pool.putconn(connection)

    def _begun(self, begin: str) -> Connection:
        """Begin on the first connection that turns out to be alive: the pool cannot know."""
        self._pool.open()
        for _ in range(SIZE):
            connection = self._pool.getconn()
            try:
                connection.execute(begin)
            except psycopg.Error:
                was_lost = connection.closed
                self._pool.putconn(connection)
                if not was_lost:
                    raise
            else:
                return connection
        raise psycopg.OperationalError(CLOSED)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


def _complete(address: str) -> str:
    """Return an address with everything that it leaves open.

    Raises:
        StoreUnusableError: it cannot be understood.
    """
    try:
        said = conninfo_to_dict(address)
        usual = {name: value for name, value in USUAL.items() if name not in said}
        return make_conninfo(address, **usual, client_encoding="utf8")
    except psycopg.ProgrammingError:
        raise StoreUnusableError(
            "this is not the address of a PostgreSQL database",
            "Write postgresql://USER@HOST:PORT/DATABASE.",
        ) from None


def _configure(connection: Connection) -> None:
    connection.adapters.register_dumper(int, Int8Dumper)
    with connection.pipeline():
        for setting in SETTINGS:
            connection.execute(SET, setting)
        connection.execute(SET_DURABLE)
