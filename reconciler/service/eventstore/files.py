"""Files that appear whole or not at all, and stay."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reconciler.resources.regular_file import open_regular
from reconciler.service.eventstore.errors import StoreUnusableError

OWNER_ONLY = 0o600
_RANDOM = 8  # bytes in the name of a temporary file


def is_there(path: Path) -> bool:
    """Return whether a store has its file, sound or not.

    Raises:
        StoreUnusableError: it is not known, such as in a folder that only another user may enter.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise unopened(path, error) from error
    return True


def unopened(path: Path, error: OSError) -> StoreUnusableError:
    """Return the error of a store whose file this user cannot open."""
    return StoreUnusableError(
        f"{path} cannot be opened: {error.strerror}",
        "Check that it is a file, and that this user may read it.",
    )


@contextmanager
def temporary_file(target: Path) -> Iterator[Path]:
    """Yield the path of a new empty file in the target's folder; remove what is left of it.

    So is what killed processes left of theirs. One that a process is still writing is locked.

    Raises:
        OSError: the folder cannot be written to.
    """
    for left in _left_behind(target):
        with suppress(OSError):  # of another user
            _remove_with_logs(left)
    path, descriptor = _new_locked(target)
    try:
        yield path
    finally:
        os.close(descriptor)
        _remove_with_logs(path)


def _new_locked(target: Path) -> tuple[Path, int]:
    while True:
        path = target.with_name(f".{target.name}.{os.urandom(_RANDOM).hex()}")
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, OWNER_ONLY)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Before it was locked another process may have taken it for one that was left behind.
        if path.exists():
            return path, descriptor
        os.close(descriptor)


def _left_behind(target: Path) -> Iterator[Path]:
    """Yield the temporary files of a target that no process is writing, each locked meanwhile."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{{2 * _RANDOM}}}", re.ASCII)
    try:
        found = [each for each in target.parent.iterdir() if name.fullmatch(each.name)]
    except OSError:
        return
    for path in found:
        with suppress(OSError):  # it is locked, of another user, or no file
            descriptor = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield path
            finally:
                os.close(descriptor)


def _remove_with_logs(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()


def sync(path: Path) -> None:
    """Make what a file holds survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def publish(finished: Path, target: Path) -> None:
    """Give a finished file its name, durably.

    Raises:
        FileExistsError: something has the name already; it is left as it is.
    """
    sync(finished)
    # A link, unlike a rename, fails where the name is taken: of two writers one wins, and knows it.
    os.link(finished, target)
    sync(target.parent)


def publish_over(finished: Path, target: Path) -> None:
    """Put a finished file in the place of another, durably and in one step."""
    sync(finished)
    finished.replace(target)
    sync(target.parent)  # the name is in the folder, and is lost in a power cut if that is not
