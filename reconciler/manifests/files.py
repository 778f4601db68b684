"""Files: opening them safely, and finding the Git root and the configuration of a folder.

Nothing is opened through a symbolic link, waited for, or read without a limit. What is checked and
what is read is the same open file, so nothing can be swapped in between.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path

from reconciler.errors import UsageError
from reconciler.resources.files import NotRegularError, open_regular

_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY


class Reason(StrEnum):
    """Reason why a file or folder cannot be read."""

    SYMLINK = "is a symbolic link"
    MISSING = "does not exist"
    NOT_REGULAR = "is not a regular file"
    NOT_A_FOLDER = "is not a folder"
    TOO_LARGE = "is too large"
    TOO_DEEP = "is too deep"
    UNREADABLE = "cannot be read"


class OpeningError(Exception):
    """A file or folder cannot be read; ``detail`` is what the system says, or empty."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason} ({detail})" if detail else reason)
        self.reason = reason


def read_file(name: str, folder: int, limit: int) -> bytes:
    """Return the bytes of a regular file in an open folder.

    Raises:
        OpeningError: it cannot be read, is no regular file, or is larger than the limit.
    """
    try:
        handle = open_regular(name, os.O_RDONLY | os.O_NOFOLLOW, folder=folder)
        try:
            return _read_regular(handle, limit)
        finally:
            os.close(handle)
    except (OSError, ValueError) as fault:
        raise _opening_error(fault, name, folder) from None


def read_path(path: str, limit: int) -> bytes:
    """Return the bytes of a regular file. Folders on the way to it may be links.

    Raises:
        OpeningError: it cannot be read, is no regular file, or is larger than the limit.
    """
    folder, name = os.path.split(path)
    with open_folder(folder or ".", follow=True) as handle:
        return read_file(name, handle, limit)


def _read_regular(handle: int, limit: int) -> bytes:
    size = os.fstat(handle).st_size
    if size > limit:
        raise OpeningError(Reason.TOO_LARGE, f"{size} bytes, at most {limit} are read")
    data = os.read(handle, size + 1)
    return data if len(data) == size else _read_on(handle, data, limit)


def _read_on(handle: int, data: bytes, limit: int) -> bytes:
    """Read a file whose size is not what the system said: it is being written, or made up."""
    while more := os.read(handle, limit + 1 - len(data)):
        data += more
        if len(data) > limit:
            raise OpeningError(Reason.TOO_LARGE, f"at most {limit} bytes are read")
    return data


@contextmanager
def open_folder(name: str, parent: int | None = None, *, follow: bool = False) -> Iterator[int]:
    """Open a folder, in another open one or by its path.

    Raises:
        OpeningError: it is no folder, or cannot be read.
    """
    try:
        handle = os.open(name, _FOLDER & ~os.O_NOFOLLOW if follow else _FOLDER, dir_fd=parent)
    except (OSError, ValueError) as fault:
        raise _opening_error(fault, name, parent) from None
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def folder_beneath(top: str | Path, parts: Sequence[str]) -> Iterator[int]:
    """Open a folder by its way from another one; no link on that way is followed.

    Raises:
        OpeningError: there is no such folder, or it cannot be read.
    """
    with ExitStack() as handles:
        folder = handles.enter_context(open_folder(str(top), follow=True))
        for part in parts:
            folder = handles.enter_context(open_folder(part, folder))
        yield folder


def is_read_only(name: str, folder: int) -> bool:
    """Return whether a file in an open folder is not to be written, not even by root."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return not status.st_mode & 0o222 or not os.access(name, os.W_OK, dir_fd=folder)


def _opening_error(fault: Exception, name: str, parent: int | None) -> OpeningError:
    if not isinstance(fault, OSError):
        return OpeningError(Reason.MISSING)  # a NUL, or a character no file name can have
    if fault.errno == errno.ENOENT:
        return OpeningError(Reason.MISSING)
    if fault.errno in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}:
        return OpeningError(Reason.SYMLINK if _is_symlink(name, parent) else Reason.NOT_A_FOLDER)
    if isinstance(fault, NotRegularError):
        return OpeningError(Reason.NOT_REGULAR)
    return OpeningError(Reason.UNREADABLE, fault.strerror or "")


def _is_symlink(name: str, parent: int | None) -> bool:
    """Return whether a name is a symbolic link, for words only: what is read is never asked so."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return False


def git_root(path: Path) -> Path | None:
    """Return the nearest folder at or above a path that is of Git, or None."""
    return next((top for top in (path, *path.parents) if _holds_anything(top / ".git")), None)


def _holds_anything(path: Path) -> bool:
    """Return whether a folder or file is there and not empty; one that cannot be read counts.

    So does a link that leads nowhere: what is above it may belong to another user.
    """
    try:
        with os.scandir(path) as listing:
            return any(True for _ in listing)
    except NotADirectoryError:
        return path.is_file() and path.stat().st_size > 0
    except FileNotFoundError:
        return path.is_symlink()
    except OSError:
        return True


def leads_out(path: Path, top: Path) -> bool:
    """Return whether a path, links followed, is outside of a repository or in its ``.git``."""
    real = Path(os.path.realpath(path))
    return not real.is_relative_to(top) or ".git" in real.relative_to(top).parts


CONFIGURATION_FILE = "reconciler.yaml"
MISNAMED_CONFIGURATION = "reconciler.yml"
DEFAULT_PATHS = ("manifests",)
"""PATHS of a command that is given none, without a configuration."""


def find_configuration(start: Path, name: str = CONFIGURATION_FILE) -> Path | None:
    """Return the nearest ``reconciler.yaml`` at or above a folder, or None.

    The search ends at the Git root. Without Git only the folder itself is looked at: what lies
    above it may belong to another user.
    """
    top = git_root(start)
    folders = [start] if top is None else [start, *start.parents]
    for folder in folders:
        if os.path.lexists(folder / name):
            return folder / name
        if folder == top:
            break
    return None


def configuration_here() -> str:
    """Return the path of the configuration from the current folder, or nothing.

    Raises:
        UsageError: a file nearby has nearly its name; without it another service would be meant.
    """
    try:
        here = Path.cwd()
    except OSError:
        return ""  # the current folder is gone
    path, other = find_configuration(here), find_configuration(here, MISNAMED_CONFIGURATION)
    if other and (path is None or path.parent in other.parent.parents):
        raise UsageError(
            f"{os.path.relpath(other, here)} is not read: its name is not {CONFIGURATION_FILE}",
            remedy=f"Rename it to {CONFIGURATION_FILE}, or move it elsewhere.",
        )
    return os.path.relpath(path, here) if path else ""
