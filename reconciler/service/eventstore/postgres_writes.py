"""Writing the rows of a PostgreSQL store, inside a transaction that the caller begins.

Isolation is READ COMMITTED, and it is enough. The first append to an organization locks its head
row; all that is decided by then (versions, names, the chain) is looked up after that, and no other
transaction can change it before the commit. What needs no head is held by a lock on its own row
(leases, tokens, seals) or by a unique constraint (idempotency keys, names of organizations). A
stricter level would refuse writers that do not disturb each other, and each statement here has to
see what was committed while it waited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import psycopg

from reconciler.resources.process import crashpoint
from reconciler.service.eventstore import postgres_schema as schema
from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore.errors import NameTakenError, StreamConflictError
from reconciler.service.eventstore.postgres_connection import Connection
from reconciler.service.eventstore.postgres_unit import (
    SENT_AT_ONCE,
    ChainEnd,
    NameKey,
    UnitOfWork,
    name_of,
)
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
)
from reconciler.service.eventstore.sql import PAGE


class PostgresTransaction(UnitOfWork):
    """The rows, and writing them.

    Attributes:
        _ends: Ends of the chains that this transaction has moved on.
        _versions: Of streams whose organization is locked.
        _objects: Objects that this transaction changed; None where it removed them.
        _names: Ids of the objects that got a name in this transaction, by name.
        _put: Records that this transaction put.
        _seen: Records as they were last looked up; ``_unread`` of them were not answered yet.
        _leases: As they were last read or written, their rows locked.
    """

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
        self._ends: dict[str, ChainEnd] = {}
        self._versions: dict[str, int] = {}
        self._objects: dict[str, ObjectRow | None] = {}
        self._names: dict[NameKey, str] = {}
        self._put: dict[tuple[str, str], Record] = {}
        self._seen: dict[tuple[str, str], Record | None] = {}
        self._unread: set[tuple[str, str]] = set()
        self._leases: dict[str, LeaseRow | None] = {}

    def prefetch(self, asked: Lookups) -> None:
        """Look up in one round trip what is going to be asked for."""
        self._asked = asked
        callers = sorted({caller for caller, _ in asked.records})
        keys = sorted({key for _, key in asked.records})
        with self._connection.pipeline():
            # Records first: each statement sees what was committed before it, so an object is then
            # never older than the record of a call that changed it. In the other order, another
            # server may commit a new secret between the two, and a retry of that call would find
            # the old secret in the object and be refused.
            records = self._connection.execute(statements.RECORDS, (callers, keys))
            objects = self._connection.execute(statements.OBJECTS, (list(asked.objects),))
        self._keep_found(objects)
        known = {(record.caller, record.key): record for record in map(Record._make, records)}
        self._seen = {name: known.get(name) for name in asked.records}
        self._unread = set(asked.records)

    def _undo(self, start: int) -> None:
        super()._undo(start)
        self._leases.clear()  # their rows may be locked no more

    # Reading what this transaction may have changed.

    def stream_version(self, stream: str) -> int:
        """Return how many events a stream has."""
        known = self._versions.get(stream)
        return self._stored.stream_version(stream) if known is None else known

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Return events of every stream past a position, those of one organization in order.

        Every organization there is by then is locked, so that a rebuild from the log knows all of
        it. One that is made meanwhile is no part of that.
        """
        if not after:
            self._lock_all()
        rest = "WHERE position > ? AND organization = ANY(?) ORDER BY position LIMIT ?"
        return self._all(StoredEvent, "events", rest, after, list(self._locked), limit)

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        end = self._ends.get(organization)
        return end.head if end else self._stored.head(organization)

    def get_object(self, object_id: str) -> ObjectRow | None:
        """Return the object of an id."""
        if object_id in self._objects:
            return self._objects[object_id]
        if object_id in self._found:
            return self._found[object_id]
        return self._stored.get_object(object_id)

    def record(self, caller: str, key: str) -> Record | None:
        """Return the answer kept under a caller's idempotency key.

        Asked again, it looks again: another writer may have been done meanwhile. Then the objects
        that were looked up before it are older than the record, and looked up again, too.
        """
        name = (caller, key)
        if name in self._put:
            return self._put[name]
        if name in self._unread:
            self._unread.remove(name)
        else:
            self._found.clear()
            self._seen[name] = self._stored.record(caller, key)
        return self._seen[name]

    def lease(self, organization: str) -> LeaseRow | None:
        """Return the last lease of a folded organization name, locked until the commit.

        The constraint decides which transaction makes an organization's first lease.
        """
        found = self._connection.execute(statements.LOCK_LEASE, (organization,)).fetchone()
        lease = self._leases[organization] = LeaseRow._make(found) if found else None
        return lease

    def tokens(self) -> Sequence[TokenRow]:
        """Return every token, by name. Other transactions that ask this wait for the commit."""
        self._connection.execute(statements.LOCK_META, ("instance",))
        return super().tokens()

    def token(self, sha256: bytes) -> TokenRow | None:
        """Return the token of a hash. No change of a token ever waits to be sent."""
        return self._stored.token(sha256)

    def seal(self, seal_id: str) -> SealRow | None:
        """Return a seal, which no other transaction can change from then on.

        Two writers may end the custody of two secrets of one seal at the same time. The lock of
        the row orders them: the second one reads which secrets are still owed after the first one
        committed.
        """
        return self._one(SealRow, "seals", "WHERE id = ? FOR UPDATE", seal_id)

    # Writing.

    def append(
        self, stream: StreamAt, events: Sequence[NewEvent], author: Author
    ) -> Sequence[StoredEvent]:
        """Append events to a stream.

        Raises:
            StreamConflictError: the stream is not at this version.
        """
        end = self._ends.get(stream.organization) or self._lock(stream.organization)
        crashpoint("S3")
        self._expect(stream)
        stored = []
        for new in events:
            event, head = chained(end.head, stream, new, author, self._now())
            end = ChainEnd(head, self._next_position(end.position))
            event = StoredEvent(end.position, *event[1:])
            stored.append(event)
            stream = StreamAt(event.organization, event.stream, event.version)
            self._queue.append((statements.ADD_EVENT, event))
            # One row a chain is written at the commit, whatever number of them waits.
            self._queue.append((statements.PUT_HEAD, (*head, end.position)))
            crashpoint("S4")
        self._note(self._ends, stream.organization, end)
        self._note(self._versions, stream.id, stream.version)
        return stored

    def _expect(self, stream: StreamAt) -> None:
        """Compare versions; that of a new stream is left to the constraint.

        The log is what counts. The row of an object has a version, too, but a row that is damaged,
        or was restored from an older copy, would leave a gap in the stream.
        """
        known = self._versions.get(stream.id)
        if known is None and stream.version:
            known = self._logged.get(stream.id)
            if known is None:
                known = self._stored.stream_version(stream.id)
        if known not in {None, stream.version}:
            raise StreamConflictError

    def put_object(self, row: ObjectRow) -> None:
        """Insert an object, or change the one of its id.

        Raises:
            NameTakenError: another object has its name.
            StreamConflictError: another object has its client id.
        """
        # The lock of the organization keeps other writers from its names until the commit, so the
        # row may wait. The name of an organization itself is under no lock.
        if row.parent and row.organization in self._locked:
            if self._holder(name_of(row)) not in {None, row.id}:
                raise NameTakenError
            self._queue.append((statements.PUT_OBJECT, row))
            if len(self._queue) >= SENT_AT_ONCE:
                self._send()
        else:
            self._put_now(row)
        self._note(self._objects, row.id, row)
        self._note(self._names, name_of(row), row.id)
        crashpoint("S5")

    def _holder(self, name: NameKey) -> str | None:
        """Return the id of the object that has a name in this transaction."""
        holder = self._names.get(name) or self._stored_holder(name)
        if holder is not None and holder in self._objects:
            row = self._objects[holder]
            return holder if row is not None and name_of(row) == name else None
        return holder

    def _put_now(self, row: ObjectRow) -> None:
        """Put an object whose name no lock keeps free: the constraint decides."""
        try:
            self._write(statements.PUT_OBJECT_NOW, row)
        except psycopg.errors.UniqueViolation as error:
            taken = error.diag.constraint_name == schema.NAME_CONSTRAINT
            raise (NameTakenError if taken else StreamConflictError) from error

    def remove_object(self, object_id: str) -> None:
        """Remove an object; its events stay."""
        self._queue.append((statements.REMOVE_OBJECT, (object_id,)))
        self._note(self._objects, object_id, None)
        crashpoint("S5")

    def clear_objects(self) -> None:
        """Remove every object, to make them anew from the events."""
        self._lock_all()
        self._write(statements.CLEAR_OBJECTS, (list(self._locked),))
        self._is_empty = True
        self._note_clear(self._objects)
        self._note_clear(self._names)

    def put_record(self, record: Record) -> None:
        """Keep an answer. The seal it names may follow, up to the commit.

        A record that another writer has kept meanwhile is a conflict when this one is sent.
        """
        name = (record.caller, record.key)
        before = self._put.get(name)
        if before is None:
            before = self._seen[name] if name in self._seen else self.record(*name)
        # Removed by its time, and not just by its key: a record that another writer has put in its
        # place since is left alone, and makes the INSERT fail.
        if before is not None:
            self._queue.append((statements.DROP_RECORD, (*name, before.expires_at)))
        self._queue.append((statements.ADD_RECORD, record))
        self._note(self._put, name, record)
        crashpoint("S6")

    def put_seal(self, seal: SealRow) -> None:
        """Keep a seal, in the place of one of its id."""
        self._queue.append((statements.PUT_SEAL, seal))

    def remove_seal(self, seal_id: str) -> None:
        """Remove a seal for good; what refers to it finds nothing."""
        self._queue.append((statements.REMOVE_SEAL, (seal_id,)))

    def put_owed(self, row: OwedRow) -> None:
        """Keep that a secret is owed, in the place of another of the same application."""
        self._queue.append((statements.PUT_OWED, row))

    def remove_owed(self, row: OwedRow) -> None:
        """Remove an owed secret, unless a newer one has taken its place."""
        self._queue.append((statements.REMOVE_OWED, (row.id, row.made_at)))

    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come, where that was not done just now."""
        if not self._is_due(now):
            return
        self._send()  # a record that was put in this transaction may have expired, too
        for statement in statements.EXPIRE:
            self._connection.execute(statement, (now,))
        self._note_clear(self._put)
        self._seen.clear()
        self._unread.clear()

    def upgrade(self) -> bool:
        """Give a store of an earlier version the tables of this one; return whether it was one."""
        self._send()
        return schema.upgrade(self._connection)

    def put_lease(self, lease: LeaseRow) -> None:
        """Make this the lease of its organization name.

        Raises:
            StreamConflictError: another transaction just made the first one.
        """
        name = lease.organization
        held = self._leases[name] if name in self._leases else self.lease(name)
        # A row that exists is locked since it was read. The first one of a name is not, so the
        # insert must not overwrite what another transaction made meanwhile.
        statement = statements.ADD_LEASE if held is None else statements.PUT_LEASE
        if not self._write(statement, lease).rowcount:
            raise StreamConflictError
        self._leases[name] = lease

    def put_token(self, token: TokenRow) -> None:
        """Insert a token, or change the one of its name."""
        self._write(statements.PUT_TOKEN, token)
