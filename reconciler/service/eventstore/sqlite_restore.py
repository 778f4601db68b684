"""Putting a copy in the place of a store: all of it or nothing, and never of one in use."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from reconciler.service.eventstore.errors import StoreReadOnlyError, StoreUnusableError
from reconciler.service.eventstore.files import publish, publish_over, temporary_file
from reconciler.service.eventstore.sqlite_errors import store_errors
from reconciler.service.eventstore.sqlite_files import (
    connect_alone,
    connect_to_read,
    is_ours,
    recognise,
)


def replace(backup: Path, target: Path) -> Path | None:
    """Put a copy of a sound store in the place of another, or at a free place.

    Return the file that keeps the store before, beside it; None where there was none.

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
        with temporary_file(target) as unfinished:
            # A crash leaves one whole store: the copy is complete before the old file gets its
            # second name, and then takes its place in one step.
            _copy(backup, unfinished)
            _quiesce(target)
            kept = _keep(target)
            publish_over(unfinished, target)
            return kept
    except OSError as error:
        raise StoreReadOnlyError(
            f"{target} cannot be written: {error.strerror}",
            "Make the file and its folder writable for this user.",
        ) from error


def _keep(target: Path) -> Path | None:
    """Give a store a second name with the time in it, and take its log there, too.

    A log is left only beside a damaged store, or where the file itself was deleted; beside
    another store it would be replayed into it.
    """
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    kept = target.with_name(f"{target.name}.replaced-{moment}")
    was_there = target.exists()
    if was_there:
        publish(target, kept)
    log = target.with_name(target.name + "-wal")
    if log.exists():
        log.rename(kept.with_name(kept.name + "-wal"))
    # The index of the log, which SQLite makes anew.
    target.with_name(target.name + "-shm").unlink(missing_ok=True)
    return kept if was_there else None


def _copy(backup: Path, unfinished: Path) -> None:
    with (
        store_errors(backup),
        closing(connect_to_read(backup)) as source,
        closing(sqlite3.connect(unfinished)) as made,
    ):
        # Not a copy of the file: what is still in the log beside it belongs to the store.
        source.backup(made)


def _quiesce(target: Path) -> None:
    """Make sure that no process has a store open, and that no log is left beside it.

    A damaged one is left as it is: no process can be working with it.

    Raises:
        StoreBusyError: a process has it open.
    """
    if not target.exists():
        return
    with suppress(StoreUnusableError):
        recognise(target)
        with (
            store_errors(target),
            closing(connect_alone(target)) as held,
        ):
            # Leaving WAL writes the log into the file. It is refused while another connection is
            # open.
            held.execute("PRAGMA journal_mode = DELETE")
