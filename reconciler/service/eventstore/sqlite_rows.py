"""Reading and writing the rows of a SQLite store, inside a transaction somebody else ends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from reconciler.resources.crashpoint import crashpoint
from reconciler.service.eventstore import sqlite_tables as tables
from reconciler.service.eventstore.chain import chained, first_head
from reconciler.service.eventstore.errors import NameTakenError, StreamConflictError
from reconciler.service.eventstore.port import PAGE
from reconciler.service.eventstore.rows import (
    Author,
    Foresight,
    Head,
    LeaseRow,
    NewEvent,
    ObjectQuery,
    ObjectRow,
    Record,
    SealRow,
    StoredEvent,
    StreamAt,
    TokenRow,
)

NO_LIMIT = -1


class SqliteSnapshot:
    """The rows as they are seen inside one transaction of a connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._run = connection.cursor().execute

    def read_stream(
        self, stream: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return a stream's events past a version, oldest first."""
        found = self._run(tables.READ_STREAM, (stream, after, limit))
        return list(map(StoredEvent._make, found))

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Return events of every stream past a position, oldest first."""
        return list(map(StoredEvent._make, self._run(tables.READ_ALL, (after, limit))))

    def heads(self) -> Sequence[Head]:
        """Return where every organization's chain ends, by organization."""
        return list(map(Head._make, self._run(tables.HEADS)))

    def head(self, organization: str) -> Head:
        """Return where an organization's chain ends; of none yet, the first head."""
        found = self._run(tables.HEAD, (organization,)).fetchone()
        return Head._make(found) if found else first_head(organization)

    def get_object(self, object_id: str) -> ObjectRow | None:
        """Return the object of an id."""
        found = self._run(tables.OBJECT, (object_id,)).fetchone()
        return ObjectRow._make(found) if found else None

    def find_object(self, kind: str, parent: str, folded: str) -> ObjectRow | None:
        """Return the object of a folded name."""
        found = self._run(tables.FIND_OBJECT, (parent, kind, folded)).fetchone()
        return ObjectRow._make(found) if found else None

    def objects_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[ObjectRow]:
        """Return objects of an organization, less itself, with ids past one, by id."""
        found = self._run(tables.OBJECTS_PAGE, (organization, after, limit))
        return list(map(ObjectRow._make, found))

    def list_objects(self, query: ObjectQuery) -> tuple[int, Sequence[ObjectRow]]:
        """Return how many objects a query finds, and those of its page."""
        where, values = _filters(query)
        (total,) = self._run(tables.COUNT_OBJECTS + where, values).fetchone()
        order = _ORDERS[query.by_name, query.descending]
        statement = tables.LIST_OBJECTS + where + order + " LIMIT ? OFFSET ?"
        page = (query.limit or NO_LIMIT, query.offset)
        found = self._run(statement, (*values, *page))
        return total, list(map(ObjectRow._make, found))

    def all_objects(self) -> Sequence[ObjectRow]:
        """Return every object there is, by id."""
        return list(map(ObjectRow._make, self._run(tables.ALL_OBJECTS)))

    def record(self, caller: str, key: str) -> Record | None:
        """Return the answer kept under a caller's idempotency key."""
        found = self._run(tables.RECORD, (caller, key)).fetchone()
        return Record._make(found) if found else None

    def seal(self, seal_id: str) -> SealRow | None:
        """Return a seal."""
        found = self._run(tables.SEAL, (seal_id,)).fetchone()
        return SealRow._make(found) if found else None

    def lease(self, organization: str) -> LeaseRow | None:
        """Return the last lease of a folded organization name, whether or not it still counts."""
        found = self._run(tables.LEASE, (organization,)).fetchone()
        return LeaseRow._make(found) if found else None

    def tokens(self) -> Sequence[TokenRow]:
        """Return every token, by name."""
        return list(map(TokenRow._make, self._run(tables.TOKENS)))

    def token(self, sha256: bytes) -> TokenRow | None:
        """Return the token of a hash."""
        found = self._run(tables.TOKEN, (sha256,)).fetchone()
        return TokenRow._make(found) if found else None

    def meta(self, name: str) -> str:
        """Return a fact about the store itself: ``instance``."""
        (value,) = self._run(tables.META, (name,)).fetchone()
        return str(value)


class SqliteTransaction(SqliteSnapshot):
    """The rows, and writing them."""

    def __init__(self, connection: sqlite3.Connection, now: Callable[[], int]) -> None:
        super().__init__(connection)
        self._connection = connection
        self._cursor = connection.cursor()
        self._write = self._cursor.execute
        self._now = now
        self._heads: dict[str, Head] = {}
        self._before: dict[str, Head | None] = {}

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done in the block if an exception leaves it, and only that."""
        self._write("SAVEPOINT one")
        self._before = {}
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:  # a full disk has rolled all of it back already
                self._write("ROLLBACK TO one")
                self._write("RELEASE one")
            self._put_heads_back()
            raise
        self._write("RELEASE one")

    def foresee(self, asked: Foresight) -> None:
        """Do nothing: SQLite looks things up in this process."""

    def append(
        self, stream: StreamAt, events: Sequence[NewEvent], author: Author
    ) -> Sequence[StoredEvent]:
        """Append events to a stream.

        Raises:
            StreamConflictError: the stream is not at this version.
        """
        if stream.version and not self.read_stream(stream.id, after=stream.version - 1, limit=1):
            raise StreamConflictError
        head = self._locked_head(stream.organization)
        crashpoint("S3")
        stored = []
        for new in events:
            event, head = chained(head, stream, new, author, self._now())
            stored.append(self._add(event))
            stream = StreamAt(event.organization, event.stream, event.version)
            crashpoint("S4")
        self._before.setdefault(stream.organization, self._heads[stream.organization])
        self._heads[stream.organization] = head
        return stored

    def _add(self, event: StoredEvent) -> StoredEvent:
        said = event[1:]
        try:
            self._write(tables.ADD_EVENT, (None, *said))
        except sqlite3.IntegrityError as error:
            raise StreamConflictError from error
        return StoredEvent(self._cursor.lastrowid or 0, *said)

    def _locked_head(self, organization: str) -> Head:
        """Return the head, whose row the first append of the transaction makes or has made."""
        known = self._heads.get(organization)
        if known is not None:
            return known
        head = self.head(organization)
        if not head.events:
            self._write(tables.ADD_HEAD, head)
            self._before.setdefault(organization, None)
        self._heads[organization] = head
        return head

    def _put_heads_back(self) -> None:
        for organization, head in self._before.items():
            if head is None:
                self._heads.pop(organization, None)
            else:
                self._heads[organization] = head

    def flush(self) -> None:
        """Write the heads, which is done once, before the commit."""
        for head in self._heads.values():
            self._write(tables.SET_HEAD, (head.sequence, head.events, head.hash, head.organization))

    def put_object(self, row: ObjectRow) -> None:
        """Insert an object, or change the one of its id.

        Raises:
            NameTakenError: another object has its name.
            StreamConflictError: another object has its client id.
        """
        try:
            if row.version == 1 or not self._write(tables.SET_OBJECT, (*row, row.id)).rowcount:
                self._write(tables.ADD_OBJECT, row)
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
        """Keep a seal."""
        self._write(tables.PUT_SEAL, seal)

    def expire(self, now: int) -> None:
        """Drop records and seals whose time has come."""
        if self._write(tables.EXPIRE_RECORDS, (now,)).rowcount:
            self._write(tables.EXPIRE_SEALS, (now,))

    def put_lease(self, lease: LeaseRow) -> None:
        """Make this the lease of its organization name."""
        self._write(tables.PUT_LEASE, lease)

    def put_token(self, token: TokenRow) -> None:
        """Insert a token, or change the one of its name."""
        self._write(tables.PUT_TOKEN, token)


_ORDERS = {
    (False, False): " ORDER BY id",
    (False, True): " ORDER BY id DESC",
    (True, False): " ORDER BY folded, id",
    (True, True): " ORDER BY folded DESC, id DESC",
}


def _filters(query: ObjectQuery) -> tuple[str, list[object]]:
    """Return the conditions of a query beyond kind and parent, and all values to bind."""
    texts = [""]
    values: list[object] = [query.kind, query.parent]
    if query.ids is not None:
        texts.append("id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(sorted(query.ids)))
    for name in query.names:
        if name.text or name.match == "equals":
            texts.append(tables.NAME_FILTERS[name.match, name.folded])
            values += [name.text] * texts[-1].count("?")
    return " AND ".join(texts), values
