"""The exit of the process: its code, signals at any moment, and memory that is not freed.

A signal is handled in one of two ways. While modules load and while the interpreter ends there is
nothing to bring to an end: the process leaves at once. While a command runs an exception is
raised, so that files are closed and locks are released; ``apply`` and ``serve`` have ways of
their own.

A large tree is a million small values. To free them one by one takes a tenth of a plan's time;
the system takes all memory back at once.
"""

from __future__ import annotations

import gc
import signal
import sys
from enum import IntEnum
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from reconciler import errors
from reconciler.cli.signals import handle_with, leave_on_signals

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


DELAY = 0.005
"""Seconds after which an interruption is raised again where the place could not take it."""

_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"

_kept: list[object] = []
_delayed: set[int] = set()


def keep_until_exit(value: object) -> None:
    """Keep a value as long as the run lasts."""
    _kept.append(value)


def forget_kept() -> None:
    """Forget the values of the run before: another one begins in the same process."""
    _kept.clear()


def exit_on_signals() -> None:
    """Let SIGINT and SIGTERM end the process at once, with 130 or 143.

    One that waits to be raised again ends it now: its timer would go off when Python has given
    signals back to the system.
    """
    leave_on_signals()
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in _delayed:
        signal.raise_signal(number)


def raise_on_signals() -> None:
    """Let SIGINT and SIGTERM raise an exception in the command that runs."""
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

    A callback of the import system or the end of a value is such a place: Python would print a
    traceback and go on as if nothing had been asked.
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
    (errors.LockHeldError, ExitCode.LOCKED),
    (errors.AccessDeniedError, ExitCode.DENIED),
)


def exit_code_of(error: errors.ReconcilerError) -> int:
    """Return the exit code of a command that ended with an error."""
    if isinstance(error, errors.InterruptedRunError):
        return ExitCode.SIGNAL + error.signal_number
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.ERROR)
