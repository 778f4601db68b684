"""The gRPC and gRPC-web front ends of a server, and the private folder of the socket of gRPC.

A server holds a lock in its folder, which the kernel lets go of when the process ends, however it
ends. A folder whose lock is free belongs to a server that is gone. Only such folders of this user
are removed, and only if they have nothing in them but what a server makes there: its socket, its
lock, and sockets named by a number, which connections have for a moment. No link is followed:
others may write to the same place.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport.admission import Budget, UnreadError
from reconciler.service.transport.connections import ListenError
from reconciler.service.transport.grpc_intake import Inside, Intake, NewCalls
from reconciler.service.transport.grpc_server import GrpcServer
from reconciler.service.transport.grpc_web import GrpcWeb
from reconciler.service.transport.http_messages import Bodies
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.observer import Answer, Observer
from reconciler.service.transport.protobuf import SERVICES

PREFIX = "reconciler-"
SOCKET = "grpc"
LOCK = "reconciler-serve.lock"
MAX_SOCKET = 107 if sys.platform == "linux" else 103  # bytes that the path of a socket may have
_UNLOCKED = "lock.new"  # has the other name once it is locked, so that no lock is found free early


class FrontEnds(NamedTuple):
    """The two front ends, as ``listener.serve`` takes them.

    Attributes:
        inside: Where gRPC listens, and what its connections share.
        web_routes: gRPC-web, by the full name of each service.
        drain: Takes no more calls over gRPC, and finishes those in flight.
    """

    inside: Inside
    web_routes: Mapping[str, GrpcWeb]
    drain: Callable[[], Awaitable[None]]


@asynccontextmanager
async def grpc_front_ends(
    answer: Answer, observer: Observer, bodies: Bodies, limits: Limits
) -> AsyncIterator[FrontEnds]:
    """Answer gRPC on a private socket until the block ends.

    Raises:
        ListenError: there is nowhere to make that socket.
    """
    with private_folder() as folder:
        socket = folder / SOCKET
        new_calls = NewCalls(limits)
        watched = observer.watch(_at_once(answer), "grpc")
        server = GrpcServer(watched, Intake(bodies.admission, new_calls, limits), socket)
        web = GrpcWeb(observer.watch(answer, "grpc-web"), bodies)
        await server.start()

        try:
            inside = Inside(str(socket), Budget.of_grpc(limits), new_calls)
            yield FrontEnds(
                inside, dict.fromkeys(SERVICES, web), partial(server.drain, limits.drain_seconds)
            )
        finally:
            await server.stop()


def _at_once(answer: Answer) -> Answer:
    """Return what refuses a call that was not read without having it wait among the others."""

    async def answered(call: Incoming) -> Received:
        if isinstance(call.fields, UnreadError):
            return Received("", call.fields)
        return await answer(call)

    return answered


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a new folder that is for this user alone; remove it, and those of killed servers.

    Raises:
        ListenError: there is nowhere to make it, or its path is too long for a socket in it.
    """
    with ExitStack() as lock, ExitStack() as held:  # the lock is let go of last
        try:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX)))
            lock.callback(os.close, _locked(folder))
            _clear(folder.parent)
        except OSError as failure:
            raise ListenError(
                "there is no folder for temporary files, where gRPC could listen",
                "Name a writable one in TMPDIR, or mount one at /tmp.",
            ) from failure
        spare = MAX_SOCKET - len(os.fsencode(folder / SOCKET))
        if spare < 0:
            raise ListenError(
                "the folder for temporary files has too long a path for the socket of gRPC",
                f"Name one in TMPDIR whose path is at least {-spare} bytes shorter, such as /tmp.",
            )
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
