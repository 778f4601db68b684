"""Writing the rows of a PostgreSQL store, inside a transaction that the caller begins.

Isolation is READ COMMITTED, and it is enough. Whoever appends to an organization first locks
its head row; all that is decided by then (versions, names, the chain) is looked up after that,
and nobody else can change it before the commit. What needs no head is held by a lock on its own
row (leases, tokens) or by a unique constraint (idempotency keys, names of organizations). A
stricter level would refuse writers that do not disturb each other, and each statement here has
to see what was committed while it waited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import psycopg

from reconciler.resources.crashpoint import crashpoint
from reconciler.service.eventstore import postgres_tables as tables
from reconciler.service.eventstore.chain import chained
from reconciler.service.eventstore.errors import NameTakenError, StreamConflictError
from reconciler.service.eventstore.port import PAGE
from reconciler.service.eventstore.postgres_custody import PostgresCustody
from reconciler.service.eventstore.postgres_locks import NameKey, name_of
from reconciler.service.eventstore.postgres_pending import Pending, Tip
from reconciler.service.eventstore.postgres_queue import SENT_AT_ONCE
from reconciler.service.eventstore.postgres_rows import Connection
from reconciler.service.eventstore.rows import (
    Author,
    Foresight,
    Head,
    LeaseRow,
    MarkedKey,
    NewEvent,
    ObjectKey,
    ObjectQuery,
    ObjectRow,
    Record,
    StoredEvent,
    StreamAt,
    TokenRow,
)


class PostgresTransaction(PostgresCustody):
    """The rows, and writing them."""

    def __init__(
        self,
        connection: Connection,
        place: str,
        now: Callable[[], int],
        is_due: Callable[[int], bool],
    ) -> None:
        super().__init__(connection, place)
        self._now = now
        self._is_due = is_due
        self._owners: dict[str, ObjectRow] = {}
        self._foreseen: dict[tuple[str, str], Record | None] = {}
        self._seen: dict[tuple[str, str], Record | None] = {}
        self._leases: dict[str, LeaseRow | None] = {}

    def foresee(self, asked: Foresight) -> None:
        """Look up at once what is going to be asked for, where one look is faster than many."""
        self._locks.foresee(asked)
        callers = sorted({caller for caller, _ in asked.records})
        keys = sorted({key for _, key in asked.records})
        with self._connection.pipeline():
            owners = self._run(tables.OBJECTS, (list(asked.parents),))
            records = self._run(tables.RECORDS, (callers, keys))
        self._owners = {row.id: row for row in map(ObjectRow._make, owners)}
        found = {(record.caller, record.key): record for record in map(Record._make, records)}
        self._foreseen = {name: found.get(name) for name in asked.records}
        self._seen = dict(self._foreseen)

    def _undo(self, kept: Pending) -> None:
        super()._undo(kept)
        self._leases.clear()  # their rows may be locked no more

    # Reading what this transaction may have changed.

    def read_stream(
        self, stream: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return a stream's events past a version, oldest first."""
        self._settle()
        return super().read_stream(stream, after=after, limit=limit)

    def stream_version(self, stream: str) -> int:
        """Return how many events a stream has."""
        known = self._pending.versions.get(stream)
        return super().stream_version(stream) if known is None else known

    def get_objects(self, ids: Collection[str]) -> Sequence[ObjectRow]:
        """Return the objects of these ids, less those that are missing."""
        self._settle()
        return super().get_objects(ids)

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Return events of every stream past a position, those of one organization in order.

        Every organization there is by then is locked, so that who rebuilds from the log knows
        all of it. One that is made meanwhile is none of theirs.
        """
        self._settle()
        if not after:
            self._locks.lock_all()
        found = self._run(tables.READ_ALL_OF, (after, list(self._locks.held), limit))
        return list(map(StoredEvent._make, found))

    def read_organization(
        self, organization: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return an organization's events past a sequence, oldest first."""
        self._settle()
        return super().read_organization(organization, after=after, limit=limit)

    def heads(self) -> Sequence[Head]:
        """Return where every organization's chain ends, by organization."""
        self._settle()
        return super().heads()

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        tip = self._pending.tips.get(organization)
        return tip.head if tip else super().head(organization)

    def get_object(self, object_id: str) -> ObjectRow | None:
        """Return the object of an id."""
        if object_id in self._pending.by_id:
            return self._pending.by_id[object_id]
        foreseen = self._owners.pop(object_id, None)
        if foreseen is not None:
            return foreseen
        row = super().get_object(object_id)
        if row is not None and row.organization in self._locks.held:
            self._pending.versions.setdefault(row.id, row.version)
        return row

    def find_object(self, kind: str, parent: str, folded: str) -> ObjectRow | None:
        """Return the object of a folded name."""
        self._settle()
        return super().find_object(kind, parent, folded)

    def objects_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[ObjectRow]:
        """Return objects of an organization, less itself, with ids past one, by id."""
        self._settle()
        return super().objects_page(organization, after=after, limit=limit)

    def page_keys(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[MarkedKey]:
        """Return the keys of what ``objects_page`` returns."""
        self._settle()
        return super().page_keys(organization, after=after, limit=limit)

    def list_objects(self, query: ObjectQuery) -> tuple[int, Sequence[ObjectKey]]:
        """Return how many objects a query finds, and the keys of those of its page."""
        self._settle()
        return super().list_objects(query)

    def all_objects(self) -> Sequence[ObjectRow]:
        """Return every object there is, by id."""
        self._settle()
        return super().all_objects()

    def record(self, caller: str, key: str) -> Record | None:
        """Return the answer kept under a caller's idempotency key.

        Asked again, it looks again: another writer may have been done meanwhile.
        """
        name = (caller, key)
        put = self._pending.known.get(name)
        if put is not None:
            return put
        if name in self._foreseen:
            return self._foreseen.pop(name)
        found = self._seen[name] = super().record(caller, key)
        return found

    def lease(self, organization: str) -> LeaseRow | None:
        """Return the last lease of a folded organization name, locked until the commit.

        Where there is none yet, the constraint decides who makes the first.
        """
        found = self._run(tables.LOCK_LEASE, (organization,)).fetchone()
        lease = self._leases[organization] = LeaseRow._make(found) if found else None
        return lease

    def tokens(self) -> Sequence[TokenRow]:
        """Return every token, by name. Other transactions that ask this wait for the commit."""
        self._run(tables.LOCK_META, ("instance",))
        return super().tokens()

    # Writing.

    def append(
        self, stream: StreamAt, events: Sequence[NewEvent], author: Author
    ) -> Sequence[StoredEvent]:
        """Append events to a stream.

        Raises:
            StreamConflictError: the stream is not at this version.
        """
        tip = self._tip(stream.organization)
        crashpoint("S3")
        self._expect(stream)
        stored = []
        for new in events:
            event, head = chained(tip.head, stream, new, author, self._now())
            tip = Tip(head, self._locks.next_position(tip.position))
            event = StoredEvent(tip.position, *event[1:])
            stored.append(event)
            stream = StreamAt(event.organization, event.stream, event.version)
            crashpoint("S4")
        pending = self._pending
        pending.events += stored
        pending.tips[stream.organization] = tip
        pending.unsent.add(stream.organization)
        pending.versions[stream.id] = stream.version
        return stored

    def _tip(self, organization: str) -> Tip:
        """Return an organization's end, which only this transaction can move from now on."""
        known = self._pending.tips.get(organization) or self._locks.lock(organization)
        if known is None:
            self._flush()  # so that a savepoint covers the row that is made now
            known = self._locks.lock_new(organization)
        return known

    def _expect(self, stream: StreamAt) -> None:
        known = self._pending.versions.get(stream.id)
        if known is None and stream.version:
            known = super().stream_version(stream.id)
        if known not in {None, stream.version}:
            raise StreamConflictError

    def put_object(self, row: ObjectRow) -> None:
        """Insert an object, or change the one of its id.

        Raises:
            NameTakenError: another object has its name.
            StreamConflictError: another object has its client id.
        """
        if row.parent and row.organization in self._locks.held:
            if self._holder(row.organization, name_of(row)) not in {None, row.id}:
                raise NameTakenError
            self._pending.objects.append((tables.PUT_OBJECT, row))
            if len(self._pending) >= SENT_AT_ONCE:
                self._flush()
        else:
            self._put_now(row)
        self._pending.by_id[row.id] = row
        self._pending.names[name_of(row)] = row.id
        crashpoint("S5")

    def _holder(self, organization: str, name: NameKey) -> str | None:
        """Return who has a name, as far as this transaction got."""
        holder = self._pending.names.get(name) or self._locks.holder(organization, name)
        if holder is not None and holder in self._pending.by_id:
            row = self._pending.by_id[holder]
            return holder if row is not None and name_of(row) == name else None
        return holder

    def _put_now(self, row: ObjectRow) -> None:
        """Put an object whose name no lock keeps free: the constraint decides."""
        self._flush()
        try:
            self._run(tables.PUT_OBJECT, row)
        except psycopg.errors.UniqueViolation as error:
            taken = error.diag.constraint_name == tables.NAME_CONSTRAINT
            raise (NameTakenError if taken else StreamConflictError) from error

    def remove_object(self, object_id: str) -> None:
        """Remove an object; its events stay."""
        self._pending.objects.append((tables.REMOVE_OBJECT, (object_id,)))
        self._pending.by_id[object_id] = None
        crashpoint("S5")

    def clear_objects(self) -> None:
        """Remove every object, to make them anew from the events."""
        self._flush()
        self._locks.lock_all()
        self._run(tables.CLEAR_OBJECTS, (list(self._locks.held),))
        self._locks.emptied()
        self._pending.by_id.clear()
        self._pending.names.clear()
        self._owners.clear()

    def put_record(self, record: Record) -> None:
        """Keep an answer. The seal it names may follow, up to the commit.

        Another writer who has kept one meanwhile is noticed when it is sent.
        """
        name = (record.caller, record.key)
        before = self._pending.known.get(name)
        if before is None:
            before = self._seen[name] if name in self._seen else self.record(*name)
        if before is not None:
            self._pending.records.append((tables.DROP_RECORD, (*name, before.expires_at)))
        self._pending.records.append((tables.ADD_RECORD, record))
        self._pending.known[name] = record
        crashpoint("S6")

    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come, where that was not done just now."""
        if self._is_due(now):
            self._flush()
            self._expire_owed(now)
            self._run(tables.EXPIRE_RECORDS, (now,))
            self._run(tables.EXPIRE_SEALS, (now,))
            self._pending.known.clear()
            self._foreseen.clear()
            self._seen.clear()

    def put_lease(self, lease: LeaseRow) -> None:
        """Make this the lease of its organization name.

        Raises:
            StreamConflictError: somebody else just made the first one.
        """
        name = lease.organization
        held = self._leases[name] if name in self._leases else self.lease(name)
        self._flush()
        statement = tables.ADD_LEASE if held is None else tables.PUT_LEASE
        if not self._run(statement, lease).rowcount:
            raise StreamConflictError
        self._leases[name] = lease

    def put_token(self, token: TokenRow) -> None:
        """Insert a token, or change the one of its name."""
        self._flush()
        self._run(tables.PUT_TOKEN, token)
