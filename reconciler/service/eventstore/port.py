"""The port: what a store of the service promises to its writers, in SQLite or PostgreSQL.

A transaction is at its heart. Inside it, reads see its own writes; it commits when its block
ends and rolls back when an exception leaves the block. Unique constraints, not looking first,
decide which of two writers has a name, a stream version or a sequence: several processes may write
to one store. The first append to an organization locks its head row until the commit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeAlias

from reconciler.resources.process import crashpoint
from reconciler.service.eventstore.errors import StoreReadOnlyError
from reconciler.service.eventstore.rows import (
    NO_LOOKUPS,
    Author,
    Head,
    LeaseRow,
    Lookups,
    NewEvent,
    ObjectRow,
    OwedRow,
    PassRow,
    Record,
    SealRow,
    StoredEvent,
    StreamAt,
    TokenRow,
    TrustRow,
    chained,
)
from reconciler.service.eventstore.sql import Snapshot, Values
from reconciler.service.eventstore.tables import OBJECTS, RECORDS, TABLES, Table

Removed: TypeAlias = ObjectRow | SealRow | OwedRow | TrustRow
Put: TypeAlias = Removed | Record | LeaseRow | TokenRow | PassRow
TABLE_OF: Mapping[type, Table] = {table.row: table for table in TABLES}
POINTS = {OBJECTS.name: "S5", RECORDS.name: "S6"}  # of the crash tests, by what was written


class Transaction(Snapshot, ABC):
    """A view that can be written to.

    A store says how a chain goes on, and how rows are put and removed; what is written is here.
    S3 to S6 are points of a write at which the crash tests end the process.
    """

    _now: Callable[[], int]

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[None]:
        """Undo what is done in the block if an exception leaves it, and only that."""

    def append(
        self, stream: StreamAt, events: Sequence[NewEvent], author: Author
    ) -> Sequence[StoredEvent]:
        """Append events to a stream.

        Raises:
            StreamConflictError: the stream is not at this version. Where a version is 0, this
                may be found out only when the transaction commits.
        """
        head = self._head_for(stream)
        crashpoint("S3")
        stored = []
        for new in events:
            event, head = chained(head, stream, new, author, self._now())
            stored.append(self._added(event, head))
            stream = StreamAt(event.organization, event.stream, event.version)
            crashpoint("S4")
        return stored

    @abstractmethod
    def _head_for(self, stream: StreamAt) -> Head:
        """Return the head that a stream goes on from, locked until the commit.

        Raises:
            StreamConflictError: the stream is not at this version.
        """

    @abstractmethod
    def _added(self, event: StoredEvent, head: Head) -> StoredEvent:
        """Add an event, and move the head of its chain; return the event with its position."""

    def put(self, row: Put) -> None:
        """Insert a row, or change the one of its key.

        The seal that a record or an owed secret names may follow, up to the commit. Of a rule, the
        caller has seen in ``trusts`` that its name is free.

        Raises:
            NameTakenError: another object has the name of this one.
        """
        table = TABLE_OF[type(row)]
        self._put(table, row)
        if table.name in POINTS:
            crashpoint(POINTS[table.name])

    def remove(self, row: Removed) -> None:
        """Remove the row of a key; the events of an object stay.

        An owed secret is not removed if a newer one has taken its place.
        """
        table = TABLE_OF[type(row)]
        self._remove(table, row)
        if table.name in POINTS:
            crashpoint(POINTS[table.name])

    @abstractmethod
    def _put(self, table: Table, row: Values) -> None:
        """Insert a row, or change the one of its key."""

    @abstractmethod
    def _remove(self, table: Table, row: Values) -> None:
        """Remove the row of a key, and of the guard that goes with it."""

    @abstractmethod
    def clear_objects(self) -> None:
        """Remove every object, to make them anew from the events."""

    @abstractmethod
    def expire(self, now: int) -> None:
        """Drop records, seals and short tokens whose time has come.

        A seal that a record needs stays, but for one of owed secrets: their rows stay without it.
        """


class EventStore(Protocol):
    """An append-only log, the objects it adds up to, and what else must commit with them.

    Attributes:
        place: Where it is, as messages show it.
    """

    place: str

    def transaction(self, asked: Lookups = NO_LOOKUPS) -> AbstractContextManager[Transaction]:
        """Write: commit when the block ends, roll back when an exception leaves it.

        A store in which a look costs a round trip locks the organizations at its beginning, and
        looks up at once what is going to be ``asked`` for. One that is only looked at refuses.

        Raises:
            StoreError: the store cannot be written to; nothing was.
            StoreUnreachableError: the store was lost; a commit under way may have been
                carried out.
            ConflictError: other writers got in the way; nothing was written, and the whole
                block may be tried again.
        """
        raise StoreReadOnlyError(f"{self.place} was opened to be read only", "Open it for writing.")

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Read, undisturbed by writers."""
        ...

    def damage(self) -> Sequence[str]:
        """Return what the store itself finds wrong with its own structure."""
        ...

    def backup(self, target: Path) -> None:
        """Copy the store into a new file, durably, while it is in use.

        Raises:
            StoreError: the file exists or cannot be written, or this store has its own ways.
        """
        ...

    def require_writable(self) -> None:
        """Check that the place takes writes, and is not a standby, where that may change.

        Raises:
            StoreReadOnlyError: it is one, or was made read only.
            StoreBusyError: its commits have waited for a synchronous standby for too long.
            StoreError: it does not answer.
        """
        return

    def abandon(self) -> None:
        """Let what waits for the store fail, and what comes after it. It is thread-safe.

        Waits for a file end by themselves.
        """
        return

    def close(self) -> None:
        """Let go of everything. A closed store is not used again."""
        ...
