"""Writing the rows of a SQLite store, inside a transaction that the caller begins.

Nobody else writes meanwhile, so what is decided holds. Events, heads and records therefore wait,
and are written many at a time: before a statement that must see them, and before the commit.
Objects are written at once, for their constraints decide who has a name.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from reconciler.resources.crashpoint import crashpoint
from reconciler.service.eventstore import sqlite_tables as tables
from reconciler.service.eventstore.chain import chained
from reconciler.service.eventstore.errors import NameTakenError, StreamConflictError
from reconciler.service.eventstore.port import PAGE
from reconciler.service.eventstore.rows import (
    Author,
    Foresight,
    Head,
    LeaseRow,
    NewEvent,
    ObjectRow,
    OwedRow,
    Record,
    SealRow,
    StoredEvent,
    StreamAt,
    TokenRow,
)
from reconciler.service.eventstore.sqlite_files import is_outdated
from reconciler.service.eventstore.sqlite_rows import SqliteSnapshot


class Waiting:
    """Rows that were decided on and not written yet.

    Attributes:
        heads: By organization; they stay, for they are looked up again.
        versions: Of streams that were appended to; they stay, too.
        records: By caller and key.
        owed: By application.
    """

    def __init__(self) -> None:
        self.events: list[StoredEvent] = []
        self.heads: dict[str, Head] = {}
        self.versions: dict[str, int] = {}
        self.records: dict[tuple[str, str], Record] = {}
        self.owed: dict[str, OwedRow] = {}

    def add(self, later: Waiting) -> None:
        """Take over what was decided later."""
        self.events += later.events
        self.heads.update(later.heads)
        self.versions.update(later.versions)
        self.records.update(later.records)
        self.owed.update(later.owed)

    @property
    def is_empty(self) -> bool:
        """Return whether no row waits to be written."""
        return not (self.events or self.records or self.owed)


class SqliteTransaction(SqliteSnapshot):
    """The rows, and writing them."""

    def __init__(self, connection: sqlite3.Connection, now: Callable[[], int]) -> None:
        super().__init__(connection)
        self._connection = connection
        self._cursor = connection.cursor()
        self._write = self._cursor.execute
        self._now = now
        self._position = 0
        self._foreseen: dict[tuple[str, str], Record | None] = {}
        self._outer = Waiting()
        self._inner: Waiting | None = None  # what was decided since the savepoint
        self._made: list[str] = []  # objects that are new since it
        self._is_held = False  # whether SQLite has a savepoint, too

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done in the block if an exception leaves it, and only that.

        SQLite gets a savepoint of its own once something is done that is not undone by
        forgetting what waits and by removing objects that are new: most blocks do without.
        """
        self._inner, self._made = Waiting(), []
        try:
            yield
            if self._is_held:
                self._write("RELEASE one")
            self._outer.add(self._inner)
        except BaseException:
            if self._connection.in_transaction:  # a full disk has rolled all of it back already
                self._undo()
            raise
        finally:
            self._inner, self._is_held = None, False

    def _undo(self) -> None:
        if self._is_held:
            self._write("ROLLBACK TO one")
            self._write("RELEASE one")
            self._foreseen = {}
        for made in self._made:
            self._write(tables.REMOVE_OBJECT, (made,))

    def _hold(self) -> None:
        """Make sure that SQLite can undo what is done next, and that only."""
        if self._inner is not None and not self._is_held:
            self._settle(self._outer)
            self._write("SAVEPOINT one")
            self._is_held = True

    def foresee(self, asked: Foresight) -> None:
        """Look up at once what is going to be asked for, where one look is faster than many."""
        if not asked.records:
            return
        found = map(Record._make, self._run(tables.RECORDS, (json.dumps(list(asked.records)),)))
        known = {(record.caller, record.key): record for record in found}
        self._foreseen = {name: known.get(name) for name in asked.records}

    # Reading what may wait.

    def read_stream(
        self, stream: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return a stream's events past a version, oldest first."""
        self.flush()
        return super().read_stream(stream, after=after, limit=limit)

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Return events of every stream past a position, oldest first."""
        self.flush()
        return super().read_all(after=after, limit=limit)

    def read_organization(
        self, organization: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return an organization's events past a sequence, oldest first."""
        self.flush()
        return super().read_organization(organization, after=after, limit=limit)

    def heads(self) -> Sequence[Head]:
        """Return where every organization's chain ends, by organization."""
        self.flush()
        return super().heads()

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        for waiting in self._both():
            known = waiting.heads.get(organization)
            if known is not None:
                return known
        return super().head(organization)

    def record(self, caller: str, key: str) -> Record | None:
        """Return the answer kept under a caller's idempotency key."""
        name = (caller, key)
        for waiting in self._both():
            if name in waiting.records:
                return waiting.records[name]
        return self._foreseen[name] if name in self._foreseen else super().record(caller, key)

    def stream_version(self, stream: str) -> int:
        """Return how many events a stream has."""
        for waiting in self._both():
            if stream in waiting.versions:
                return waiting.versions[stream]
        return super().stream_version(stream)

    def owed(self, ids: Collection[str]) -> Sequence[OwedRow]:
        """Return the secrets that these applications owe."""
        self.flush()
        return super().owed(ids)

    def owed_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[OwedRow]:
        """Return secrets owed in an organization, of applications with ids past one, by id."""
        self.flush()
        return super().owed_page(organization, after=after, limit=limit)

    def owed_in(self, seal_id: str) -> Sequence[OwedRow]:
        """Return the owed secrets that a seal holds."""
        self.flush()
        return super().owed_in(seal_id)

    def _both(self) -> Sequence[Waiting]:
        """Return what waits, the latest first."""
        return (self._inner, self._outer) if self._inner is not None else (self._outer,)

    def flush(self) -> None:
        """Write all that waits.

        Raises:
            StreamConflictError: an event is of a stream and version that was there before.
        """
        if self._inner is not None and not self._inner.is_empty:
            self._hold()
            self._settle(self._inner)
        else:
            self._settle(self._outer)

    def _settle(self, waiting: Waiting) -> None:
        if waiting.events:
            try:
                self._cursor.executemany(tables.PUT_HEAD, list(waiting.heads.values()))
                self._cursor.executemany(tables.ADD_EVENT, waiting.events)
            except sqlite3.IntegrityError as error:
                raise StreamConflictError from error
            waiting.events = []
        if waiting.records:
            self._cursor.executemany(tables.PUT_RECORD, list(waiting.records.values()))
            waiting.records = {}
            self._foreseen = {}
        if waiting.owed:
            self._cursor.executemany(tables.PUT_OWED, list(waiting.owed.values()))
            waiting.owed = {}

    # Writing.

    def append(
        self, stream: StreamAt, events: Sequence[NewEvent], author: Author
    ) -> Sequence[StoredEvent]:
        """Append events to a stream.

        Raises:
            StreamConflictError: the stream is not at this version. Where a version is 0, this
                may be found out only when the rows are written.
        """
        head = self.head(stream.organization)
        crashpoint("S3")
        self._expect(stream)
        stored = []
        for new in events:
            event, head = chained(head, stream, new, author, self._now())
            event = StoredEvent(self._next_position(), *event[1:])
            stored.append(event)
            stream = StreamAt(event.organization, event.stream, event.version)
            crashpoint("S4")
        waiting = self._both()[0]
        waiting.events += stored
        waiting.heads[stream.organization] = head
        waiting.versions[stream.id] = stream.version
        return stored

    def _expect(self, stream: StreamAt) -> None:
        known = None
        for waiting in reversed(self._both()):
            known = waiting.versions.get(stream.id, known)
        if known is None and stream.version:
            known = super().stream_version(stream.id)
        if known not in {None, stream.version}:
            raise StreamConflictError

    def _next_position(self) -> int:
        if not self._position:
            (self._position,) = self._run(tables.LAST_POSITION).fetchone()
        self._position += 1
        return self._position

    def put_object(self, row: ObjectRow) -> None:
        """Insert an object, or change the one of its id.

        Raises:
            NameTakenError: another object has its name.
            StreamConflictError: another object has its client id.
        """
        try:
            if row.version == 1 or not self._change(tables.SET_OBJECT, (*row, row.id)):
                self._write(tables.ADD_OBJECT, row)
                if self._inner is not None and not self._is_held:
                    self._made.append(row.id)
        except sqlite3.IntegrityError as error:
            taken = "objects.folded" in str(error)
            raise (NameTakenError if taken else StreamConflictError) from error
        crashpoint("S5")

    def _change(self, statement: str, values: Sequence[object]) -> int:
        """Run a statement that SQLite has to undo; return how many rows it changed."""
        self._hold()
        return self._write(statement, values).rowcount

    def remove_object(self, object_id: str) -> None:
        """Remove an object; its events stay."""
        self._change(tables.REMOVE_OBJECT, (object_id,))
        crashpoint("S5")

    def clear_objects(self) -> None:
        """Remove every object, to make them anew from the events."""
        self._change(tables.CLEAR_OBJECTS, ())

    def put_record(self, record: Record) -> None:
        """Keep an answer. The seal it names may follow, up to the commit."""
        self._both()[0].records[record.caller, record.key] = record
        crashpoint("S6")

    def put_seal(self, seal: SealRow) -> None:
        """Keep a seal, in the place of one of its id."""
        self._change(tables.PUT_SEAL, seal)

    def remove_seal(self, seal_id: str) -> None:
        """Remove a seal for good; what refers to it finds nothing."""
        self._change(tables.REMOVE_SEAL, (seal_id,))

    def put_owed(self, row: OwedRow) -> None:
        """Keep that a secret is owed, in the place of another of the same application."""
        self._both()[0].owed[row.id] = row

    def remove_owed(self, row: OwedRow) -> None:
        """Remove an owed secret, unless a newer one has taken its place."""
        self.flush()
        self._change(tables.REMOVE_OWED, (row.id, row.made_at))

    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come."""
        self.flush()
        if self._run(tables.IS_OWED_TOO_LONG, (now,)).fetchone():
            self._change(tables.EXPIRE_OWED_SEALS, (now,))
            self._change(tables.EXPIRE_OWED, (now,))
        if self._change(tables.EXPIRE_RECORDS, (now,)):
            self._change(tables.EXPIRE_SEALS, (now,))
            self._foreseen = {}

    def upgrade(self) -> bool:
        """Give a store of an earlier version the tables of this one; return whether it was one."""
        if not is_outdated(self._connection):
            return False
        for statement in tables.UPGRADE:
            self._write(statement)
        return True

    def put_lease(self, lease: LeaseRow) -> None:
        """Make this the lease of its organization name."""
        self._change(tables.PUT_LEASE, lease)

    def put_token(self, token: TokenRow) -> None:
        """Insert a token, or change the one of its name."""
        self._change(tables.PUT_TOKEN, token)
