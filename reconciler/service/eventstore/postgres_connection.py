"""Connections that wait for a database only as long as it is worth it.

The database ends statements that take too long, but only a database that is alive can do that.
So every wait has a limit here, too: it ends when nothing came for longer than any statement may
take, and within a moment once the database is known to be away.
"""

from __future__ import annotations

from time import monotonic
from typing import TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo
from psycopg.errors import CannotConnectNow
from psycopg.errors import SqlserverRejectedEstablishmentOfSqlconnection as Refused
from psycopg.pq import PGconn, Ping
from psycopg.rows import TupleRow
from psycopg.waiting import wait

from reconciler.service.eventstore.postgres_availability import Availability

INTERVAL_SECONDS = 0.1  # between two looks at whether the wait is still worth it
QUIET_SECONDS = 1.0  # without a byte; then the database is asked whether it answers at all
PING_SECONDS = 2  # the least that libpq takes
SILENT_SECONDS = 40.0  # without a byte; longer than statement_timeout, which comes first

REFUSED_CONNECTION = Refused.sqlstate  # with an error code that libpq keeps to itself

Connection = psycopg.Connection[TupleRow]

R = TypeVar("R")


def connect(conninfo: str) -> BoundedConnection:
    """Return a connection, each statement on which is a transaction of its own.

    Raises:
        psycopg.errors.ConnectionTimeout: nothing came within ``connect_timeout``.
        psycopg.errors.CannotConnectNow: the database starts up or shuts down.
        Refused: the database answered, and refused this connection.
        psycopg.OperationalError: there is no database.
    """
    try:
        return BoundedConnection.connect(conninfo, autocommit=True)
    except psycopg.errors.ConnectionTimeout:
        raise
    except psycopg.OperationalError as error:
        raise _coded(conninfo, error) from error


def _coded(conninfo: str, error: psycopg.OperationalError) -> psycopg.OperationalError:
    """Return a failure to connect with the code of its kind, as far as that can be known.

    libpq hands out no SQLSTATE before there is a connection, only sentences in the language of
    the database. Its ping knows the code, and tells three cases apart by it.
    """
    failed = error.pgconn
    if error.sqlstate or failed is None or not (failed.hostaddr or failed.host.startswith(b"/")):
        return error
    # The address is known: a ping must not wait for a name service, nor for a second host.
    known = {"host": failed.host.decode(), "hostaddr": failed.hostaddr.decode() or None}
    there = make_conninfo(
        conninfo, **known, port=failed.port.decode(), connect_timeout=PING_SECONDS
    )
    kinds = {Ping.REJECT: CannotConnectNow, Ping.OK: Refused}
    kind = kinds.get(Ping(PGconn.ping(there.encode())))
    return kind(str(error)) if kind else error


class SilentError(psycopg.OperationalError):
    """Nothing came from the database for too long, or it is known to be away."""


class BoundedConnection(Connection):
    """A connection whose waits end. One that was given up is closed.

    Attributes:
        availability: What is known of the database; None while the connection is being set up.
        outages: How often the database had gone away when the connection was made.
    """

    availability: Availability | None = None
    outages = 0

    def wait(
        self, gen: PQGen[R], interval: float = INTERVAL_SECONDS, timeout: float | None = None
    ) -> R:
        """Carry out an exchange with the database.

        Raises:
            SilentError: it is not worth the wait any more; the connection is closed.
        """
        try:
            limit = () if timeout is None else (timeout,)
            return wait(self._bounded(gen), self.pgconn.socket, interval, *limit)
        except KeyboardInterrupt:
            # psycopg would ask the database to cancel, which may be silent. It ends the
            # statement by itself once the connection is gone, or its time is up.
            self.close()
            raise

    def _bounded(self, gen: PQGen[R]) -> PQGen[R]:
        """Pass an exchange on; look up each time that nothing came for an interval."""
        heard = monotonic()
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    heard = monotonic()
                else:
                    self._look(monotonic() - heard)
                state = gen.send(ready)
        except StopIteration as end:
            result: R = end.value
            return result

    def _look(self, quiet: float) -> None:
        if self.availability is None:
            return
        if self.outages != self.availability.outages or quiet > SILENT_SECONDS:
            self.close()
            raise SilentError("the database is silent")
        if quiet > QUIET_SECONDS:
            self.availability.request_probe()
