"""Reading on a second core: a child process reads the later files while this one reads the others.

Parsing is half the work of judging a large tree, and needs nothing but a text. The child is a fork,
so it has the texts already, and sends plain values back. Whatever becomes of it, nothing is lost:
what it does not send is read here.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from typing import TYPE_CHECKING

from reconciler.manifests.manifest import SourceFile
from reconciler.manifests.yaml_source import Trace

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

MIN_CHARACTERS = 1024 * 1024  # parsing them takes ten times as long as starting a process


def read_all(files: Sequence[SourceFile]) -> Generator[Trace, None, None]:
    """Yield what is in each of some files, as it reads itself (``SourceFile.read``).

    A child reads the later ones meanwhile, where that is possible and saves time. It ends with the
    iterator at the latest.
    """
    sent: list[Trace] = []
    later = _later(files) if _has_free_core() else ()
    started = _start(later) if later else None
    try:
        yield from (file.read() for file in files[: len(files) - len(later)])
        if started is not None:
            with suppress(EOFError, OSError):  # the child ended without a result
                sent = started[1].recv()
        yield from sent
        yield from (file.read() for file in later[len(sent) :])
    finally:
        if started is not None:
            _end(*started)


def _start(files: Sequence[SourceFile]) -> tuple[BaseProcess, Connection] | None:
    """Start a child that reads files; None where the system refuses a process."""
    import multiprocessing  # takes time that a small tree need not spend

    fork = multiprocessing.get_context("fork")
    try:
        receiving, sending = fork.Pipe(duplex=False)
    except OSError:
        return None
    child = fork.Process(target=_read, args=(files, receiving, sending))
    try:
        with sending, _signals_held():
            child.start()
    except BaseException as failure:  # a signal that was held back is one, too
        _end(child, receiving)
        if isinstance(failure, OSError):
            return None
        raise
    return child, receiving


def _end(child: BaseProcess, connection: Connection) -> None:
    """End a child, if it was started, and the connection to it."""
    connection.close()
    if child.pid is not None:
        child.kill()
        child.join()


def _has_free_core() -> bool:
    """Return whether a fork is safe here, and has a core of its own to run on.

    A fork copies locks that another thread may hold. Only Linux reports the cores of a process.
    """
    return (
        sys.platform == "linux"
        and len(os.sched_getaffinity(0)) > 1
        and threading.active_count() == 1
    )


def _later(files: Sequence[SourceFile]) -> Sequence[SourceFile]:
    """Return half of the text, the later files; none where reading takes no time anyway."""
    ends = [*accumulate(len(file.text) for file in files)]
    if not ends or ends[-1] < MIN_CHARACTERS:
        return ()
    first_half = sum(end <= ends[-1] / 2 for end in ends)
    return files[max(first_half, 1) :]


@contextmanager
def _signals_held() -> Iterator[None]:
    """Hold back signals: a child that starts here never gets them, for they are its parent's."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _read(files: Sequence[SourceFile], receiving: Connection, sending: Connection) -> None:
    """Read files, and send what is in each.

    The child has a copy of its parent's end of the pipe. With that closed, what it sends to a
    parent that was killed fails, and it ends as well.
    """
    receiving.close()
    with suppress(Exception):  # the parent reads for itself what it does not get
        sending.send([file.read() for file in files])
