"""A store in memory: the same promises, kept by an undo list and one lock."""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pyrage

from reconciler.service.build import IdentityService, microseconds
from reconciler.service.eventstore import tables
from reconciler.service.eventstore.errors import NameTakenError, StoreError, StreamConflictError
from reconciler.service.eventstore.port import EventStore, Transaction
from reconciler.service.eventstore.rows import (
    NO_LOOKUPS,
    EventKey,
    EventNote,
    EventTrace,
    Head,
    LeaseRow,
    Lookups,
    NameFilter,
    ObjectKey,
    ObjectName,
    ObjectQuery,
    ObjectRow,
    OwedRow,
    PassRow,
    Record,
    SealRow,
    StoredEvent,
    StreamAt,
    TokenRow,
    TrustRow,
    first_head,
    length_of_page,
)
from reconciler.service.eventstore.sql import PAGE, Values
from reconciler.service.eventstore.sqlite_tables import DIALECT
from reconciler.service.eventstore.tables import Table
from reconciler.service.eventstore.writers import WRITERS, WRITERS_VERSION
from reconciler.service.projections.objects import is_active
from reconciler.service.seal import SealingKey

_ABSENT = object()
_NAME_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "equals": str.__eq__,
    "starts": str.startswith,
    "contains": str.__contains__,
    "ends": str.endswith,
}


def new_key() -> SealingKey:
    """Return a key that ends with the process."""
    return SealingKey(pyrage.x25519.Identity.generate())


def open_memory(*, now: Callable[[], int] = microseconds) -> IdentityService:
    """Return a service whose store ends with the process."""
    return IdentityService(MemoryEventStore(now), new_key(), now)


