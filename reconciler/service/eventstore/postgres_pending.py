"""Rows that a transaction has decided and not sent yet, so that many are sent at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from reconciler.service.eventstore import postgres_tables as tables
from reconciler.service.eventstore.rows import Head, ObjectRow, Record, StoredEvent

Statement = tuple[str, tuple[Any, ...]]


class Tip(NamedTuple):
    """An organization's head, and the position of its last event."""

    head: Head
    position: int


class Pending:
    """Rows that wait to be sent, and what is known because of them and of those sent before.

    Attributes:
        events, objects, records, seals, owed: What waits, in order; the order matters within each.
        tips: Of every organization that was appended to.
        unsent: Organizations whose tip waits, too.
        versions: Of streams whose organization is locked.
        by_id: Every object that was changed; None where it was removed.
        names: Who got a name last.
        known: Every record that was put.
    """

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []
        self.objects: list[Statement] = []
        self.records: list[Statement] = []
        self.seals: list[Statement] = []
        self.owed: list[Statement] = []
        self.tips: dict[str, Tip] = {}
        self.unsent: set[str] = set()
        self.versions: dict[str, int] = {}
        self.by_id: dict[str, ObjectRow | None] = {}
        self.names: dict[tuple[str, str, str], str] = {}
        self.known: dict[tuple[str, str], Record] = {}

    def copy(self) -> Pending:
        """Return a copy, to come back to."""
        made = Pending.__new__(Pending)
        for name, value in vars(self).items():
            setattr(made, name, value.copy())
        return made

    def __len__(self) -> int:
        rows = len(self.events) + len(self.objects) + len(self.records)
        return rows + len(self.seals) + len(self.owed)

    def statements(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """Yield what is to be sent: statements, and the rows each is run for."""
        if self.events:
            yield tables.ADD_EVENT, list(self.events)
        for waiting in (self.objects, self.records, self.owed, self.seals):
            for statement, run in groupby(waiting, key=_statement):
                yield statement, [values for _, values in run]
        if self.unsent:
            yield tables.SET_HEAD, [_as_values(self.tips[name]) for name in sorted(self.unsent)]

    def sent(self) -> None:
        """Forget what waited, and keep what is known."""
        for waiting in (self.events, self.objects, self.records, self.seals, self.owed):
            waiting.clear()
        self.unsent.clear()

    def sent_before(self, earlier: Pending) -> None:
        """Forget what waited at an earlier moment, which was sent; what came since still waits."""
        del self.events[: len(earlier.events)]
        del self.objects[: len(earlier.objects)]
        del self.records[: len(earlier.records)]
        del self.seals[: len(earlier.seals)]
        del self.owed[: len(earlier.owed)]
        self.unsent = {
            name for name in self.unsent if self.tips[name] is not earlier.tips.get(name)
        }


def _statement(waiting: Statement) -> str:
    return waiting[0]


def _as_values(tip: Tip) -> tuple[Any, ...]:
    organization, sequence, events, digest = tip.head
    return sequence, events, digest, tip.position, organization
