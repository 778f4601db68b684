"""Waits for a database have an end on both sides of the connection."""

from __future__ import annotations

import signal
import time
from contextlib import closing

import pytest

from reconciler.service.eventstore import postgres as postgres_module
from reconciler.service.eventstore import postgres_connection
from reconciler.service.eventstore.errors import StoreUnreachableError
from reconciler.service.eventstore.postgres import Connections
from reconciler.service.eventstore.postgres_connection import Availability, SilentError, connect
from reconciler.service.eventstore.postgres_statements import reading
from tests.postgres_server import PostgresServer


def test_an_interrupted_statement_is_not_waited_for(postgres: PostgresServer) -> None:
    """The database may be silent: it is not asked to cancel, and the connection is closed."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    connection = connect(postgres.address())
    began = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            connection.execute("SELECT pg_sleep(20)")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert connection.closed
    assert time.monotonic() - began < 5


def test_a_statement_that_hears_nothing_for_too_long_is_given_up(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit holds on this side, whatever the database does with its own."""
    monkeypatch.setattr(postgres_connection, "SILENT_SECONDS", 0.2)
    connection = connect(postgres.address())
    connection.availability = Availability("x", probe=lambda: None, on_outage=lambda: None)

    with pytest.raises(SilentError):
        connection.execute("SELECT pg_sleep(20)")

    assert connection.closed


def test_a_user_that_is_not_let_in_any_more_is_told_so(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as after its password was changed: host and port are right, and the database runs."""
    monkeypatch.setattr(postgres_module, "WAIT_SECONDS", 0.0)
    postgres.execute("CREATE ROLE reconciler_left NOLOGIN")
    address = postgres.address().replace("//tests@", "//reconciler_left@")

    with (
        closing(Connections(address)) as connections,
        pytest.raises(StoreUnreachableError, match="not let this user in"),
        connections.begun(reading),
    ):
        pass


def test_the_database_looks_for_a_peer_that_is_gone(postgres: PostgresServer) -> None:
    """So it ends a transaction, and frees its locks, also where no end of the connection came."""
    with Connections(postgres.address()).alone() as connection:
        found = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name LIKE 'tcp_keepalives_%'"
            " OR name = 'idle_in_transaction_session_timeout'"
        )
        settings = dict(found.fetchall())

    assert settings == {
        "tcp_keepalives_idle": "5",
        "tcp_keepalives_interval": "3",
        "tcp_keepalives_count": "3",
        "idle_in_transaction_session_timeout": "30000",
    }
