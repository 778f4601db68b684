"""Amount and colour of output: ``--color``, ``--verbose`` and ``--quiet``.

They hold for the whole process, because an error is told after the command and its options are
gone. Small, because every start of the program loads it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from reconciler.errors import UsageError


@dataclass(frozen=True, slots=True)
class OutputChoice:
    """The values of ``--color``, ``--verbose`` and ``--quiet``.

    Attributes:
        color: ``always`` or ``never``; with ``auto`` the environment and the stream decide.
        verbose: Whether requests and timings are told on stderr.
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
