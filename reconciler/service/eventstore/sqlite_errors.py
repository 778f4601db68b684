"""Errors of SQLite in words: one table, and the only place that knows its error codes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.service.eventstore.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnusableError,
)

_Told = tuple[type[StoreError], str, str]

_DAMAGED: _Told = (
    StoreUnusableError,
    "{path} is damaged",
    "Restore a backup with `store restore`. The file was left as it is.",
)
_UNREACHABLE: _Told = (
    StoreUnusableError,
    "{path} cannot be opened",
    "Check that it is a file, and that this user may read and write it and its folder.",
)
# By primary error code, which is the lowest byte of the extended one.
_MEANINGS: dict[int, _Told] = {
    sqlite3.SQLITE_NOTADB: (
        StoreUnusableError,
        "{path} is not a store of the identity service",
        "Name another file. This one was left as it is.",
    ),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_READONLY: (
        StoreReadOnlyError,
        "{path} cannot be written to",
        "Make the file and its folder writable for this user.",
    ),
    sqlite3.SQLITE_PERM: _UNREACHABLE,
    sqlite3.SQLITE_CANTOPEN: _UNREACHABLE,
    sqlite3.SQLITE_FULL: (
        StoreFullError,
        "there is no room left to write {path}",
        "Free some space and run the command again. Nothing was lost.",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreError,
        "the disk failed while {path} was in use",
        "Check the disk, then run `store verify`.",
    ),
    sqlite3.SQLITE_BUSY: (
        StoreBusyError,
        "another program is writing to {path}",
        "Wait until it is done, then run the command again.",
    ),
    sqlite3.SQLITE_LOCKED: (
        StoreBusyError,
        "another program is writing to {path}",
        "Wait until it is done, then run the command again.",
    ),
}
_UNKNOWN: _Told = (
    StoreError,
    "{path} cannot be used",
    "Run `store verify` to see whether it is sound.",
)


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite raises in the block into a ``StoreError`` about this file.

    Raises:
        StoreError: SQLite raised.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise store_error(path, error) from error


def store_error(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
    """Return what an error of SQLite means for the person whose file it is.

    It reports some damage in bytes of the damage itself, which are then no text.
    """
    # The primary code is the lowest byte; the others tell apart what needs the same remedy.
    damaged = isinstance(error, UnicodeDecodeError)
    code = sqlite3.SQLITE_CORRUPT if damaged else getattr(error, "sqlite_errorcode", 0) & 0xFF
    kind, problem, remedy = _MEANINGS.get(code, _UNKNOWN)
    return kind(problem.format(path=path), remedy)
