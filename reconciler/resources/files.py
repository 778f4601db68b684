"""Files: opened without waiting, and written for their owner alone, whole and onto the disk.

Opening a named pipe waits for a process at its other end, and a device may never end. What is
checked is the open file, so that no other one can take its name in between.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.resources.installation import STATE_FOLDER

if TYPE_CHECKING:
    from _typeshed import StrOrBytesPath, StrPath

_NEVER_WAITING = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# What the system answers for a pipe without a reader, a socket, or a device without its driver.
_NOT_REGULAR = {errno.ENXIO, errno.ENODEV, errno.EISDIR, errno.EOPNOTSUPP}
_OWNER_ONLY = 0o600
_READ_BY_ALL = 0o644
_RANDOM = 8  # bytes in the name of a temporary file


_GIVEN = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,9})", re.ASCII)


def is_given_pipe(path: StrPath) -> bool:
    """Return whether a path is of a pipe that this process was given open, as by ``<(...)``.

    Opening it waits for nothing; it can be read once.
    """
    given = _GIVEN.fullmatch(os.fspath(path))
    try:
        return given is not None and stat.S_ISFIFO(os.fstat(int(given[1])).st_mode)
    except OSError:
        return False


class NotRegularError(OSError):
    """The name is that of a folder, a pipe, a socket or a device."""

    def __init__(self, path: StrOrBytesPath) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", path)


def open_regular(
    path: StrOrBytesPath,
    flags: int = os.O_RDONLY,
    *,
    mode: int = _OWNER_ONLY,
    folder: int | None = None,
) -> int:
    """Return the descriptor of a regular file, in an open folder or by its path.

    ``mode`` is that of a file that ``flags`` let it make. Nothing but a regular file is emptied.

    Raises:
        NotRegularError: something else has the name.
        OSError: it cannot be opened.
    """
    try:
        descriptor = os.open(path, flags & ~os.O_TRUNC | _NEVER_WAITING, mode, dir_fd=folder)
    except OSError as failure:
        if failure.errno in _NOT_REGULAR:
            raise NotRegularError(path) from failure
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegularError(path)
    if flags & os.O_TRUNC:
        os.ftruncate(descriptor, 0)
    return descriptor


def read_start(path: Path, limit: int, flags: int = 0) -> tuple[bytes, os.stat_result]:
    """Return the first ``limit`` bytes of a regular file, and the status of the file that was read.

    Raises:
        OSError: it cannot be opened or read, or is not a regular file.
    """
    with os.fdopen(open_regular(path, os.O_RDONLY | flags), "rb") as file:
        return file.read(limit), os.fstat(file.fileno())


def is_open_to_others(status: os.stat_result) -> bool:
    """Return whether others than the owner may read or write a file or folder."""
    return bool(status.st_mode & 0o077)


def open_locked(path: StrPath, flags: int, folder: int | None = None) -> int:
    """Return the descriptor of a file that this process alone has locked. No link is followed.

    The kernel releases the lock with its process, however that ends.

    Raises:
        BlockingIOError: another process has it locked.
        OSError: it cannot be opened or locked, or is not a regular file.
    """
    descriptor = open_regular(path, flags | os.O_NOFOLLOW, folder=folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_folder(folder: Path) -> bool:
    """Make a folder and those above it, for its owner alone; return whether it was missing.

    Our own state folder is kept out of Git, also one that a container's mount has made.

    Raises:
        OSError: it cannot be made.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        sync(path.parent)
    for path in (folder, *folder.parents):
        # In a folder of another user, only a folder in it may be ours.
        if path.name == STATE_FOLDER and os.access(path, os.W_OK):
            keep_out_of_git(path)
    return bool(missing)


def keep_out_of_git(folder: Path) -> None:
    """Let Git ignore everything in a folder that does not say itself what it ignores."""
    ignored = folder / ".gitignore"
    if os.path.lexists(ignored):
        return
    with temporary_file(ignored) as (unfinished, descriptor):
        os.fchmod(descriptor, _READ_BY_ALL)  # Git may run as another user
        write_whole(descriptor, b"*\n")
        publish_over(unfinished, ignored)


def sync(path: Path) -> None:
    """Make what a file holds, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def new_private(path: Path) -> int:
    """Return the descriptor of a new file for its owner alone, whatever the umask is.

    Raises:
        FileExistsError: something has the name already; a link is not followed.
        OSError: it cannot be made.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    os.fchmod(descriptor, _OWNER_ONLY)
    return descriptor


def write_whole(descriptor: int, content: bytes) -> None:
    """Write all of some content into an open file.

    Raises:
        OSError: there is no room for it.
    """
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


@contextmanager
def temporary_file(target: Path) -> Iterator[tuple[Path, int]]:
    """Yield a new empty file in the target's folder, by path and open; remove what is left of it.

    So is what killed processes left of theirs. One that a process is still writing is locked.

    Raises:
        OSError: the folder cannot be written to.
    """
    for left in _left_behind(target):
        with suppress(OSError):  # of another user
            _remove_with_logs(left)
    path, descriptor = _new_locked(target)
    try:
        yield path, descriptor
    finally:
        os.close(descriptor)
        _remove_with_logs(path)


def _new_locked(target: Path) -> tuple[Path, int]:
    while True:
        path = target.parent / f".{target.name}.{os.urandom(_RANDOM).hex()}"
        descriptor = new_private(path)
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
            descriptor = open_locked(path, os.O_RDONLY)
            try:
                yield path
            finally:
                os.close(descriptor)


def _remove_with_logs(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):  # SQLite has these beside a store
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()


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


def write_private(
    target: Path, content: bytes, put: Callable[[Path, Path], None] = publish_over
) -> None:
    """Write a file for its owner alone, whole or not at all; then it is on the disk.

    Raises:
        OSError: it cannot be written; a file of the same name is as it was or new.
    """
    with temporary_file(target) as (unfinished, descriptor):
        write_whole(descriptor, content)
        put(unfinished, target)


_UNFINISHED = re.compile(rf"\.reconciler-[0-9a-f]{{{2 * _RANDOM}}}\.tmp", re.ASCII)


def replace_in(folder: int, name: str, content: bytes, *, is_new: bool = False) -> None:
    """Put content in the place of a file in an open folder, durably and in one step.

    The file keeps who may read and write it. One that ``is_new`` takes no name that is taken. What
    killed processes left unfinished in the folder is removed.

    Raises:
        FileExistsError: the name of a new file is taken.
        OSError: it cannot be written; the file is as it was or new.
    """
    for left in filter(_UNFINISHED.fullmatch, os.listdir(folder)):
        with suppress(OSError):  # another process writes it, or it is of another user
            descriptor = open_locked(left, os.O_RDONLY, folder)
            try:
                os.unlink(left, dir_fd=folder)
            finally:
                os.close(descriptor)
    unfinished = f".reconciler-{os.urandom(_RANDOM).hex()}.tmp"
    mode = 0o666 if is_new else stat.S_IMODE(os.stat(name, dir_fd=folder).st_mode)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = open_regular(unfinished, flags, mode=mode, folder=folder)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if not is_new:
            os.fchmod(descriptor, mode)
        write_whole(descriptor, content)
        os.fsync(descriptor)
        if is_new:
            os.link(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        else:
            os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        os.close(descriptor)
        with suppress(FileNotFoundError):
            os.unlink(unfinished, dir_fd=folder)


def remove_in(folder: int, name: str) -> None:
    """Remove a file from an open folder, durably.

    Raises:
        OSError: it cannot be removed.
    """
    os.unlink(name, dir_fd=folder)
    os.fsync(folder)
