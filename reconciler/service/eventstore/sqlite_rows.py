"""Reading the rows of a SQLite store, inside a transaction that the caller ends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence

from reconciler.service.eventstore import sqlite_tables as tables
from reconciler.service.eventstore.chain import first_head
from reconciler.service.eventstore.port import PAGE
from reconciler.service.eventstore.rows import (
    Head,
    LeaseRow,
    MarkedKey,
    ObjectKey,
    ObjectQuery,
    ObjectRow,
    OwedRow,
    Record,
    SealRow,
    StoredEvent,
    TokenRow,
    length_of_page,
)


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

    def stream_version(self, stream: str) -> int:
        """Return how many events a stream has."""
        (version,) = self._run(tables.STREAM_VERSION, (stream,)).fetchone()
        return int(version)

    def read_all(self, *, after: int = 0, limit: int = PAGE) -> Sequence[StoredEvent]:
        """Return events of every stream past a position, oldest first."""
        return list(map(StoredEvent._make, self._run(tables.READ_ALL, (after, limit))))

    def read_organization(
        self, organization: str, *, after: int = 0, limit: int = PAGE
    ) -> Sequence[StoredEvent]:
        """Return an organization's events past a sequence, oldest first."""
        found = self._run(tables.READ_ORGANIZATION, (organization, after, limit))
        return list(map(StoredEvent._make, found))

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

    def get_objects(self, ids: Collection[str]) -> Sequence[ObjectRow]:
        """Return the objects of these ids, less those that are missing."""
        found = self._run(tables.OBJECTS, (json.dumps(list(ids)),))
        return list(map(ObjectRow._make, found))

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

    def page_keys(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[MarkedKey]:
        """Return the keys of what ``objects_page`` returns."""
        found = self._run(tables.PAGE_KEYS, (organization, after, limit))
        return list(map(MarkedKey._make, found))

    def list_objects(self, query: ObjectQuery) -> tuple[int, Sequence[ObjectKey]]:
        """Return how many objects a query finds, and the keys of those of its page."""
        where, values = _filters(query)
        (total,) = self._run(tables.COUNT_OBJECTS + where, values).fetchone()
        limit = length_of_page(query, total)
        if not limit:
            return total, []
        order = _ORDERS[query.by_name, query.descending]
        statement = tables.LIST_OBJECTS + where + order + " LIMIT ? OFFSET ?"
        found = self._run(statement, (*values, limit, query.offset))
        return total, list(map(ObjectKey._make, found))

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

    def owed(self, ids: Collection[str]) -> Sequence[OwedRow]:
        """Return the secrets that these applications owe."""
        return list(map(OwedRow._make, self._run(tables.OWED, (json.dumps(list(ids)),))))

    def owed_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[OwedRow]:
        """Return secrets owed in an organization, of applications with ids past one, by id."""
        found = self._run(tables.OWED_PAGE, (organization, after, limit))
        return list(map(OwedRow._make, found))

    def owed_in(self, seal_id: str) -> Sequence[OwedRow]:
        """Return the owed secrets that a seal holds."""
        return list(map(OwedRow._make, self._run(tables.OWED_IN, (seal_id,))))

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
        """Return a fact about the store itself: ``instance``, ``seal_key``; empty if not kept."""
        found = self._run(tables.META, (name,)).fetchone()
        return str(found[0]) if found else ""


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
