"""The store in one SQLite file: write-ahead log, every commit synced, one writer at a time."""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reconciler.resources.files import publish, temporary_file
from reconciler.resources.process import crashpoint
from reconciler.service.eventstore import sqlite_files as files
from reconciler.service.eventstore.errors import (
    StoreBusyError,
    StoreError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import NO_LOOKUPS, Lookups
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.eventstore.sqlite_files import INDEX, LOG, store_errors
from reconciler.service.eventstore.sqlite_tables import (
    DIALECT,
    SET_META,
    SqliteTransaction,
)
from reconciler.service.eventstore.sweeps import Sweeps
from reconciler.service.eventstore.writers import WRITERS, WRITERS_VERSION, require_current

NEVER = -math.inf  # before any time of the monotonic clock, which may begin near 0 at boot
READERS_KEPT = 8  # each costs memory and open files
VIEWED_FOR = 0.05  # seconds for which a view needs no look at the files: it promises nothing


class _OpenStore(EventStore):
    """A store file and a connection to it, for what needs no transaction."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.place = str(path)
        self._path = path
        self._connection = connection

    def damage(self) -> Sequence[str]:
        try:
            with store_errors(self._path):
                found = [
                    str(line) for (line,) in self._connection.execute("PRAGMA integrity_check")
                ]
                found += [
                    f"a row of {row[0]} refers to nothing"
                    for row in self._connection.execute("PRAGMA foreign_key_check")
                ]
        except StoreError as error:
            return [error.problem]
        return [line for line in found if line != "ok"]

    def backup(self, target: Path) -> None:
        try:
            with temporary_file(target) as (unfinished, _):
                files.copy_into(unfinished, self._path, self._connection)
                publish(unfinished, target)
        except FileExistsError as error:
            raise StoreError(f"{target} exists", "Name a file that does not.") from error
        except OSError as error:
            raise StoreReadOnlyError(
                f"{target} cannot be written: {error.strerror}",
                "Name a file in a folder that this user may write to.",
            ) from error


class SqliteEventStore(_OpenStore):
    """A thread-safe ``EventStore`` over a file."""

    def __init__(self, path: Path, now: Callable[[], int], writers: int = WRITERS_VERSION) -> None:
        """Open a store that exists, as a program of some version of the writers.

        Raises:
            StoreError: the file is no sound store, or cannot be used.
        """
        files.recognise(path)
        # SQLite opens a file that may not be written to read it alone, and says so at a write.
        self._is_writable = os.access(path, os.W_OK)
        super().__init__(path, files.connect(path))
        self._now = now
        self._sweeps = Sweeps()
        self._writers = writers
        self._lock = threading.Lock()
        with files.closed_on_failure(self._connection):
            self._watched = WatchedFiles(path)
        self._readers: list[sqlite3.Connection] = []

    @contextmanager
    def transaction(self, asked: Lookups = NO_LOOKUPS) -> Iterator[SqliteTransaction]:
        """Write. ``asked`` is not used: a look into a file costs no round trip.

        Raises:
            StoreUnreachableError: the path names another file; a commit that was under way may be
                in the one that is open.
        """
        # S1 to S8 are the points of a write at which the crash tests end the process.
        with self._lock, store_errors(self._path):
            self._watched.check()
            crashpoint("S1")
            # IMMEDIATE takes the write lock now. A transaction that began as a reader would fail at
            # its first write if another process had written since.
            self._connection.execute("BEGIN IMMEDIATE")
            crashpoint("S2")
            try:
                writing = SqliteTransaction(self._connection, self._now, self._sweeps)
                self._sign(writing)
                yield writing
                crashpoint("S7")
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            crashpoint("S8")
            # Nothing is acknowledged that went into a file that the path no longer names.
            self._watched.check()

    def _sign(self, writing: SqliteTransaction) -> None:
        """Let the store keep the version of this writer, unless it has it.

        Raises:
            StoreReadOnlyError: this writer is too old.
        """
        found = writing.meta(WRITERS)
        require_current(found, self._writers)
        if found != str(self._writers):
            self._connection.execute(SET_META, (WRITERS, str(self._writers)))

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Read the file that is open.

        Raises:
            StoreUnreachableError: the path names another file.
        """
        with store_errors(self._path):
            reader = self._reader()
            try:
                reader.execute("BEGIN")
                yield Snapshot(reader.cursor().execute, DIALECT)
            finally:
                if reader.in_transaction:
                    reader.execute("ROLLBACK")
                # A kept reader saves opening the file and reading the schema.
                if len(self._readers) < READERS_KEPT:
                    self._readers.append(reader)
                else:
                    reader.close()

    def _reader(self) -> sqlite3.Connection:
        self._watched.check_to_view()
        try:
            return self._readers.pop()
        except IndexError:
            return self._new_reader()

    def _new_reader(self) -> sqlite3.Connection:
        self._watched.check()
        reader = files.connect(self._path, files.READER_CACHE_KIB)
        with files.closed_on_failure(reader):
            self._watched.check()  # the path was opened again, and may name another file by now
        return reader

    def require_writable(self) -> None:
        """Check that the file may be written, and could be when it was opened.

        Raises:
            StoreReadOnlyError: it may not, or could not, such as on a disk mounted to be read.
            StoreUnreachableError: the path names another file.
        """
        self._watched.check()
        if not (self._is_writable and os.access(self._path, os.W_OK)):
            raise StoreReadOnlyError(
                f"{self._path} cannot be written to",
                "Make the file and its folder writable for this user, then restart the server.",
            )

    def bind(self, name: str, value: str) -> None:
        """Keep a fact about the store, in the place of one of its name.

        Raises:
            StoreError: the store cannot be written to.
        """
        with self.transaction():
            self._connection.execute(SET_META, (name, value))

    def close(self) -> None:
        with store_errors(self._path):
            while self._readers:
                self._readers.pop().close()
            self._connection.close()


class SqliteReadOnlyStore(_OpenStore):
    """A store that is only looked at. No file is made, and none changed."""

    def __init__(self, path: Path) -> None:
        """Open a store that exists.

        Raises:
            StoreError: the file is no sound store, or cannot be read.
        """
        files.recognise(path)
        self._fingerprint = files.fingerprint(path)
        super().__init__(path, files.connect_to_read(path))

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Read a file that others may write to.

        Raises:
            StoreBusyError: a writer began meanwhile; what was read may be torn.
        """
        with store_errors(self._path):
            self._reopen_if_written()
            self._connection.execute("BEGIN")
            try:
                yield Snapshot(self._connection.cursor().execute, DIALECT)
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            if not self._fingerprint[-1] and files.fingerprint(self._path) != self._fingerprint:
                raise StoreBusyError(
                    f"{self._path} was written to while it was read", "Run the command again."
                )

    def _reopen_if_written(self) -> None:
        """Open the file anew if it was written to since."""
        found = files.fingerprint(self._path)
        if found != self._fingerprint:
            self._connection.close()
            files.recognise(self._path)
            self._connection = files.connect_to_read(self._path)
            self._fingerprint = found

    def close(self) -> None:
        self._connection.close()


class WatchedFiles:
    """The files that a store has opened, by device and inode.

    A file that is deleted, moved or replaced stays open, and takes commits that no later start
    will find. So the store, its log and the index of the log are compared with what was opened:
    before a transaction, before it is acknowledged, and now and then before a view.
    """

    def __init__(self, path: Path) -> None:
        """Remember the files of a store that was opened just now, its log included.

        Raises:
            StoreUnreachableError: they are gone already.
        """
        real = os.path.realpath(path)  # SQLite keeps the log beside the file, not beside a link
        self._path = path
        self._names = (os.fspath(path), real + LOG, real + INDEX)
        self._checked = NEVER
        self._opened = self._found()

    def check(self) -> None:
        """Compare the files of these names with those that are open: three system calls.

        Raises:
            StoreUnreachableError: one is gone, or another one.
        """
        now = time.monotonic()
        self._checked = NEVER  # until they are found as they were, every view looks
        if self._found() != self._opened:
            raise self._moved()
        self._checked = now

    def check_to_view(self) -> None:
        """Compare the files, unless that was done just now: views are many, and cheap.

        Raises:
            StoreUnreachableError: one is gone, or another one.
        """
        if time.monotonic() - self._checked > VIEWED_FOR:
            self.check()

    def _found(self) -> list[tuple[int, int]]:
        try:
            return [(found.st_dev, found.st_ino) for found in map(os.stat, self._names)]
        except OSError as error:
            raise self._moved() from error

    def _moved(self) -> StoreUnreachableError:
        return StoreUnreachableError(
            f"{self._path}, or its {LOG} or {INDEX} file, was deleted, moved or replaced while the"
            " store was in use",
            "Put the file back under its name: it is used again at once. To go on with another"
            " file or a backup, restart what uses the store. A write that was under way may be in"
            " the file that was taken away.",
        )
