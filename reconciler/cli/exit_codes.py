"""The numbers scripts rely on."""

from __future__ import annotations

from enum import IntEnum

from reconciler import errors


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
