"""Lock holders, and the lock file of services that have no leases.

A lock is kept with the identity of its process: enough to tell a person which process holds it,
and to see that a process of this machine has died.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from reconciler.errors import LocalFileError, LockHeldError, ReconcilerError
from reconciler.service_client.wire import WireRefusal, service_error


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process that may hold a lock.

    Attributes:
        started: When the process began, in the kernel's own count, so that a process id that
            was given out again is not taken for it.
        boot: Id of this run of the machine; a process of an earlier run is dead.
        namespace: Where the process id counts; a container does not see those of another one.
    """

    user: str
    host: str
    boot: str
    process: int
    started: str
    namespace: str

    @property
    def text(self) -> str:
        """Return the form in which a holder is kept with the lock."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    def knows_dead(self, text: str) -> bool:
        """Return whether another holder was a process of this machine and is certainly gone."""
        other = _read(text)
        if other is None or other.host != self.host:
            return False
        # Process ids are only comparable within one boot and one namespace of the same machine.
        if other.boot != self.boot:
            return True
        return other.namespace == self.namespace and _is_gone(other)


def this_process() -> ProcessIdentity:
    """Return this process as a holder."""
    process = os.getpid()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return ProcessIdentity(
        user, socket.gethostname(), _boot(), process, _started(process) or "", _namespace()
    )


def holder_in_words(text: str) -> str:
    """Return a holder in words."""
    holder = _read(text)
    if holder is None:
        return text
    return f"{holder.user} on {holder.host} (process {holder.process})"


def lock_error(name: str, refusal: WireRefusal) -> ReconcilerError:
    """Return the error of a lease that was refused, with the run that holds it if that is told."""
    holder = refusal.details.get("holder")
    if not holder:
        return service_error(refusal)
    return LockHeldError(
        f"organization {name} is locked by {holder_in_words(holder)} "
        f"since {refusal.details.get('acquiredAt', 'an unknown time')}",
        remedy="Wait until it is done, or give --lock-timeout to wait for it.",
    )


def _read(text: str) -> ProcessIdentity | None:
    try:
        fields = json.loads(text)
        holder = ProcessIdentity(**fields)
    except (ValueError, TypeError, RecursionError):
        return None
    texts = (holder.user, holder.host, holder.boot, holder.started, holder.namespace)
    if not all(isinstance(each, str) for each in texts):
        return None
    is_process = type(holder.process) is int and 0 < holder.process < _PROCESSES
    return holder if is_process else None


_PROCESSES = 2**31  # more ids than the kernel gives


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _is_gone(other: ProcessIdentity) -> bool:
    started = _started(other.process)
    if started is not None:
        return started != other.started
    try:
        os.kill(other.process, 0)  # asks whether there is such a process, and does nothing to it
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _started(process: int) -> str | None:
    """Return when a process began: empty for one that has ended, None where nothing tells."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name of the program, in parentheses, may hold spaces and parentheses itself. Of what comes
    # after it, the 1st field is the state (Z: ended, not yet waited for), the 20th the start time.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


_MAX_HOLDER = 4096  # bytes


class LocalLock:
    """A lock file per service, in a folder of ours."""

    def __init__(self, folder: Path, holder: ProcessIdentity) -> None:
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
        f"the service is locked by {holder_in_words(holder)} since {since:%Y-%m-%dT%H:%M:%SZ}",
        remedy="Wait until it is done, or give --lock-timeout to wait for it.",
    )
