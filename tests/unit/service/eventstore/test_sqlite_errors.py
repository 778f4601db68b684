"""Errors of SQLite in words."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from reconciler.service.eventstore.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnusableError,
)
from reconciler.service.eventstore.sqlite_errors import store_error, store_errors

PATH = Path("identity.db")


def an_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("the library's sentence")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (an_error(sqlite3.SQLITE_NOTADB), StoreUnusableError),
        (an_error(sqlite3.SQLITE_CORRUPT), StoreUnusableError),
        (an_error(sqlite3.SQLITE_CORRUPT | 1 << 8), StoreUnusableError),
        (an_error(sqlite3.SQLITE_READONLY), StoreReadOnlyError),
        (an_error(sqlite3.SQLITE_READONLY_DBMOVED), StoreReadOnlyError),
        (an_error(sqlite3.SQLITE_CANTOPEN), StoreUnusableError),
        (an_error(sqlite3.SQLITE_FULL), StoreFullError),
        (an_error(sqlite3.SQLITE_IOERR_FSYNC), StoreError),
        (an_error(sqlite3.SQLITE_BUSY_SNAPSHOT), StoreBusyError),
        (an_error(sqlite3.SQLITE_LOCKED), StoreBusyError),
        (an_error(sqlite3.SQLITE_MISMATCH), StoreError),
        (sqlite3.ProgrammingError("no code"), StoreError),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "damage"), StoreUnusableError),
    ],
)
def test_an_error_says_what_it_means_for_the_file(
    error: sqlite3.Error | UnicodeDecodeError, kind: type[StoreError]
) -> None:
    """Extended codes mean what their primary code means; no sentence of the library shows."""
    told = store_error(PATH, error)

    assert type(told) is kind
    assert "identity.db" in told.problem
    assert "sentence" not in told.problem + told.remedy
    assert told.remedy.endswith(".")


def test_what_a_block_raises_is_told_and_its_cause_is_kept() -> None:
    with pytest.raises(StoreUnusableError) as caught, store_errors(PATH):
        raise an_error(sqlite3.SQLITE_CORRUPT)

    assert isinstance(caught.value.__cause__, sqlite3.Error)


def test_what_is_no_error_of_the_library_passes() -> None:
    with pytest.raises(ZeroDivisionError), store_errors(PATH):
        raise ZeroDivisionError
