"""The results of carrying out a plan: made, failed, or not tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from reconciler.diagnostics import Diagnostic
from reconciler.errors import ReconcilerError
from reconciler.plan.model import Change
from reconciler.resources.ref import ResourceRef


class Status(StrEnum):
    """The results that a change can have."""

    MADE = "made"
    FAILED = "failed"
    NOT_TRIED = "not_tried"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one change.

    Attributes:
        secret_at: Where the client secret was delivered, if there was one.
        error: Why it failed.
        written: Whether it failed after the service had been written to: its secret is owed.
    """

    change: Change
    status: Status
    id: str = ""
    client_id: str = ""
    secret_at: str = ""
    error: ReconcilerError | None = None
    written: bool = False


@dataclass(frozen=True, slots=True)
class Delivered:
    """The delivery of a client secret that was owed before the run.

    Attributes:
        secret_at: The place it was delivered to; empty where it was not.
        error: Why it was not delivered: it is still owed. None if it was.
    """

    ref: ResourceRef
    id: str
    client_id: str
    secret_at: str = ""
    error: ReconcilerError | None = None


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """The result of every change of a plan, in the plan's order.

    Attributes:
        notes: What else to know: above all what an interrupted run had left open and this one
            brought to its end.
        remaining: How many changes a plan made afterwards still has; None where it was not made.
        interrupted: The signal that stopped the run, or 0.
        delivered: Client secrets that were owed before the run, and what became of each.
    """

    outcomes: tuple[Outcome, ...]
    notes: tuple[Diagnostic, ...] = ()
    remaining: int | None = None
    interrupted: int = 0
    delivered: tuple[Delivered, ...] = ()

    def count(self, status: Status) -> int:
        """Return how many changes ended so."""
        return sum(outcome.status is status for outcome in self.outcomes)


class Progress(NamedTuple):
    """Told while a plan is carried out: so many of so many changes are done."""

    done: int
    total: int
    latest: Outcome


class Watch(Protocol):
    """An observer of a run: is told of its progress, and may ask it to stop."""

    def begins(self, changes: Sequence[Change]) -> None:
        """Take note of changes that are about to be sent."""
        ...

    def progress(self, progress: Progress) -> None:
        """Take note of how far the run is."""
        ...

    def stop_signal(self) -> int:
        """Return the signal that asked the run to stop, or 0."""
        ...
