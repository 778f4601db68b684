"""The port: the promises of every store of the service, in SQLite or PostgreSQL.

A transaction is at its heart. Inside it, reads see its own writes; it commits when its block
ends and rolls back when an exception leaves the block. Unique constraints, not looking first,
decide which of two writers has a name, a stream version or a sequence: several processes may write
to one store. The first append to an organization locks its head row until the commit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, runtime_checkable

from reconciler.service.eventstore.rows import (
    Author,
    Head,
    LeaseRow,
    Lookups,
    MarkedKey,
    NewEvent,
    ObjectKey,
    ObjectQuery,
    ObjectRow,
    OwedRow,
    Record,
    SealRow,
    StoredEvent,
    StreamAt,
    TokenRow,
)

PAGE = 1000  # rows of one read, so that memory does not grow with the store


class Snapshot(Protocol):
    """One consistent view of a store."""

    def read_stream(
        self, stream: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return a stream's events past a version, oldest first."""
        ...

    def stream_version(self, stream: str) -> int:
        """Return how many events a stream has."""
        ...

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Return events of every stream past a position, those of one organization in order.

        Positions are for paging within one view. Another view may have events of another
        organization at positions that were passed; those of one organization only grow.
        In a transaction, no other one can append from then on to what was there.
        """
        ...

    def read_organization(
        self, organization: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return an organization's events past a sequence, oldest first."""
        ...

    def heads(self) -> Sequence[Head]:
        """Return where every organization's chain ends, by organization."""
        ...

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        ...

    def get_object(self, object_id: str) -> ObjectRow | None:
        """Return the object of an id."""
        ...

    def get_objects(self, ids: Collection[str]) -> Sequence[ObjectRow]:
        """Return the objects of these ids, in any order, less those that are missing."""
        ...

    def find_object(self, kind: str, parent: str, folded: str) -> ObjectRow | None:
        """Return the object of a folded name."""
        ...

    def objects_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[ObjectRow]:
        """Return objects of an organization, less itself, with ids past one, by id."""
        ...

    def page_keys(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[MarkedKey]:
        """Return the keys of what ``objects_page`` returns."""
        ...

    def list_objects(self, query: ObjectQuery) -> tuple[int, Sequence[ObjectKey]]:
        """Return how many objects a query finds, and the keys of those of its page."""
        ...

    def all_objects(self) -> Sequence[ObjectRow]:
        """Return every object there is, by id."""
        ...

    def record(self, caller: str, key: str) -> Record | None:
        """Return the answer kept under a caller's idempotency key."""
        ...

    def seal(self, seal_id: str) -> SealRow | None:
        """Return a seal. In a transaction, no other one can change it until the end."""
        ...

    def owed(self, ids: Collection[str]) -> Sequence[OwedRow]:
        """Return the secrets that these applications owe, in any order."""
        ...

    def owed_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[OwedRow]:
        """Return secrets owed in an organization, of applications with ids past one, by id."""
        ...

    def owed_in(self, seal_id: str) -> Sequence[OwedRow]:
        """Return the owed secrets that a seal holds, in any order."""
        ...

    def lease(self, organization: str) -> LeaseRow | None:
        """Return the last lease of a folded organization name, whether or not it still counts.

        In a transaction, no other one can change it until the end.
        """
        ...

    def tokens(self) -> Sequence[TokenRow]:
        """Return every token, by name. In a transaction, no other can change them until the end."""
        ...

    def token(self, sha256: bytes) -> TokenRow | None:
        """Return the token of a hash."""
        ...

    def meta(self, name: str) -> str:
        """Return a fact about the store itself: ``instance``, ``seal_key``; empty if not kept."""
        ...


class Transaction(Snapshot, Protocol):
    """A view that can be written to."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo what is done in the block if an exception leaves it, and only that."""
        ...

    def prefetch(self, asked: Lookups) -> None:
        """Look up at once what is going to be asked for, where one look is faster than many."""
        ...

    def append(
        self, stream: StreamAt, events: Sequence[NewEvent], author: Author
    ) -> Sequence[StoredEvent]:
        """Append events to a stream.

        Raises:
            StreamConflictError: the stream is not at this version. Where a version is 0, this
                may be found out only when the transaction commits.
        """
        ...

    def put_object(self, row: ObjectRow) -> None:
        """Insert an object, or change the one of its id.

        Raises:
            NameTakenError: another object has its name.
        """
        ...

    def remove_object(self, object_id: str) -> None:
        """Remove an object; its events stay."""
        ...

    def clear_objects(self) -> None:
        """Remove every object, to make them anew from the events."""
        ...

    def put_record(self, record: Record) -> None:
        """Keep an answer. The seal it names may follow, up to the commit."""
        ...

    def put_seal(self, seal: SealRow) -> None:
        """Keep a seal, in the place of one of its id."""
        ...

    def remove_seal(self, seal_id: str) -> None:
        """Remove a seal for good; what refers to it finds nothing."""
        ...

    def put_owed(self, row: OwedRow) -> None:
        """Keep that a secret is owed, in the place of another of the same application."""
        ...

    def remove_owed(self, row: OwedRow) -> None:
        """Remove an owed secret, unless a newer one has taken its place."""
        ...

    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come.

        A seal that a record needs stays, but for one of owed secrets: their rows stay without it.
        """
        ...

    def upgrade(self) -> bool:
        """Give a store of an earlier version the tables of this one; return whether it was one.

        The objects are still those of the earlier version.
        """
        ...

    def put_lease(self, lease: LeaseRow) -> None:
        """Make this the lease of its organization name."""
        ...

    def put_token(self, token: TokenRow) -> None:
        """Insert a token, or change the one of its name."""
        ...


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