class MemoryEventStore(Transaction, EventStore):
    """An ``EventStore`` that ends with the process. It is also its own only transaction."""

    place = "memory"

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._lock = threading.RLock()
        self._undo: list[Callable[[], object]] = []
        self._events: list[StoredEvent] = []
        self._heads: dict[str, Head] = {}
        self._streams: dict[str, list[StoredEvent]] = {}
        self._objects: dict[str, ObjectRow] = {}
        super().__init__(_no_sql, DIALECT)
        self._names: dict[tuple[str, str, str], str] = {}
        self._records: dict[tuple[str, str], Record] = {}
        self._seals: dict[str, SealRow] = {}
        self._owed: dict[str, OwedRow] = {}
        self._leases: dict[str, LeaseRow] = {}
        self._tokens: dict[str, TokenRow] = {}
        self._trusts: dict[str, TrustRow] = {}
        self._passes: dict[bytes, PassRow] = {}
        self._meta = {"instance": os.urandom(16).hex(), WRITERS: str(WRITERS_VERSION)}
        self._tables: dict[str, dict[Any, Any]] = {
            tables.OBJECTS.name: self._objects,
            tables.RECORDS.name: self._records,
            tables.SEALS.name: self._seals,
            tables.OWED.name: self._owed,
            tables.LEASES.name: self._leases,
            tables.TOKENS.name: self._tokens,
            tables.TRUSTS.name: self._trusts,
            tables.PASSES.name: self._passes,
        }

    @contextmanager
    def transaction(self, asked: Lookups = NO_LOOKUPS) -> Iterator[MemoryEventStore]:
        """Write: keep what the block did, or undo it when an exception leaves it."""
        with self._lock:
            self._undo.clear()
            with self.savepoint():
                yield self

    @contextmanager
    def savepoint(self) -> Iterator[None]:
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
        return self._streams.get(stream, [])[after : after + limit]

    def stream_version(self, stream: str) -> int:
        return len(self._streams.get(stream, ()))

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        start = bisect_right(self._events, after, key=lambda event: event.position)
        return self._events[start : start + limit]

    def event_keys(
        self, organization: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[EventKey]:
        own = (each for each in self._events if each.organization == organization)
        keys = (EventKey(each.sequence, each.stream, each.version, each.type) for each in own)
        return [key for key in keys if key.sequence > after][:limit]

    def last_event_keys(self, organization: str, before: int, limit: int) -> Sequence[EventKey]:
        own = (each for each in self._events if each.organization == organization)
        keys = [EventKey(each.sequence, each.stream, each.version, each.type) for each in own]
        return [key for key in keys if key.sequence < before][::-1][:limit]

    def event_notes(self, organization: str, sequences: Collection[int]) -> Sequence[EventNote]:
        return [
            EventNote(
                each.sequence, each.stream, each.version, each.type, each.context, each.writer
            )
            for each in self._events
            if each.organization == organization and each.sequence in sequences
        ]

    def traces_before(self, stream: str, version: int, limit: int = PAGE) -> Sequence[EventTrace]:
        found = self._streams.get(stream, [])[: version - 1][::-1][:limit]
        return [EventTrace(each.version, each.type, each.context) for each in found]

    def heads(self) -> Sequence[Head]:
        return [self._heads[name] for name in sorted(self._heads)]

    def heads_of(self, organizations: Collection[str]) -> Sequence[Head]:
        return [head for head in self._heads.values() if head.organization in organizations]

    def head(self, organization: str) -> Head:
        return self._heads.get(organization) or first_head(organization)

    def get_object(self, object_id: str) -> ObjectRow | None:
        return self._objects.get(object_id)

    def get_objects(self, ids: Collection[str]) -> Sequence[ObjectRow]:
        return [self._objects[name] for name in ids if name in self._objects]

    def object_names(self, ids: Collection[str]) -> Sequence[ObjectName]:
        rows = self.get_objects(ids)
        return [ObjectName(each.id, *each[1:5]) for each in rows]

    def objects_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[ObjectRow]:
        found = [
            row
            for row in self._objects.values()
            if row.organization == organization and organization != row.id > after
        ]
        return sorted(found)[:limit]

    def page_keys(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[ObjectKey]:
        rows = self.objects_page(organization, after=after, limit=limit)
        return [(row.id, row.sequence) for row in rows]

    def page_marks(self, organization: str, limit: int = PAGE) -> Sequence[str]:
        return [row.marks for row in self.objects_page(organization, limit=limit)]

    def list_objects(
        self, query: ObjectQuery, total: int | None = None
    ) -> tuple[int, Sequence[ObjectKey]]:
        found = [row for row in self._objects.values() if _is_found(row, query)]
        found.sort(
            key=lambda row: (row.folded if query.by_name else "", row.id), reverse=query.descending
        )
        page = found[query.offset : query.offset + length_of_page(query, len(found))]
        return len(found), [(row.id, row.sequence) for row in page]

    def all_objects(self) -> Sequence[ObjectRow]:
        return sorted(self._objects.values())

    def find_object(self, kind: str, parent: str, folded: str) -> ObjectRow | None:
        """Return the object of a folded name, which is looked up quickly."""
        return self._objects.get(self._names.get((parent, kind, folded), ""))

    def record(self, caller: str, key: str) -> Record | None:
        return self._records.get((caller, key))

    def seal(self, seal_id: str) -> SealRow | None:
        return self._seals.get(seal_id)

    def owed(self, ids: Collection[str]) -> Sequence[OwedRow]:
        return [self._owed[name] for name in ids if name in self._owed]

    def owed_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[OwedRow]:
        found = [row for row in self._owed.values() if row.organization == organization]
        return sorted(row for row in found if row.id > after)[:limit]

    def owed_counts(self, organizations: Collection[str], now: int) -> Mapping[str, int]:
        kept = (row for row in self._owed.values() if row.seal and row.expires_at > now)
        return Counter(row.organization for row in kept if row.organization in organizations)

    def owed_in(self, seal_id: str) -> Sequence[OwedRow]:
        return [row for row in self._owed.values() if row.seal == seal_id]

    def lease(self, organization: str) -> LeaseRow | None:
        return self._leases.get(organization)

    def tokens(self) -> Sequence[TokenRow]:
        return sorted(self._tokens.values())

    def hold_tokens(self, hashes: Collection[bytes]) -> None:
        """Do nothing: a look costs no statement."""

    def token(self, sha256: bytes) -> TokenRow | None:
        return next((token for token in self._tokens.values() if token.sha256 == sha256), None)

    def trusts(self) -> Sequence[TrustRow]:
        return sorted(self._trusts.values())

    def trust(self, name: str) -> TrustRow | None:
        return self._trusts.get(name)

    def trusts_of(self, issuer: str) -> Sequence[TrustRow]:
        return [row for row in self.trusts() if row.issuer == issuer]

    def short_token(self, sha256: bytes) -> PassRow | None:
        return self._passes.get(sha256)

    def is_used(self, digest: str) -> bool:
        return any(row.used == digest for row in self._passes.values())

    def meta(self, name: str) -> str:
        return self._meta[name]

    def _head_for(self, stream: StreamAt) -> Head:
        if len(self._streams.get(stream.id, ())) != stream.version:
            raise StreamConflictError
        return self.head(stream.organization)

    def _added(self, event: StoredEvent, head: Head) -> StoredEvent:
        event = event._replace(position=len(self._events) + 1)
        for log in (self._events, self._streams.setdefault(event.stream, [])):
            log.append(event)
            self._undo.append(log.pop)
        self._set(self._heads, head.organization, head)
        return event

    def clear_objects(self) -> None:
        for row in list(self._objects.values()):
            self.remove(row)

    def _put(self, table: Table, row: Values) -> None:
        if isinstance(row, ObjectRow):
            # Removed first, so that its former name is free again if it has another one now.
            name = (row.parent, row.kind, row.folded)
            if self._names.get(name, row.id) != row.id:
                raise NameTakenError
            self._remove(table, row)
            self._set(self._names, name, row.id)
        width = len(table.key)
        key = row[0] if width == 1 else tuple(row[:width])
        self._set(self._tables[table.name], key, row)

    def _remove(self, table: Table, row: Values) -> None:
        known = self._tables[table.name].get(row[0])
        if known is not None and table.known_in(known) == table.known_in(row):
            self._drop(self._tables[table.name], row[0])
            if isinstance(known, ObjectRow):
                self._drop(self._names, (known.parent, known.kind, known.folded))

    def expire(self, now: int) -> None:
        for short in [row for row in self._passes.values() if row.kept_until <= now]:
            self._drop(self._passes, short.sha256)
        for row in list(self._owed.values()):
            if row.seal is not None and row.expires_at <= now:
                self._remove(tables.SEALS, (row.seal,))
                self.put(row._replace(seal=None))
        for key, record in list(self._records.items()):
            if record.expires_at <= now:
                self._drop(self._records, key)
        used = {record.seal for record in self._records.values()}
        for seal in list(self._seals.values()):
            if seal.expires_at <= now and seal.id not in used:
                self._drop(self._seals, seal.id)

    def _set(self, table: dict[Any, Any], key: object, value: object) -> None:
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


def _is_found(row: ObjectRow, query: ObjectQuery) -> bool:
    return (
        (row.kind, row.parent) == (query.kind, query.parent)
        and (query.ids is None or row.id in query.ids)
        and query.active in {None, is_active(row.marks)}
        and all(_has_name(row, name) for name in query.names)
    )


def _has_name(row: ObjectRow, name: NameFilter) -> bool:
    return _NAME_TESTS[name.match](row.folded if name.folded else row.name, name.text)
