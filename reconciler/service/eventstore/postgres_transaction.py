"""One unit of work on a PostgreSQL store: what is locked, looked up, waits, is sent and undone.

A transaction has three steps, of one round trip each where all goes as announced:

1. The heads of the organizations that will be written to are locked, and after that, what the calls
   will probably ask for is looked up (``Lookups``). It stays true until the commit, because no
   other transaction writes to these organizations.
2. Rows are decided on. They are known here (``Changes``), and sent a few calls at a time, one
   statement for all rows of a table: a statement costs far more than a row does. Nothing is waited
   for, so the database writes rows while the next calls are decided on.
3. The rest is sent with the commit.

A statement that must see the rows, such as one that lists, sends them first. Only then does the
database get the savepoint. Anything that was not announced costs a lookup of its own. A row that
the database refuses fails the next statement that is waited for, and with it the transaction.

Isolation is READ COMMITTED, and it is enough: each statement has to see what was committed while it
waited. What is decided under the lock of a head stays true until the commit. What needs no head is
held by a lock on its own row (leases, tokens, seals) or by a unique constraint (idempotency keys,
names of organizations). A stricter level would refuse writers that do not disturb each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg

from reconciler.resources.process import crashpoint
from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore import tables
from reconciler.service.eventstore.changes import UNKNOWN, Changes, Key, Waiting
from reconciler.service.eventstore.errors import (
    NameTakenError,
    StreamConflictError,
)
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.postgres_connection import Connection
from reconciler.service.eventstore.postgres_errors import (
    CONFLICT,
    MAYBE_COMMITTED,
    NOT_ON_STANDBY,
    first_cause,
)
from reconciler.service.eventstore.postgres_statements import ChainEnd, batches
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
    TrustRow,
    first_head,
)
from reconciler.service.eventstore.sql import PAGE, Found, Values
from reconciler.service.eventstore.tables import OWED, SEALS, Table
from reconciler.service.eventstore.writers import WRITERS, require_current

SENT_AT_ONCE = 96  # rows that wait, and what is known of them: about 20 calls
REFILL = 32  # positions that are taken at once where more are needed than announced
HEADS, EVENTS, OBJECTS = tables.HEADS.name, tables.EVENTS.name, tables.OBJECTS.name
RECORDS = tables.RECORDS.name
# Kept with the rows, so that a savepoint undoes them too; none of these is ever sent.
NAMES = "names"  # ids of objects by parent, kind and folded name
STREAMS = "streams"  # versions by stream
COMPLETE = "complete"  # parents all of whose children are known, and the following
IS_EMPTY = (COMPLETE, "all")
IS_ASKED = (COMPLETE, "asked")  # with the lookups that were made
HAS_ALL = ("locked", "every head")
YES = "yes"
# Of the warning of a COMMIT whose wait for a standby was cancelled: it is on the primary alone.
UNREPLICATED = "01000"
LOOKED_UP = (OBJECTS, NAMES, STREAMS, COMPLETE)


def _key_of(table: str, row: Values) -> Key:
    """Return the key of a row, which its first columns are."""
    return (table, *map(str, row[: 2 if table == RECORDS else 1]))


def _columns(pairs: Collection[tuple[str, str]]) -> Sequence[list[str]]:
    """Return pairs as two lists."""
    return [list(column) for column in zip(*pairs, strict=True)]


class PostgresTransaction(Transaction):
    """A view of a store whose changes wait until they must be sent.

    Attributes:
        _stored: What the database has, without what waits.
        _asked: The lookups that were announced.
        _positions: Numbers that no other transaction has, for events to come.
        _has_savepoint: Whether the database has a savepoint, which may be of an earlier block.
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
        """Begin a transaction.

        Raises:
            psycopg.Error: the database failed, or another transaction kept a lock for too long.
        """
        super().__init__(self._run, statements.DIALECT)
        self._connection = connection
        self._place = place
        self._stored = statements.snapshot(connection)
        self._changes = Changes()
        self._asked = asked
        self._positions: deque[int] = deque()
        self._has_savepoint = False
        self._now = now
        self._is_due = is_due
        self._told: set[Key] = set()
        if asked == NO_LOOKUPS:
            statements.writing(connection)
        else:
            self._look_up(asked.organizations, asked.records, begins=True)

    def _look_up(
        self,
        organizations: Collection[str],
        records: Collection[tuple[str, str]] = (),
        *,
        begins: bool = False,
    ) -> None:
        """Wait for heads and lock them, and look up what was announced, in one round trip."""
        run, asked, changes = self._connection.execute, self._asked, self._changes
        ids = list(asked.objects)
        # In READ COMMITTED each statement sees what was committed before it began. Those after the
        # lock begin once it is had, although they were sent with it. Records come before objects,
        # so that an object whose organization is not locked is never older than the record of a
        # call that changed it: a retry of that call would find the old secret in the object.
        with self._connection.pipeline() if begins else nullcontext():
            if begins:
                statements.writing(self._connection)
            if begins and asked.is_shared:
                run(statements.BE_IMPATIENT)
            heads = run(statements.LOCK_HEADS, (list(organizations),))
            kept = run(statements.RECORDS, _columns(records)) if records else ()
            objects = run(statements.OBJECTS, (ids,))
            names = run(statements.NAMES, _columns(asked.names)) if asked.names else ()
            positions = run(statements.POSITIONS, (asked.events - len(self._positions),))
        self._positions.extend(number for (number,) in positions)
        changes.forget(*LOOKED_UP)
        for key in (
            *((HEADS, name) for name in organizations),
            *((RECORDS, *name) for name in records),
            *((OBJECTS, name) for name in ids),
        ):
            changes.learn(key, None)
        for end in map(ChainEnd._make, heads):
            changes.learn((HEADS, end.organization), end)
        for record in map(Record._make, kept):
            changes.learn((RECORDS, record.caller, record.key), record)
        for *columns, version in objects:
            row = ObjectRow._make(columns)
            changes.learn((OBJECTS, row.id), row)
            changes.learn((STREAMS, row.id), version or 0)
        for *name, holder in names:
            changes.learn((NAMES, *name), holder)
        changes.learn(IS_ASKED, asked)

    def _end_of(self, stream: StreamAt) -> ChainEnd:
        """Return the end of an organization's chain, which only this transaction can now move."""
        key = (HEADS, stream.organization)
        if self._changes.get(key) is UNKNOWN:
            # The first stream of a new organization has its id: there is no head to wait for.
            if stream.id == stream.organization and not stream.version:
                self._changes.learn(key, None)
            else:
                self._look_up([stream.organization])
        end: ChainEnd | None = self._changes.get(key)
        return end or ChainEnd(*first_head(stream.organization), 0)

    def _lock_all(self) -> None:
        """Wait for every head there is, once. What is made after that is not part of it."""
        if self._changes.get(HAS_ALL) is UNKNOWN:
            for end in map(ChainEnd._make, self._connection.execute(statements.LOCK_ALL_HEADS)):
                self._changes.learn((HEADS, end.organization), end)
            self._changes.forget(*LOOKED_UP)  # they were made before these locks
            self._changes.learn(HAS_ALL, YES)

    def _locked(self) -> list[str]:
        return [str(name) for _, name in self._changes.there_are(HEADS)]

    def _is_free(self, parent: str, folded: str) -> bool:
        """Return whether no object has a name that was not found."""
        if YES in {self._changes.get(IS_EMPTY), self._changes.get((COMPLETE, parent))}:
            return True
        asked = self._changes.get(IS_ASKED)
        return isinstance(asked, Lookups) and (parent, folded) in asked.names

    def _next_position(self, last: int) -> int:
        """Return a position past one that no other transaction has.

        Positions come from a sequence of the database, without waiting for other writers. One is
        used for an organization only while its head is locked, and only if it is past the last one
        there. So the order of an organization's positions is that of its commits, also where a
        database hands out numbers of a sequence in blocks, to each connection its own.
        """
        while True:
            while self._positions:
                position = self._positions.popleft()
                if position > last:
                    return position
            found = self._connection.execute(statements.POSITIONS, (REFILL,))
            self._positions.extend(number for (number,) in found)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._send_ahead()
        self._changes.begin()
        try:
            yield
        except BaseException as error:
            if self._changes.is_held and not isinstance(error, psycopg.Error):
                self._connection.execute("ROLLBACK TO SAVEPOINT one")
            self._changes.undo()
            raise
        self._changes.keep()

    def _send_ahead(self) -> None:
        """Let the database write what waits outside a savepoint, once it is worth a statement.

        Heads change with every call, so they are sent last.
        """
        if self._changes.count() >= SENT_AT_ONCE and not self._changes.is_open:
            self._hand_over(self._changes.take(but=HEADS))

    def _run(self, statement: str, values: Sequence[object]) -> Found:
        """Run a statement that must see everything that was decided, after sending that."""
        self._send()
        return statements.run(self._connection, statement, values)

    def _send(self, *, writes: bool = False) -> None:
        """Send what waits, before a statement that must see it.

        The database gets the savepoint before what was decided in it, and before the statement if
        that ``writes``.
        """
        self._hand_over(self._changes.take())
        if self._changes.has_block() or (writes and self._changes.is_open):
            self._hold()
            self._hand_over(self._changes.take(block=True))

    def _hold(self) -> None:
        """Give the database the savepoint; the one of an earlier block ends only now."""
        if not self._changes.is_held:
            if self._has_savepoint:
                self._connection.execute("RELEASE SAVEPOINT one")
            self._connection.execute("SAVEPOINT one")
            self._changes.is_held = self._has_savepoint = True

    def _hand_over(self, waiting: Iterable[Waiting]) -> None:
        for statement, rows in batches(waiting):
            self._connection.execute(statement, (rows,))

    def sign(self, writers: int) -> None:
        """Keep the version of these writers in the store, unless it has a higher one."""
        self._connection.execute(statements.SIGN, (str(writers), WRITERS, writers))

    @contextmanager
    def carried_out(self, writers: int) -> Iterator[None]:
        """Send what the block decides, and commit; ``writers`` is the version of this writer.

        Raises:
            StoreError: it is too old for the store.
            StreamConflictError: another writer had the same idea first.
            StoreConflictError: the database undid it all.
            StoreUnreachableError: the answer is missing, or a synchronous standby may not have
                the commit; it may have been carried out.
        """
        is_committing = False
        warnings: list[str | None] = []

        def note(notice: psycopg.errors.Diagnostic) -> None:
            warnings.append(notice.sqlstate)

        self._connection.add_notice_handler(note)
        try:
            with self._connection.pipeline():
                yield
                crashpoint("S7")
                self._hand_over(self._changes.take())
                self._connection.execute(statements.REQUIRE_CURRENT, (writers, WRITERS))
                is_committing = True  # from now on, whether COMMIT arrived is not known
                committed = self._connection.execute("COMMIT")
        except psycopg.Error as error:
            is_lost = isinstance(error, psycopg.OperationalError) and self._connection.closed
            if is_committing and is_lost:
                raise MAYBE_COMMITTED.at(self._place) from error
            if isinstance(first_cause(error), psycopg.errors.DivisionByZero):
                self._connection.rollback()
                require_current(self._stored.meta(WRITERS), writers)
            if isinstance(first_cause(error), psycopg.errors.UniqueViolation):
                raise StreamConflictError from error
            raise
        finally:
            self._connection.remove_notice_handler(note)
        if UNREPLICATED in warnings:
            raise NOT_ON_STANDBY.at(self._place)
        # In a transaction that failed, COMMIT is answered with ROLLBACK, and not with an error.
        if committed.statusmessage != "COMMIT":
            raise CONFLICT.at(self._place)

    # Reading what this transaction may have changed. Other reads send what waits before them.

    def stream_version(self, stream: str) -> int:
        known = self._changes.get((STREAMS, stream))
        return self._stored.stream_version(stream) if known is UNKNOWN else int(known)

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Lock every organization there is, so that a rebuild from the log knows all of it.

        One that is made meanwhile is no part of that.
        """
        if not after:
            self._lock_all()
        rest = "WHERE position > ? AND organization = ANY(?) ORDER BY position LIMIT ?"
        return self._all(StoredEvent, EVENTS, rest, after, self._locked(), limit)

    def head(self, organization: str) -> Head:
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
        """Look again where it is asked again: another writer may have been done meanwhile.

        Then the objects that were looked up before it may be older than the record.
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
        """Let other transactions that ask this wait for the commit."""
        self._connection.execute(statements.LOCK_META, ("instance",))
        return super().tokens()

    def trusts(self) -> Sequence[TrustRow]:
        """Let other transactions that ask this wait for the commit."""
        self._connection.execute(statements.LOCK_META, ("instance",))
        return super().trusts()

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

    def clear_objects(self) -> None:
        self._lock_all()
        self._send(writes=True)
        self._connection.execute(statements.CLEAR_OBJECTS, (self._locked(),))
        self._changes.forget(*LOOKED_UP)
        self._changes.learn(IS_EMPTY, YES)

    def _put(self, table: Table, row: Values) -> None:
        key = _key_of(table.name, row)
        if isinstance(row, ObjectRow):
            self._send_ahead()
            self._take_name(row)
        elif isinstance(row, (Record, LeaseRow)) and self._changes.get(key) is UNKNOWN:
            self._row(table, *key[1:])  # a first one that others make meanwhile is a conflict
        self._changes.leave(key, row)

    def _remove(self, table: Table, row: Values) -> None:
        key = _key_of(table.name, row)
        if isinstance(row, ObjectRow):
            self._free_name(row.id)
        known = self._changes.get(key)
        if known is UNKNOWN and table.guard:
            self._changes.learn(key, row)
        elif table.guard and (known is None or table.known_in(known) != table.known_in(row)):
            return
        self._changes.leave(key, None)

    def _take_name(self, row: ObjectRow) -> None:
        # The lock of the organization keeps other writers from its names until the commit. Names of
        # organizations are under no lock: the constraint decides at the commit.
        if self._holder(row.parent, row.kind, row.folded) not in {None, row.id}:
            raise NameTakenError
        self._free_name(row.id)
        self._changes.leave((NAMES, row.parent, row.kind, row.folded), row.id)

    def _free_name(self, object_id: str) -> None:
        row = self.get_object(object_id)
        if row is not None:
            self._changes.leave((NAMES, row.parent, row.kind, row.folded), None)

    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come, where that was not done just now."""
        if not self._is_due(now):
            return
        self._send(writes=True)  # a record of this transaction may have expired, too
        for statement in statements.EXPIRE:
            self._connection.execute(statement, (now,))
        self._changes.forget(RECORDS, SEALS.name, OWED.name)
