"""The process: its standard streams, its signals, its exit, and the memory that is not freed.

Output never stops the work. A disk is full, a pipe has no reader, a job was started with a stream
closed: an exception there would end an apply between two writes. So a stream here takes everything
and keeps why something was lost; a command that prints a result asks for that at the end.

A signal is handled in one of two ways. While modules load and while the interpreter ends there is
nothing to bring to an end: the process leaves at once. While a command runs an exception is
raised, so that files are closed and locks are released; ``apply`` and ``serve`` have ways of
their own.

``--color``, ``--verbose``, ``--quiet`` and ``--full`` hold for the whole process, because an error
is printed after the command and its options are gone.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys
from dataclasses import dataclass, replace
from enum import IntEnum
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from reconciler import errors
from reconciler.cli.signals import handle_with, leave_on_signals

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

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
    """The values of ``--color``, ``--verbose``, ``--quiet`` and ``--full``.

    Attributes:
        color: ``always`` or ``never``; with ``auto`` the environment and the stream decide.
        verbose: Whether requests and timings are printed on stderr.
        quiet: Whether progress, notes and hints are left out; results, warnings and errors stay.
        folds: Whether long lists are cut on a terminal: by a command that has ``--full``, where
            that was not given.
    """

    color: str = "auto"
    verbose: bool = False
    quiet: bool = False
    folds: bool = False


_chosen = [OutputChoice()]


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
        raise errors.UsageError(
            "--verbose and --quiet contradict each other",
            remedy="Give one of the two, or unset RECONCILER_VERBOSE or RECONCILER_QUIET.",
        )


# A large tree is a million small values. To free them one by one takes a tenth of a plan's time;
# the system takes all memory back at once.
_kept: list[object] = []


def keep_until_exit(value: object) -> None:
    """Keep a value as long as the run lasts."""
    _kept.append(value)


def forget_kept() -> None:
    """Free the values that were kept: this run goes on for long."""
    _kept.clear()


def forget_run() -> None:
    """Forget the values and options of the run before: another begins in the same process."""
    forget_kept()
    _chosen[0] = OutputChoice()


DELAY = 0.005
"""Seconds after which an interruption is raised again where the place could not take it."""

_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"

_delayed: set[int] = set()


def exit_on_signals() -> None:
    """Let a signal end the process at once, with 128 and its number.

    One that waits to be raised again ends it now: its timer would go off when Python has given
    signals back to the system.
    """
    leave_on_signals()
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in _delayed:
        signal.raise_signal(number)


def raise_on_signals() -> None:
    """Let a signal raise an exception in the command that runs."""
    sys.unraisablehook = _raise_again
    handle_with(_interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _is_in_import(frame):
        _raise_later(number)
    elif number == signal.SIGINT:
        raise KeyboardInterrupt
    else:
        raise errors.InterruptedRunError(number)


def _is_in_import(frame: FrameType | None) -> bool:
    """Return whether a module is being loaded at this moment.

    A compiled library that imports a module in the middle of its work may not expect an
    exception there: the validator of JSON schemas ends the process with a panic.
    """
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        frame = frame.f_back
    return False


def _raise_again(lost: UnraisableHookArgs) -> None:
    """Raise an interruption a moment later that was raised where nothing can be raised.

    Such as the end of a value: Python would print a traceback and go on as if nothing was asked.
    """
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    _raise_later(getattr(lost.exc_value, "signal_number", signal.SIGINT))


def _raise_later(number: int) -> None:
    def send(*_: object) -> None:
        _delayed.discard(number)
        signal.raise_signal(number)

    _delayed.add(number)
    signal.signal(signal.SIGALRM, send)
    signal.setitimer(signal.ITIMER_REAL, DELAY)


def end(code: int) -> NoReturn:
    """Leave with an exit code, without freeing the values of the run.

    A module and its functions refer to each other, so that only the collector frees what they
    hold, and it does not look at what is frozen. The rest of the exit is as usual: exit handlers
    are called, and output is flushed.
    """
    gc.freeze()
    sys.exit(code)


class ExitCode(IntEnum):
    """The exit codes of the program."""

    DONE = 0
    ERROR = 1
    CHANGES = 2
    BLOCKED = 3
    STALE = 4
    PARTLY = 5
    LOCKED = 6
    DENIED = 7
    SIGNAL = 128


_CODES: tuple[tuple[type[errors.ReconcilerError], ExitCode], ...] = (
    (errors.BlockedPlanError, ExitCode.BLOCKED),
    (errors.StalePlanError, ExitCode.STALE),
    (errors.PreconditionFailedError, ExitCode.STALE),
    (errors.NotDeliveredError, ExitCode.PARTLY),
    (errors.LockHeldError, ExitCode.LOCKED),
    (errors.AccessDeniedError, ExitCode.DENIED),
)


def exit_code_of(error: errors.ReconcilerError) -> int:
    """Return the exit code of a command that ended with an error."""
    if isinstance(error, errors.InterruptedRunError):
        return ExitCode.SIGNAL + error.signal_number
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.ERROR)
