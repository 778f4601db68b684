"""The place of an open SQLite store: its path must go on naming the files that are open.

A file that is deleted, moved or replaced stays open, and takes commits that no later start will
find. The path, its log and the index of the log are therefore compared with what was opened,
before a transaction, before it is acknowledged, and now and then before a view.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from reconciler.service.eventstore.errors import StoreMovedError

LOG = "-wal"
INDEX = "-shm"

VIEWED_FOR = 0.05  # seconds for which a view needs no look at the files: it promises nothing

File = tuple[int, int]  # device and inode


class Place:
    """The files that a store has opened, by device and inode."""

    def __init__(self, path: Path) -> None:
        """Remember the files of a store that was opened just now, its log included.

        Raises:
            StoreMovedError: they are gone already.
        """
        real = os.path.realpath(path)  # SQLite keeps the log beside the file, not beside a link
        self._path = path
        self._names = (os.fspath(path), real + LOG, real + INDEX)
        self._checked = 0.0
        self._opened = self._found()

    def check(self) -> None:
        """Compare the files of these names with those that are open: three system calls.

        Raises:
            StoreMovedError: one is gone, or another one.
        """
        now = time.monotonic()
        self._checked = 0.0  # until they are found as they were, every view looks
        if self._found() != self._opened:
            raise self._moved()
        self._checked = now

    def check_to_view(self) -> None:
        """Compare the files, unless that was done just now: views are many, and cheap.

        Raises:
            StoreMovedError: one is gone, or another one.
        """
        if time.monotonic() - self._checked > VIEWED_FOR:
            self.check()

    def _found(self) -> list[File]:
        try:
            return [(found.st_dev, found.st_ino) for found in map(os.stat, self._names)]
        except OSError as error:
            raise self._moved() from error

    def _moved(self) -> StoreMovedError:
        return StoreMovedError(
            f"{self._path}, or its {LOG} or {INDEX} file, was deleted, moved or replaced while the"
            " store was in use",
            "Put the file back under its name: it is used again at once. To go on with another"
            " file or a backup, restart what uses the store. A write that was under way may be in"
            " the file that was taken away.",
        )
