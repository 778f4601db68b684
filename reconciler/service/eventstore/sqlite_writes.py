"""Writing the rows of a SQLite store, inside a transaction that the caller begins.

Every row is written at once, so reads need no second look, and a savepoint is one of SQLite. The
transaction has the only right to write, so what it reads stays true until the commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from reconciler.resources.crashpoint import crashpoint
from reconciler.service.eventstore import sqlite_tables as tables
from reconciler.service.eventstore.chain import chained
from reconciler.service.eventstore.errors import NameTakenError, StreamConflictError
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
)
from reconciler.service.eventstore.sql import SqlSnapshot
from reconciler.service.eventstore.sqlite_files import is_outdated


class SqliteTransaction(SqlSnapshot):
    """The rows, and writing them."""

    def __init__(self, connection: sqlite3.Connection, now: Callable[[], int]) -> None:
        self._connection = connection
        self._write = connection.cursor().execute
        self._now = now
        self._heads: dict[str, Head] = {}  # as this transaction left them
        super().__init__(self._write, tables.DIALECT)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done in the block if an exception leaves it, and only that."""
        # Savepoints never nest here, so one name will do.
        self._write("SAVEPOINT one")
        try:
            yield
        except BaseException:
            self._heads.clear()
            if self._connection.in_transaction:  # a full disk has rolled all of it back already
                self._write("ROLLBACK TO one")
                self._write("RELEASE one")
            raise
        self._write("RELEASE one")

    def prefetch(self, asked: Lookups) -> None:
        """Do nothing: a lookup in the file of this process costs no more alone than with others."""

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        return self._heads.get(organization) or super().head(organization)

    def append(
        self, stream: StreamAt, events: Sequence[NewEvent], author: Author
    ) -> Sequence[StoredEvent]:
        """Append events to a stream.

        Raises:
            StreamConflictError: the stream is not at this version.
        """
        head = self.head(stream.organization)
        crashpoint("S3")
        # A new stream of a chain that goes on needs no look: no stream has two first events.
        is_looked_up = stream.version or not head.events
        if is_looked_up and self.stream_version(stream.id) != stream.version:
            raise StreamConflictError
        if not head.events:
            self._write(tables.PUT_HEAD, head)  # an event refers to the head of its chain
        stored = []
        for new in events:
            event, head = chained(head, stream, new, author, self._now())
            position = self._added(event)
            self._write(tables.PUT_HEAD, head)
            self._heads[head.organization] = head
            stored.append(StoredEvent(position or 0, *event[1:]))
            stream = StreamAt(event.organization, event.stream, event.version)
            crashpoint("S4")
        return stored

    def _added(self, event: StoredEvent) -> int | None:
        """Insert an event and return its position."""
        try:
            return self._write(tables.ADD_EVENT, (None, *event[1:])).lastrowid
        except sqlite3.IntegrityError as error:
            if "events.stream" not in str(error):
                raise
            raise StreamConflictError from error

    def put_object(self, row: ObjectRow) -> None:
        """Insert an object, or change the one of its id.

        Raises:
            NameTakenError: another object has its name.
            StreamConflictError: another object has its client id.
        """
        # The event was appended before. Where the name is taken, the savepoint undoes it.
        try:
            self._write(tables.PUT_OBJECT, row)
        except sqlite3.IntegrityError as error:
            taken = "objects.folded" in str(error)
            raise (NameTakenError if taken else StreamConflictError) from error
        crashpoint("S5")

    def remove_object(self, object_id: str) -> None:
        """Remove an object; its events stay."""
        self._write(tables.REMOVE_OBJECT, (object_id,))
        crashpoint("S5")

    def clear_objects(self) -> None:
        """Remove every object, to make them anew from the events."""
        self._write(tables.CLEAR_OBJECTS)

    def put_record(self, record: Record) -> None:
        """Keep an answer. The seal it names may follow, up to the commit."""
        self._write(tables.PUT_RECORD, record)
        crashpoint("S6")

    def put_seal(self, seal: SealRow) -> None:
        """Keep a seal, in the place of one of its id."""
        self._write(tables.PUT_SEAL, seal)

    def remove_seal(self, seal_id: str) -> None:
        """Remove a seal for good; what refers to it finds nothing."""
        self._write(tables.REMOVE_SEAL, (seal_id,))

    def put_owed(self, row: OwedRow) -> None:
        """Keep that a secret is owed, in the place of another of the same application."""
        self._write(tables.PUT_OWED, row)

    def remove_owed(self, row: OwedRow) -> None:
        """Remove an owed secret, unless a newer one has taken its place."""
        self._write(tables.REMOVE_OWED, (row.id, row.made_at))

    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come."""
        # Each step removes what only the one before it can have set free. Most commits do none.
        if self._run(tables.IS_OWED_TOO_LONG, (now,)).fetchone():
            self._write(tables.EXPIRE_OWED_SEALS, (now,))
            self._write(tables.EXPIRE_OWED, (now,))
        if self._write(tables.EXPIRE_RECORDS, (now,)).rowcount:
            self._write(tables.EXPIRE_SEALS, (now,))

    def upgrade(self) -> bool:
        """Give a store of an earlier version the tables of this one; return whether it was one."""
        if not is_outdated(self._connection):
            return False
        for statement in tables.UPGRADE:
            self._write(statement)
        return True

    def put_lease(self, lease: LeaseRow) -> None:
        """Make this the lease of its organization name."""
        self._write(tables.PUT_LEASE, lease)

    def put_token(self, token: TokenRow) -> None:
        """Insert a token, or change the one of its name."""
        self._write(tables.PUT_TOKEN, token)
