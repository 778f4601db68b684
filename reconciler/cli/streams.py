"""The standard streams: output never stops the work. The amount and colour of output.

A disk is full, a pipe has no reader, a job was started with a stream closed. An exception there
would end an apply between two writes. So a stream here takes everything and keeps why something
was lost; a command that prints a result asks for that at the end.

``--color``, ``--verbose`` and ``--quiet`` hold for the whole process, because an error is printed
after the command and its options are gone.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TextIO

from reconciler.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


_WORDS = {errno.EBADF: "stdout is closed", errno.EPIPE: "its reader has gone"}


class _Stream(io.FileIO):
    """The raw end of a standard stream.

    Attributes:
        lost: Why something could not be written, or empty.
    """

    lost = ""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write what can be written; after a failure nothing more is tried."""
        if not self.lost:
            try:
                return super().write(data)
            except OSError as failure:
                self.lost = _WORDS.get(failure.errno or 0, failure.strerror or str(failure))
        return memoryview(data).nbytes


def open_streams() -> None:
    """Take over the standard streams of this process.

    One that is closed is opened first: otherwise the next file, a store or a journal, would get
    its number, and a child process or a library would print into it.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # For stdout in the wrong direction, so that a result is not lost without a word.
            os.open(os.devnull, flags)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))
    sys.stdout = _text(_Stream(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Stream(2, "w", closefd=False), sys.stderr)


def lost_output() -> str:
    """Return why something could not be written to stdout, or nothing."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.lost if isinstance(raw, _Stream) else ""


def _text(raw: _Stream, before: TextIO | None) -> io.TextIOWrapper:
    """Return a stream of text; what its encoding cannot say is escaped."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(before, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )


@dataclass(frozen=True, slots=True)
class OutputChoice:
    """The values of ``--color``, ``--verbose`` and ``--quiet``.

    Attributes:
        color: ``always`` or ``never``; with ``auto`` the environment and the stream decide.
        verbose: Whether requests and timings are printed on stderr.
        quiet: Whether progress, notes and hints are left out; results, warnings and errors stay.
    """

    color: str = "auto"
    verbose: bool = False
    quiet: bool = False


_NOTHING = OutputChoice()
_chosen = [_NOTHING]


def chosen() -> OutputChoice:
    """Return what this run was asked for."""
    return _chosen[0]


def choose(name: str, value: Any) -> None:
    """Take one option, unless it was not given.

    Raises:
        UsageError: two options contradict each other.
    """
    if value:
        _chosen[0] = replace(_chosen[0], **{name: value})
    if chosen().verbose and chosen().quiet:
        raise UsageError(
            "--verbose and --quiet contradict each other",
            remedy="Give one of the two, or unset RECONCILER_VERBOSE or RECONCILER_QUIET.",
        )


def forget_choice() -> None:
    """Begin another run in the same process with the defaults."""
    _chosen[0] = _NOTHING
