"""The one writer of a service that has no leases: as far as this machine can tell.

The kernel holds the lock for as long as the process lives, so that a crash leaves nothing
locked. Other machines do not see it; their writes are noticed by the sequences of objects.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from reconciler.errors import LocalFileError, LockHeldError
from reconciler.service_client.holder import Holder, shown_holder

_MAX_HOLDER = 4096


class LocalLock:
    """A lock file per service, in a folder of ours."""

    def __init__(self, folder: Path, holder: Holder) -> None:
        self._folder = folder
        self._holder = holder
        self._descriptor = -1

    def acquire(self, instance: str) -> None:
        """Take the lock of a service.

        Raises:
            LockHeldError: another process here has it.
            LocalFileError: the file cannot be made.
        """
        if self._descriptor >= 0:
            return
        path = self._folder / f"lock-{instance}"
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o600)
        except OSError as failure:
            raise LocalFileError(
                f"cannot make the lock file {path}: {failure.strerror or failure}",
                remedy="Make its folder one this user may write to. Nothing was written.",
            ) from failure
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            error = _held(descriptor)
            os.close(descriptor)
            raise error from None
        with suppress(OSError):  # who holds it is told to others; the lock is the kernel's
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, self._holder.text.encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back, if it was taken."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _held(descriptor: int) -> LockHeldError:
    holder = os.pread(descriptor, _MAX_HOLDER, 0).decode("utf-8", "replace")
    since = datetime.fromtimestamp(os.fstat(descriptor).st_mtime, UTC)
    return LockHeldError(
        f"the service is locked by {shown_holder(holder)} since {since:%Y-%m-%dT%H:%M:%SZ}",
        remedy="Wait until it is done, or give --lock-timeout to wait for it.",
    )
