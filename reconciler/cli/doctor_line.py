"""Checks of ``reconciler doctor`` and their results, whatever they look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

import click

from reconciler.errors import ReconcilerError

T = TypeVar("T")


class Status(StrEnum):
    """The result of a check, the worst one last."""

    OK = "ok"
    NOT_CHECKED = "not checked"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Told:
    """The result of a check.

    Attributes:
        facts: The same for programs; None for what the service does not tell.
        remedy: What to do, where the status is not ok.
    """

    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    status: Status = Status.OK
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Check(Generic[T]):
    """A check.

    Attributes:
        needs: Names of the checks before it without which it cannot be made.
        look: Returns what it found, or raises what is wrong.
    """

    name: str
    look: Callable[[T], Told]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """The result of a check. Failed where it raised, with its problem as the text."""

    name: str
    status: Status
    text: str
    remedy: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def not_checked(why: str, **facts: Any) -> Told:
    """Return that there is nothing to look at, and why."""
    return Told(why, facts, Status.NOT_CHECKED)


_LACKING = (Status.FAILED, Status.NOT_CHECKED)


def examine(checks: Sequence[Check[T]], about: T) -> Sequence[Line]:
    """Make every check, and return what each found, in their order."""
    done: dict[str, Line] = {}
    for check in checks:
        missing = [name for name in check.needs if done[name].status in _LACKING]
        done[check.name] = (
            Line(check.name, Status.NOT_CHECKED, _needs(done[missing[0]]))
            if missing
            else _line(check, about)
        )
    return [*done.values()]


def _needs(line: Line) -> str:
    """Return why a check was not made that needs another one; its own reason, where it has one."""
    return f"see {line.name}" if line.status is Status.FAILED else line.text


def _line(check: Check[T], about: T) -> Line:
    try:
        told = check.look(about)
    except (ReconcilerError, click.UsageError) as failure:
        return Line(check.name, Status.FAILED, *in_words(failure))
    except OSError as failure:
        text = f"cannot look at {failure.filename}: {failure.strerror}"
        return Line(check.name, Status.FAILED, text, "Let this user read it.")
    return Line(check.name, told.status, told.text, told.remedy, told.facts)


def in_words(failure: ReconcilerError | click.UsageError) -> tuple[str, str]:
    """Return what is wrong, and what to do."""
    if isinstance(failure, ReconcilerError):
        return failure.problem, failure.remedy
    return failure.format_message().rstrip("."), _CORRECT


_CORRECT = "Correct the option, or the variable that it was read from."
