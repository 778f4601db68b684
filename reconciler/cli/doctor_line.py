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


def not_checked(why: str, **facts: Any) -> Told:
    """Return that there is nothing to look at, and why."""
    return Told(why, facts, Status.NOT_CHECKED)


_LACKING = (Status.FAILED, Status.NOT_CHECKED)


def examine(checks: Sequence[Check[T]], about: T) -> Mapping[str, Told]:
    """Make every check, and return what each found by its name, in their order."""
    done: dict[str, Told] = {}
    for check in checks:
        missing = [name for name in check.needs if done[name].status in _LACKING]
        done[check.name] = (
            not_checked(_needs(missing[0], done[missing[0]])) if missing else _looked(check, about)
        )
    return done


def _needs(name: str, told: Told) -> str:
    """Return why a check was not made that needs another one; its own reason, where it has one."""
    return f"see {name}" if told.status is Status.FAILED else told.text


def _looked(check: Check[T], about: T) -> Told:
    """Return what a check found. Failed where it raised, with its problem as the text."""
    try:
        return check.look(about)
    except (ReconcilerError, click.UsageError) as failure:
        text, remedy = in_words(failure)
    except OSError as failure:
        text = f"cannot look at {failure.filename}: {failure.strerror}"
        remedy = "Let this user read it."
    return Told(text, status=Status.FAILED, remedy=remedy)


def in_words(failure: ReconcilerError | click.UsageError) -> tuple[str, str]:
    """Return what is wrong, and what to do."""
    if isinstance(failure, ReconcilerError):
        return failure.problem, failure.remedy
    return failure.format_message().rstrip("."), _CORRECT


_CORRECT = "Correct the option, or the variable that it was read from."
