"""Putting a copy in the place of a store: all of it or nothing, and never under somebody."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from reconciler.service.eventstore.errors import StoreReadOnlyError, StoreUnusableError
from reconciler.service.eventstore.files import beside, take_over
from reconciler.service.eventstore.sqlite_errors import in_words
from reconciler.service.eventstore.sqlite_files import connect_to_read, is_ours, recognise


def replace(backup: Path, target: Path) -> None:
    """Put a copy of a sound store in the place of another, or where there is none.

    Raises:
        StoreError: the target is in use, is not a store of ours, or cannot be written. It was
            not touched.
    """
    if target.exists() and not is_ours(target):
        raise StoreUnusableError(
            f"{target} is not a store of the identity service",
            "Name another file. This one was left as it is.",
        )
    try:
        with beside(target) as unfinished:
            _copy(backup, unfinished)
            _quiesce(target)
            for suffix in ("-wal", "-shm"):
                target.with_name(target.name + suffix).unlink(missing_ok=True)
            take_over(unfinished, target)
    except OSError as error:
        raise StoreReadOnlyError(
            f"{target} cannot be written: {error.strerror}",
            "Make the file and its folder writable for this user.",
        ) from error


def _copy(backup: Path, unfinished: Path) -> None:
    with (
        in_words(backup),
        closing(connect_to_read(backup)) as source,
        closing(sqlite3.connect(unfinished)) as made,
    ):
        source.backup(made)


def _quiesce(target: Path) -> None:
    """Make sure that nobody has a store open, and that no log is left beside it.

    A damaged one is let go as it is: nobody can be working with it.

    Raises:
        StoreBusyError: somebody has it open.
    """
    if not target.exists():
        return
    with suppress(StoreUnusableError):
        recognise(target)
        with (
            in_words(target),
            closing(sqlite3.connect(target, timeout=1, isolation_level=None)) as held,
        ):
            held.execute("PRAGMA journal_mode = DELETE")
