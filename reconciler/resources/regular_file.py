"""The one way to open a file by a name that a user or a repository chose: regular, without waiting.

Opening a named pipe waits for a process at its other end, and a device may never end. What is
checked is the open file, so that no other one can take its name in between.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import StrOrBytesPath, StrPath

_NEVER_WAITING = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# What the system answers for a pipe without a reader, a socket, or a device without its driver.
_NOT_REGULAR = {errno.ENXIO, errno.ENODEV, errno.EISDIR, errno.EOPNOTSUPP}


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
    mode: int = 0o600,
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
