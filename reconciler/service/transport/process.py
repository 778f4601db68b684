"""A server's process: the signals that end it, and its folder among the temporary files.

A server holds a lock in its folder, which the kernel lets go of when the process ends, however it
ends. A folder whose lock is free belongs to a server that is gone. Only such folders of this user
are removed, and only if they have nothing in them but what a server makes there: its socket, its
lock, and sockets named by a number, which connections have for a moment. No link is followed:
others may write to the same place.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Timer

PREFIX = "reconciler-"
SOCKET = "grpc"
LOCK = "reconciler-serve.lock"
_UNLOCKED = "lock.new"  # has the other name once it is locked, so that no lock is found free early
AT_ONCE_SECONDS = 1.0  # after the second signal; nothing that was acknowledged can be lost

Folder = tempfile.TemporaryDirectory[str]


class ListenError(Exception):
    """A server that cannot listen as it was told: what is wrong, and what to do about it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def on_signals(stop: Callable[[], None]) -> None:
    """End a server by the signals that end a process; a second one ends the process itself."""
    loop = asyncio.get_running_loop()
    heard: list[int] = []

    def hear(number: int) -> None:
        stop()
        if heard:
            leaving = Timer(AT_ONCE_SECONDS, os._exit, (128 + number,))
            leaving.daemon = True
            leaving.start()
        heard.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, hear, number)


@contextmanager
def private_folder(
    make: Callable[..., Folder] = tempfile.TemporaryDirectory,
) -> Iterator[Path]:
    """Yield a new folder that is for this user alone; remove it, and those of killed servers.

    Raises:
        ListenError: there is nowhere to make it.
    """
    with ExitStack() as lock, ExitStack() as held:  # the lock is let go of last
        try:
            folder = Path(held.enter_context(make(prefix=PREFIX)))
            lock.callback(os.close, _locked(folder))
            _clear(folder.parent)
        except OSError as failure:
            raise ListenError(
                "there is no folder for temporary files, where gRPC could listen",
                "Name a writable one in TMPDIR, or mount one at /tmp.",
            ) from failure
        yield folder


def _locked(folder: Path) -> int:
    """Return the descriptor that holds the lock of a new folder."""
    lock = os.open(folder / _UNLOCKED, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (folder / _UNLOCKED).rename(folder / LOCK)
    return lock


def _clear(top: Path) -> None:
    """Remove the folders of servers that are gone; what cannot be looked at is left."""
    with suppress(OSError), _opened(os.open(top, os.O_RDONLY | os.O_DIRECTORY)) as within:
        for name in _names_in(within):
            if name.startswith(PREFIX):
                with suppress(OSError):
                    _clear_one(name, within)


def _clear_one(name: str, within: int) -> None:
    with _opened(_open_in(within, name, os.O_DIRECTORY)) as folder:
        if os.fstat(folder).st_uid != os.geteuid():
            return
        with _opened(_open_in(folder, LOCK)) as lock:
            if not stat.S_ISREG(os.fstat(lock).st_mode):
                return
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while its server lives
            # Listed under the lock: a server that lived until now may have made one more socket.
            names = _names_in(folder)
            if not all(_is_of_server(each, folder) for each in names):
                return
            for each in names - {LOCK}:
                os.unlink(each, dir_fd=folder)
            os.unlink(LOCK, dir_fd=folder)
    os.rmdir(name, dir_fd=within)  # refused where there is more in it by now


def _is_of_server(name: str, folder: int) -> bool:
    """Return whether a name in an open folder is one that a server makes there."""
    if name in {SOCKET, LOCK}:
        return True
    is_number = name.isascii() and name.isdigit()  # see ``connected``
    return is_number and stat.S_ISSOCK(os.lstat(name, dir_fd=folder).st_mode)


def _names_in(folder: int) -> set[str]:
    with os.scandir(folder) as found:
        return {each.name for each in found}


def _open_in(folder: int, name: str, how: int = 0) -> int:
    """Open a name in an open folder, never what a link there leads to, and never wait."""
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | how, dir_fd=folder)


@contextmanager
def _opened(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def connected(address: str, name: str) -> socket.socket:
    """Return a connection to a unix socket that has a name of its own in the same folder.

    The gRPC server tells the name with each call. The file of the name is not needed once the
    socket has it.

    Raises:
        OSError: nothing listens at the address.
    """
    joining = socket.socket(socket.AF_UNIX)
    try:
        joining.settimeout(0)
        path = Path(address).with_name(name)
        joining.bind(str(path))
        path.unlink()
        await asyncio.get_running_loop().sock_connect(joining, address)
    except BaseException:
        joining.close()
        raise
    return joining
