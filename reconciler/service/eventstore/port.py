"""The port: what a store of the service promises to its writers, in SQLite or PostgreSQL.

A transaction is at its heart. Inside it, reads see its own writes; it commits when its block
ends and rolls back when an exception leaves the block. Unique constraints, not looking first,
decide which of two writers has a name, a stream version or a sequence: several processes may write
to one store. The first append to an organization locks its head row until the commit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from reconciler.service.eventstore.rows import (
    Author,
    LeaseRow,
    Lookups,
    NewEvent,
    ObjectRow,
    OwedRow,
    Record,
    SealRow,
    StoredEvent,
    StreamAt,
    TokenRow,
)
from reconciler.service.eventstore.sql import Snapshot


class Transaction(Snapshot, ABC):
    """A view that can be written to."""

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[None]:
        """Undo what is done in the block if an exception leaves it, and only that."""

    @abstractmethod
    def prefetch(self, asked: Lookups) -> None:
        """Look up at once what is going to be asked for, where one look is faster than many."""

    @abstractmethod
    def append(
        self, stream: StreamAt, events: Sequence[NewEvent], author: Author
    ) -> Sequence[StoredEvent]:
        """Append events to a stream.

        Raises:
            StreamConflictError: the stream is not at this version. Where a version is 0, this
                may be found out only when the transaction commits.
        """

    @abstractmethod
    def put_object(self, row: ObjectRow) -> None:
        """Insert an object, or change the one of its id.

        Raises:
            NameTakenError: another object has its name.
        """

    @abstractmethod
    def remove_object(self, object_id: str) -> None:
        """Remove an object; its events stay."""

    @abstractmethod
    def clear_objects(self) -> None:
        """Remove every object, to make them anew from the events."""

    @abstractmethod
    def put_record(self, record: Record) -> None:
        """Keep an answer. The seal it names may follow, up to the commit."""

    @abstractmethod
    def put_seal(self, seal: SealRow) -> None:
        """Keep a seal, in the place of one of its id."""

    @abstractmethod
    def remove_seal(self, seal_id: str) -> None:
        """Remove a seal for good; what refers to it finds nothing."""

    @abstractmethod
    def put_owed(self, row: OwedRow) -> None:
        """Keep that a secret is owed, in the place of another of the same application."""

    @abstractmethod
    def remove_owed(self, row: OwedRow) -> None:
        """Remove an owed secret, unless a newer one has taken its place."""

    @abstractmethod
    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come.

        A seal that a record needs stays, but for one of owed secrets: their rows stay without it.
        """

    @abstractmethod
    def upgrade(self) -> bool:
        """Give a store of an earlier version the tables of this one; return whether it was one.

        The objects are still those of the earlier version.
        """

    @abstractmethod
    def put_lease(self, lease: LeaseRow) -> None:
        """Make this the lease of its organization name."""

    @abstractmethod
    def put_token(self, token: TokenRow) -> None:
        """Insert a token, or change the one of its name."""


class EventStore(Protocol):
    """An append-only log, the objects it adds up to, and what else must commit with them."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Write: commit when the block ends, roll back when an exception leaves it.

        Raises:
            StoreError: the store cannot be written to; nothing was.
            StoreUnreachableError: the store was lost; a commit under way may have been
                carried out.
            ConflictError: other writers got in the way; nothing was written, and the whole
                block may be tried again.
        """
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Read, undisturbed by writers."""
        ...

    def is_outdated(self) -> bool:
        """Return whether an earlier version made the store, and nothing has upgraded it since."""
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

    def close(self) -> None:
        """Let go of everything. A closed store is not used again."""
        ...


@runtime_checkable
class RemoteStore(Protocol):
    """A store that is waited for, because it is elsewhere."""

    def abandon(self) -> None:
        """Let what waits for the store fail, and what comes after it. It is thread-safe."""
        ...
