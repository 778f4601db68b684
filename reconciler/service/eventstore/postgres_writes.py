"""Writing the rows of a PostgreSQL store, inside a transaction that the caller begins.

Isolation is READ COMMITTED, and it is enough: each statement has to see what was committed while it
waited. What is decided under the lock of a head stays true until the commit. What needs no head is
held by a lock on its own row (leases, tokens, seals) or by a unique constraint (idempotency keys,
names of organizations). A stricter level would refuse writers that do not disturb each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore.changes import UNKNOWN, Key
from reconciler.service.eventstore.errors import NameTakenError, StreamConflictError
from reconciler.service.eventstore.postgres_connection import Connection
from reconciler.service.eventstore.postgres_statements import ChainEnd
from reconciler.service.eventstore.postgres_unit import (
    COMPLETE,
    EVENTS,
    HEADS,
    IS_EMPTY,
    LOOKED_UP,
    NAMES,
    OBJECTS,
    RECORDS,
    SENT_AT_ONCE,
    STREAMS,
    YES,
    UnitOfWork,
    key_of,
)
from reconciler.service.eventstore.rows import (
    NO_LOOKUPS,
    Head,
    LeaseRow,
    Lookups,
    ObjectRow,
    Record,
    StoredEvent,
    StreamAt,
    TokenRow,
)
from reconciler.service.eventstore.sql import PAGE, Values
from reconciler.service.eventstore.tables import OWED, SEALS, Table


class PostgresTransaction(UnitOfWork):
    """The rows, and writing them.

    Attributes:
        _told: Keys of the records that were asked for.
    """

    def __init__(
        self,
        connection: Connection,
        place: str,
        now: Callable[[], int],
        is_due: Callable[[int], bool],
        asked: Lookups = NO_LOOKUPS,
    ) -> None:
        super().__init__(connection, place, asked)
        self._now = now
        self._is_due = is_due
        self._told: set[Key] = set()

    # Reading what this transaction may have changed. Other reads send what waits before them.

    def stream_version(self, stream: str) -> int:
        """Return how many events a stream has."""
        known = self._changes.get((STREAMS, stream))
        return self._stored.stream_version(stream) if known is UNKNOWN else int(known)

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Return events of every stream past a position, those of one organization in order.

        Every organization there is by then is locked, so that a rebuild from the log knows all of
        it. One that is made meanwhile is no part of that.
        """
        if not after:
            self._lock_all()
        rest = "WHERE position > ? AND organization = ANY(?) ORDER BY position LIMIT ?"
        return self._all(StoredEvent, EVENTS, rest, after, self._locked(), limit)

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        end = self._changes.get((HEADS, organization))
        return end.head if isinstance(end, ChainEnd) else self._stored.head(organization)

    def _row(self, table: Table, *key: str) -> Any:
        """Return the row of a key, which is known from then on.

        Rows that no head protects are locked until the commit: two writers may end the custody of
        two secrets of one seal, and the second one must read which are still owed after the first.
        The constraint decides which transaction makes an organization's first lease.
        """
        name = (table.name, *key)
        row = self._changes.get(name)
        if row is UNKNOWN:
            is_missing = table.name == OBJECTS and self._changes.get(IS_EMPTY) == YES
            row = None if is_missing else statements.row_of(self._connection, table, key)
            self._changes.learn(name, row)
        return row

    def find_object(self, kind: str, parent: str, folded: str) -> ObjectRow | None:
        """Return the object of a folded name."""
        holder = self._holder(parent, kind, folded)
        return self.get_object(holder) if holder else None

    def _holder(self, parent: str, kind: str, folded: str) -> str | None:
        """Return the id of the object that has a name."""
        name = (NAMES, parent, kind, folded)
        holder: str | None = self._changes.get(name)
        if holder is UNKNOWN:
            is_free = self._is_free(parent, folded)
            row = None if is_free else self._stored.find_object(kind, parent, folded)
            holder = row.id if row else None
            self._changes.learn(name, holder)
        return holder

    def record(self, caller: str, key: str) -> Record | None:
        """Return the answer kept under a caller's idempotency key.

        Asked again, it looks again: another writer may have been done meanwhile. Then the objects
        that were looked up before it may be older than the record.
        """
        name = (RECORDS, caller, key)
        before = self._changes.get(name)
        if name in self._told and not self._changes.is_left(name):
            self._changes.forget_one(name)
        record = super().record(caller, key)
        if before is not UNKNOWN and record != before:
            self._changes.forget(*LOOKED_UP)
        self._told.add(name)
        return record

    def tokens(self) -> Sequence[TokenRow]:
        """Return every token, by name. Other transactions that ask this wait for the commit."""
        self._connection.execute(statements.LOCK_META, ("instance",))
        return super().tokens()

    # Writing.

    def _head_for(self, stream: StreamAt) -> Head:
        """Compare versions; that of a new stream is left to the constraint.

        The log is what counts. The row of an object has a version, too, but a row that is damaged,
        or was restored from an older copy, would leave a gap in the stream.
        """
        end = self._end_of(stream)
        if not stream.version and self._changes.get((STREAMS, stream.id)) is UNKNOWN:
            self._changes.learn((OBJECTS, stream.id), None)
            self._changes.learn((COMPLETE, stream.id), YES)
        elif self.stream_version(stream.id) != stream.version:
            raise StreamConflictError
        return end.head

    def _added(self, event: StoredEvent, head: Head) -> StoredEvent:
        last = self._changes.get((HEADS, head.organization))
        position = self._next_position(last.position if last else 0)
        added = StoredEvent(position, *event[1:])
        self._changes.leave((EVENTS, str(position)), added)
        self._changes.leave((HEADS, head.organization), ChainEnd(*head, position))
        self._changes.leave((STREAMS, event.stream), event.version)
        return added

    def put_object(self, row: ObjectRow) -> None:
        """Insert an object, or change the one of its id.

        Raises:
            NameTakenError: another object has its name.
        """
        # The lock of the organization keeps other writers from its names until the commit. Names of
        # organizations are under no lock: the constraint decides at the commit.
        if self._holder(row.parent, row.kind, row.folded) not in {None, row.id}:
            raise NameTakenError
        self._free_name(row.id)
        self._changes.leave((NAMES, row.parent, row.kind, row.folded), row.id)
        super().put_object(row)
        if not self._changes.is_open and self._changes.count() >= SENT_AT_ONCE:
            self._send()

    def remove_object(self, object_id: str) -> None:
        """Remove an object; its events stay."""
        self._free_name(object_id)
        super().remove_object(object_id)

    def _free_name(self, object_id: str) -> None:
        row = self.get_object(object_id)
        if row is not None:
            self._changes.leave((NAMES, row.parent, row.kind, row.folded), None)

    def clear_objects(self) -> None:
        """Remove every object, to make them anew from the events."""
        self._lock_all()
        with self._sending(writes=True):
            self._connection.execute(statements.CLEAR_OBJECTS, (self._locked(),))
        self._changes.forget(*LOOKED_UP)
        self._changes.learn(IS_EMPTY, YES)

    def put_record(self, record: Record) -> None:
        """Keep an answer. The seal it names may follow, up to the commit.

        A record that another writer has kept meanwhile is a conflict when this one is sent.
        """
        if self._changes.get(key_of(RECORDS, record)) is UNKNOWN:
            self.record(record.caller, record.key)
        super().put_record(record)

    def put_lease(self, lease: LeaseRow) -> None:
        """Make this the lease of its organization name.

        Where another transaction just made the first one, that is a conflict when this is sent.
        """
        self.lease(lease.organization)  # which locks it
        super().put_lease(lease)

    def put_token(self, token: TokenRow) -> None:
        """Insert a token, or change the one of its name."""
        super().put_token(token)
        self._send()

    def _put(self, table: Table, row: Values) -> None:
        self._changes.leave(key_of(table.name, row), row)

    def _remove(self, table: Table, row: Values) -> None:
        key = key_of(table.name, row)
        known = self._changes.get(key)
        if known is UNKNOWN and table.guard:
            self._changes.learn(key, row)
        elif table.guard and (known is None or table.known_in(known) != table.known_in(row)):
            return
        self._changes.leave(key, None)

    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come, where that was not done just now."""
        if not self._is_due(now):
            return
        with self._sending(writes=True):  # a record of this transaction may have expired, too
            for statement in statements.EXPIRE:
                self._connection.execute(statement, (now,))
        self._changes.forget(RECORDS, SEALS.name, OWED.name)
