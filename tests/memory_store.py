"""A store in memory: the same promises, kept by an undo list and one lock."""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pyrage

from reconciler.service.build import IdentityService, microseconds
from reconciler.service.eventstore.errors import NameTakenError, StoreError, StreamConflictError
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.rows import (
    Author,
    Head,
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
    chained,
    first_head,
)
from reconciler.service.eventstore.sql import PAGE
from reconciler.service.eventstore.sqlite_tables import DIALECT
from reconciler.service.projections.maintenance import ReplayedSnapshot
from reconciler.service.seal import SealingKey

_ABSENT = object()


def new_key() -> SealingKey:
    """Return a key that ends with the process."""
    return SealingKey(pyrage.x25519.Identity.generate())


def open_memory(*, now: Callable[[], int] = microseconds) -> IdentityService:
    """Return a service whose store ends with the process."""
    return IdentityService(MemoryEventStore(now), new_key(), now)


class MemoryEventStore(ReplayedSnapshot, Transaction):
    """An ``EventStore`` that ends with the process. It is also its own only transaction."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._lock = threading.RLock()
        self._undo: list[Callable[[], object]] = []
        self._events: list[StoredEvent] = []
        self._heads: dict[str, Head] = {}
        self._streams: dict[str, list[StoredEvent]] = {}
        self._objects: dict[str, ObjectRow] = {}
        super().__init__(_no_sql, DIALECT, self._objects)
        self._names: dict[tuple[str, str, str], str] = {}
        self._records: dict[tuple[str, str], Record] = {}
        self._seals: dict[str, SealRow] = {}
        self._owed: dict[str, OwedRow] = {}
        self._leases: dict[str, LeaseRow] = {}
        self._tokens: dict[str, TokenRow] = {}
        self._meta = {"instance": os.urandom(16).hex()}

    @contextmanager
    def transaction(self) -> Iterator[MemoryEventStore]:
        """Write: keep what the block did, or undo it when an exception leaves it."""
        with self._lock:
            self._undo.clear()
            with self.savepoint():
                yield self

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done in the block if an exception leaves it, and only that."""
        start = len(self._undo)
        try:
            yield
        except BaseException:
            while len(self._undo) > start:
                self._undo.pop()()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[MemoryEventStore]:
        """Read; writers wait."""
        with self._lock:
            yield self

    def is_outdated(self) -> bool:
        """Return False: the memory is of this process."""
        return False

    def upgrade(self) -> bool:
        """Do nothing: there is no earlier version."""
        return False

    def damage(self) -> Sequence[str]:
        """Return nothing: there is no file to be damaged."""
        return ()

    def backup(self, target: Path) -> None:
        """Refuse: there is nothing here that should outlive the process.

        Raises:
            StoreError: always.
        """
        problem = f"a store in memory is not copied to {target}"
        raise StoreError(problem, "Keep it in a file if it matters.")

    def close(self) -> None:
        """Do nothing: the memory goes with the process."""

    def read_stream(
        self, stream: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return a stream's events past a version, oldest first."""
        return self._streams.get(stream, [])[after : after + limit]

    def stream_version(self, stream: str) -> int:
        """Return how many events a stream has."""
        return len(self._streams.get(stream, ()))

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Return events of every stream past a position, oldest first."""
        start = bisect_right(self._events, after, key=lambda event: event.position)
        return self._events[start : start + limit]

    def read_organization(
        self, organization: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return an organization's events past a sequence, oldest first."""
        own = (each for each in self._events if each.organization == organization)
        return [event for event in own if event.sequence > after][:limit]

    def heads(self) -> Sequence[Head]:
        """Return where every organization's chain ends, by organization."""
        return [self._heads[name] for name in sorted(self._heads)]

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        return self._heads.get(organization) or first_head(organization)

    def find_object(self, kind: str, parent: str, folded: str) -> ObjectRow | None:
        """Return the object of a folded name, which is looked up quickly."""
        return self._objects.get(self._names.get((parent, kind, folded), ""))

    def record(self, caller: str, key: str) -> Record | None:
        """Return the answer kept under a caller's idempotency key."""
        return self._records.get((caller, key))

    def seal(self, seal_id: str) -> SealRow | None:
        """Return a seal."""
        return self._seals.get(seal_id)

    def owed(self, ids: Collection[str]) -> Sequence[OwedRow]:
        """Return the secrets that these applications owe."""
        return [self._owed[name] for name in ids if name in self._owed]

    def owed_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[OwedRow]:
        """Return secrets owed in an organization, of applications with ids past one, by id."""
        found = [row for row in self._owed.values() if row.organization == organization]
        return sorted(row for row in found if row.id > after)[:limit]

    def owed_in(self, seal_id: str) -> Sequence[OwedRow]:
        """Return the owed secrets that a seal holds."""
        return [row for row in self._owed.values() if row.seal == seal_id]

    def lease(self, organization: str) -> LeaseRow | None:
        """Return the last lease of a folded organization name, whether or not it still counts."""
        return self._leases.get(organization)

    def tokens(self) -> Sequence[TokenRow]:
        """Return every token, by name."""
        return sorted(self._tokens.values())

    def token(self, sha256: bytes) -> TokenRow | None:
        """Return the token of a hash."""
        return next((token for token in self._tokens.values() if token.sha256 == sha256), None)

    def meta(self, name: str) -> str:
        """Return a fact about the store itself: ``instance``."""
        return self._meta[name]

    def prefetch(self, asked: Lookups) -> None:
        """Do nothing: looking things up is free."""

    def append(
        self, stream: StreamAt, events: Sequence[NewEvent], author: Author
    ) -> Sequence[StoredEvent]:
        """Append events to a stream.

        Raises:
            StreamConflictError: the stream is not at this version.
        """
        written = self._streams.setdefault(stream.id, [])
        if len(written) != stream.version:
            raise StreamConflictError
        stored = []
        for new in events:
            head = self.head(stream.organization)
            event, head = chained(head, stream, new, author, self._now())
            event = event._replace(position=len(self._events) + 1)
            for log in (self._events, written):
                log.append(event)
                self._undo.append(log.pop)
            self._put(self._heads, stream.organization, head)
            stream = stream._replace(version=event.version)
            stored.append(event)
        return stored

    def put_object(self, row: ObjectRow) -> None:
        """Insert an object, or change the one of its id.

        Raises:
            NameTakenError: another object has its name.
        """
        # Removed first, so that its former name is free again if it has another one now.
        name = (row.parent, row.kind, row.folded)
        if self._names.get(name, row.id) != row.id:
            raise NameTakenError
        self.remove_object(row.id)
        self._put(self._names, name, row.id)
        self._put(self._objects, row.id, row)

    def remove_object(self, object_id: str) -> None:
        """Remove an object; its events stay."""
        row = self._objects.get(object_id)
        if row is not None:
            self._drop(self._names, (row.parent, row.kind, row.folded))
            self._drop(self._objects, object_id)

    def clear_objects(self) -> None:
        """Remove every object, to make them anew from the events."""
        for object_id in list(self._objects):
            self.remove_object(object_id)

    def put_record(self, record: Record) -> None:
        """Keep an answer. The seal it names may follow, up to the commit."""
        self._put(self._records, (record.caller, record.key), record)

    def put_seal(self, seal: SealRow) -> None:
        """Keep a seal, in the place of one of its id."""
        self._put(self._seals, seal.id, seal)

    def remove_seal(self, seal_id: str) -> None:
        """Remove a seal for good; what refers to it finds nothing."""
        if seal_id in self._seals:
            self._drop(self._seals, seal_id)

    def put_owed(self, row: OwedRow) -> None:
        """Keep that a secret is owed, in the place of another of the same application."""
        self._put(self._owed, row.id, row)

    def remove_owed(self, row: OwedRow) -> None:
        """Remove an owed secret, unless a newer one has taken its place."""
        known = self._owed.get(row.id)
        if known is not None and known.made_at == row.made_at:
            self._drop(self._owed, row.id)

    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come."""
        for row in list(self._owed.values()):
            if row.seal is not None and row.expires_at <= now:
                self.remove_seal(row.seal)
                self.put_owed(row._replace(seal=None))
        for key, record in list(self._records.items()):
            if record.expires_at <= now:
                self._drop(self._records, key)
        used = {record.seal for record in self._records.values()}
        for seal in list(self._seals.values()):
            if seal.expires_at <= now and seal.id not in used:
                self._drop(self._seals, seal.id)

    def put_lease(self, lease: LeaseRow) -> None:
        """Make this the lease of its organization name."""
        self._put(self._leases, lease.organization, lease)

    def put_token(self, token: TokenRow) -> None:
        """Insert a token, or change the one of its name."""
        self._put(self._tokens, token.name, token)

    def _put(self, table: dict[Any, Any], key: object, value: object) -> None:
        before = table.get(key, _ABSENT)
        table[key] = value
        self._undo.append(lambda: _put_back(table, key, before))

    def _drop(self, table: dict[Any, Any], key: object) -> None:
        before = table.pop(key)
        self._undo.append(lambda: _put_back(table, key, before))


def _no_sql(statement: str, values: Sequence[object]) -> NoReturn:
    raise AssertionError(f"memory runs no statement: {statement} {values}")


def _put_back(table: dict[Any, Any], key: object, before: object) -> None:
    if before is _ABSENT:
        table.pop(key, None)
    else:
        table[key] = before
