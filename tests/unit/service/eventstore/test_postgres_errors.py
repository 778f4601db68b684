"""Errors of PostgreSQL in words, by their SQLSTATE."""

from __future__ import annotations

import psycopg
import pytest

from reconciler.service.eventstore.errors import (
    ConflictError,
    StoreBusyError,
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
    StoreUnusableError,
)
from reconciler.service.eventstore.postgres_connection import REFUSED_CONNECTION
from reconciler.service.eventstore.postgres_errors import (
    MAYBE_COMMITTED,
    first_cause,
    store_error,
    store_errors,
)
from tests.rows import each_row

PLACE = "db.example.com/identity"


def an_error(state: str | None, words: str = "the caller's secret") -> psycopg.Error:
    error = psycopg.OperationalError(words)
    error.sqlstate = state
    return error


@each_row(
    ("state", "kind"),
    [
        ("08006", StoreUnreachableError),
        ("08004", StoreUnusableError),
        ("0A000", StoreUnusableError),
        ("22021", StoreError),
        ("22P02", StoreError),
        ("23505", StoreConflictError),
        ("25006", StoreReadOnlyError),
        ("25P03", StoreBusyError),
        ("26000", StoreUnusableError),
        ("28P01", StoreUnusableError),
        ("3D000", StoreUnusableError),
        ("3F000", StoreUnusableError),
        ("40001", StoreConflictError),
        ("40P01", StoreConflictError),
        ("40003", StoreUnreachableError),
        ("42P01", StoreUnusableError),
        ("42501", StoreReadOnlyError),
        ("53100", StoreFullError),
        ("53200", StoreBusyError),
        ("53300", StoreBusyError),
        ("55P03", StoreBusyError),
        ("57014", StoreBusyError),
        ("57P01", StoreUnreachableError),
        ("57P03", StoreUnreachableError),
        ("58030", StoreError),
        ("XX001", StoreUnusableError),
        ("XX000", StoreError),
        (None, StoreUnreachableError),
    ],
)
def test_a_state_says_what_it_means_for_the_database(
    state: str | None, kind: type[StoreError]
) -> None:
    """The whole code counts first, then its class; no sentence of the database shows."""
    told = store_error(PLACE, an_error(state))

    assert type(told) is kind
    assert PLACE in told.problem
    assert told.remedy
    assert "secret" not in told.problem + told.remedy


@pytest.mark.parametrize(
    ("words", "kind", "problem"),
    [
        ("FATAL: sorry, too many clients already", StoreBusyError, "refuses more connections"),
        ("FATAL: unsupported startup parameter: options", StoreUnusableError, "a pooler before"),
        ("FATAL: password authentication failed", StoreUnusableError, "not let this user in"),
        ('FATAL: role "x" does not exist', StoreUnusableError, "does not let this user in"),
        ('FATAL: database "x" does not exist', StoreUnusableError, "no such database"),
        ("FATAL: Datenbank »x« existiert nicht", StoreUnusableError, "refuses the connection"),
    ],
)
def test_a_refused_connection_is_told_by_its_words(
    words: str, kind: type[StoreError], problem: str
) -> None:
    """Its code does not get through the library."""
    told = store_error(PLACE, an_error(REFUSED_CONNECTION, words))

    assert type(told) is kind
    assert problem in told.problem


@pytest.mark.parametrize("state", ["26000", "42P05"])
def test_a_pooler_that_shares_sessions_is_named(state: str) -> None:
    """A prepared statement is missing, or is there in the name of another client."""
    assert "session mode" in store_error(PLACE, an_error(state)).remedy


def test_of_statements_that_were_sent_together_the_first_failure_counts() -> None:
    cause, later = an_error("23505"), psycopg.errors.PipelineAborted()
    later.__context__ = cause
    alone = psycopg.errors.InFailedSqlTransaction()

    assert first_cause(later) is cause
    assert first_cause(alone) is alone
    assert isinstance(store_error(PLACE, later), ConflictError)

    alone.__context__ = an_error("53100")
    assert isinstance(store_error(PLACE, alone), StoreFullError)


def test_what_a_block_raises_is_told_and_its_cause_is_kept() -> None:
    with pytest.raises(StoreFullError) as caught, store_errors(PLACE):
        raise an_error("53100")

    assert isinstance(caught.value.__cause__, psycopg.Error)


def test_a_commit_that_lost_its_connection_may_have_been_carried_out() -> None:
    told = MAYBE_COMMITTED.at(PLACE)

    assert isinstance(told, StoreUnreachableError)
    assert "may have been carried out" in told.problem


@pytest.mark.parametrize(
    "sentence",
    [
        "connection refused",
        "server closed the connection unexpectedly",
        "FATAL: the database system is starting up",
        'FATAL: database "x" does not exist',
    ],
)
def test_a_sentence_without_a_code_decides_nothing(sentence: str) -> None:
    """It may be in any language, and about anything."""
    told = store_error("x", psycopg.OperationalError(sentence))

    assert type(told) is StoreUnreachableError


@each_row(
    ("sentence", "words"),
    [
        ("failed: server does not support SSL, but SSL was required", ("no TLS", "sslmode")),
        ('root certificate file "/x" does not exist', ("not trusted", "sslrootcert")),
        ('could not read root certificate file "x": no certificate', ("not trusted", "sslroot")),
        ("failed: SSL error: certificate verify failed", ("not trusted", "sslrootcert")),
        ('server certificate for "a" does not match host name "b"', ("not trusted", "host")),
        ('could not load private key file "k": key values mismatch', ("settings", "PG*")),
        ('connection is bad: invalid sslmode value: "bogus"', ("settings", "PG*")),
        ('invalid integer value "x" for connection option "port"', ("settings", "PG*")),
        ('definition of service "x" not found', ("settings", "PG*")),
        ('service file "/x" not found', ("settings", "PG*")),
        ("SSL error: unexpected eof while reading", ("cannot be reached", "host and port")),
        ("SSL connection has been closed unexpectedly", ("cannot be reached", "host and port")),
    ],
)
def test_what_libpq_itself_refuses_is_told_by_its_words(
    sentence: str, words: tuple[str, str]
) -> None:
    """The database runs, and its host and port are right. Nothing that it quotes is shown."""
    told = store_error("x", psycopg.OperationalError(sentence))

    assert type(told) is StoreUnreachableError
    assert words[0] in told.problem
    assert words[1] in told.remedy
    assert "/x" not in told.problem + told.remedy


@pytest.mark.parametrize(
    ("code", "kind", "word"),
    [("57P03", StoreUnreachableError, "starting up"), ("3D000", StoreUnusableError, "no such")],
)
def test_starting_up_and_no_such_database_are_told_apart_by_their_codes(
    code: str, kind: type[StoreError], word: str
) -> None:
    """Both sentences speak of "the database"."""
    told = store_error("x", psycopg.errors.lookup(code)("in any language"))

    assert (type(told), word in told.problem) == (kind, True)
