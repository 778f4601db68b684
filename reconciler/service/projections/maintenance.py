"""Maintenance of a store: rebuild its objects from the log, verify it, upgrade it.

The log is the truth, which every version keeps. What the tables of an earlier version lack is
derived from it: before the store is written to, or in memory while it is only read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from reconciler.resources.process import crashpoint
from reconciler.service.domain.events import SIDE_EVENTS
from reconciler.service.eventstore.errors import StoreError, StoreUnusableError
from reconciler.service.eventstore.port import EventStore, Transaction
from reconciler.service.eventstore.rows import (
    Head,
    MarkedKey,
    NameFilter,
    ObjectKey,
    ObjectQuery,
    ObjectRow,
    OwedRow,
    StoredEvent,
    event_hash,
    first_head,
    length_of_page,
)
from reconciler.service.eventstore.sql import PAGE, Dialect, Run, Snapshot
from reconciler.service.projections.objects import decode, is_active, next_row


def rebuild(store: EventStore) -> int:
    """Replace every object by what the log says, in one transaction; return how many there are.

    Raises:
        StoreError: the log cannot be replayed, or the store cannot be written to; it was left as
            it is.
    """
    with _replay_errors(), store.transaction() as tx:
        return _replace_objects(tx)


@contextmanager
def _replay_errors(*, is_old: bool = False) -> Iterator[None]:
    """Raise what keeps a log from being replayed as an error of its store."""
    if is_old:
        store, remedy = "this store, which an earlier version made,", "Restore a backup."
    else:
        store = "this store"
        remedy = (
            "It is damaged, or a newer version of this tool wrote it: restore a backup, or use"
            " that version."
        )
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise StoreUnusableError(
            f"the log of {store} cannot be replayed: {error}",
            f"{remedy} The store was left as it is.",
        ) from error


def _replace_objects(tx: Transaction) -> int:
    """Replace every object by what the log says; return how many there are."""
    rows = replayed(tx)
    tx.clear_objects()
    for row in rows.values():
        crashpoint("S12")
        tx.put_object(row)
    return len(rows)


def replayed(view: Snapshot) -> dict[str, ObjectRow]:
    """Return every object as the log says it is, by id.

    Raises:
        ValueError: the log holds events that this version does not know, or that cannot follow
            each other.
    """
    rows: dict[str, ObjectRow] = {}
    for stored in log(view):
        if stored.type in SIDE_EVENTS:
            continue
        row = next_row(rows.get(stored.stream), stored, decode(stored))
        if row is None:
            del rows[stored.stream]
        else:
            rows[stored.stream] = row
    return rows


def log(view: Snapshot) -> Iterator[StoredEvent]:
    """Yield every event, in order, a page at a time.

    Raises:
        ValueError: they are not in order, as in a damaged file, and there would be no end.
    """
    position = 0
    # A position that goes back would be read again and again.
    while page := view.read_all(after=position, limit=PAGE):
        yield from page
        if page[-1].position <= position:
            raise ValueError(f"the log goes back after position {position}")
        position = page[-1].position


def verify(store: EventStore) -> Sequence[str]:
    """Return every finding as a sentence; nothing where the store is sound."""
    findings = list(store.damage())
    try:
        with store.snapshot() as view:
            findings += _chain_findings(view)
            findings += _object_findings(view)
    except StoreError as error:
        findings.append(error.problem)
    except (TypeError, ValueError) as error:  # a damaged row may hold anything
        findings.append(f"a row cannot be read: {error}")
    return findings


def _chain_findings(view: Snapshot) -> Iterator[str]:
    # Each chain is followed from its start, so that an event that is gone breaks the next link.
    heads: dict[str, Head] = {}
    streams: dict[str, tuple[str, int]] = {}
    for event in log(view):
        head = heads.get(event.organization) or first_head(event.organization)
        yield from _link_findings(head, event)
        yield from _stream_findings(streams, event)
        heads[event.organization] = Head(
            event.organization, event.sequence, head.events + 1, event.hash
        )
    yield from _head_findings(heads, {head.organization: head for head in view.heads()})


def _link_findings(head: Head, event: StoredEvent) -> Iterator[str]:
    where = f"organization {event.organization}: event {event.sequence}"
    if event.previous != head.hash:
        yield f"{where} does not follow the one before it"
    if event_hash(event) != event.hash:
        yield f"{where} is not what was written"
    if event.sequence <= head.sequence:
        yield f"{where} is numbered out of order"


def _stream_findings(streams: dict[str, tuple[str, int]], event: StoredEvent) -> Iterator[str]:
    owner, version = streams.get(event.stream, (event.organization, 0))
    if event.version != version + 1:
        yield f"object {event.stream}: event {event.version} follows event {version}"
    if event.organization != owner:
        yield f"object {event.stream}: belongs to {owner} and to {event.organization}"
    streams[event.stream] = owner, event.version


def _head_findings(counted: dict[str, Head], kept: dict[str, Head]) -> Iterator[str]:
    for organization in sorted(counted.keys() | kept.keys()):
        if counted.get(organization) != kept.get(organization):
            yield f"organization {organization}: the log does not end where it should"


def _object_findings(view: Snapshot) -> Iterator[str]:
    try:
        wanted = replayed(view)
    except (ValueError, KeyError) as error:
        yield f"the log cannot be replayed: {error}"
        return
    held: dict[str, ObjectRow] = {row.id: row for row in view.all_objects()}
    for object_id in sorted(wanted.keys() | held.keys()):
        if wanted.get(object_id) != held.get(object_id):
            yield f"object {object_id}: is not what the log says"


_NAME_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "equals": str.__eq__,
    "starts": str.startswith,
    "contains": str.__contains__,
    "ends": str.endswith,
}


def upgrade(store: EventStore) -> None:
    """Bring a store of an earlier version up to this one, in one transaction.

    Raises:
        StoreError: its log cannot be replayed, or it cannot be written to; it was left as it is.
    """
    if not store.is_outdated():
        return
    with store.transaction() as tx, _replay_errors(is_old=True):
        if tx.upgrade():  # otherwise another process has just done it
            _replace_objects(tx)


def readable(store: EventStore) -> EventStore:
    """Return a store that is only looked at, as this version reads it."""
    return _OldStore(store) if store.is_outdated() else store


class ReplayedSnapshot(Snapshot):
    """A view whose objects are rows in memory: those that the log of an old store adds up to.

    Version 1 owed nothing: custody, and its table, came with version 2.
    """

    def __init__(self, run: Run, dialect: Dialect, rows: Mapping[str, ObjectRow]) -> None:
        """Take the objects by id."""
        super().__init__(run, dialect)
        self._rows = rows

    def get_object(self, object_id: str) -> ObjectRow | None:
        """Return the object of an id."""
        return self._rows.get(object_id)

    def get_objects(self, ids: Collection[str]) -> Sequence[ObjectRow]:
        """Return the objects of these ids, less those that are missing."""
        return [self._rows[name] for name in ids if name in self._rows]

    def find_object(self, kind: str, parent: str, folded: str) -> ObjectRow | None:
        """Return the object of a folded name."""
        name = (kind, parent, folded)
        found = (row for row in self._rows.values() if (row.kind, row.parent, row.folded) == name)
        return next(found, None)

    def objects_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[ObjectRow]:
        """Return objects of an organization, less itself, with ids past one, by id."""
        found = [
            row
            for row in self._rows.values()
            if row.organization == organization and organization != row.id > after
        ]
        return sorted(found)[:limit]

    def page_keys(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[MarkedKey]:
        """Return the keys of what ``objects_page`` returns."""
        rows = self.objects_page(organization, after=after, limit=limit)
        return [MarkedKey._make(getattr(row, name) for name in MarkedKey._fields) for row in rows]

    def list_objects(self, query: ObjectQuery) -> tuple[int, Sequence[ObjectKey]]:
        """Return how many objects a query finds, and the keys of those of its page."""
        found = [row for row in self._rows.values() if _is_found(row, query)]
        found.sort(
            key=lambda row: (row.folded if query.by_name else "", row.id), reverse=query.descending
        )
        page = found[query.offset : query.offset + length_of_page(query, len(found))]
        return len(found), [ObjectKey(row.id, row.sequence, row.name) for row in page]

    def all_objects(self) -> Sequence[ObjectRow]:
        """Return every object there is, by id."""
        return sorted(self._rows.values())

    def owed(self, ids: Collection[str]) -> Sequence[OwedRow]:
        """Return nothing."""
        return ()

    def owed_page(
        self, organization: str, *, after: str = "", limit: int = PAGE
    ) -> Sequence[OwedRow]:
        """Return nothing."""
        return ()

    def owed_in(self, seal_id: str) -> Sequence[OwedRow]:
        """Return nothing."""
        return ()


class _OldStore:
    """A store of an earlier version, read as this version would have it. Nothing is written."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._heads: Sequence[Head] = ()
        self._rows: Mapping[str, ObjectRow] = {}
        self.transaction = store.transaction
        self.damage = store.damage
        self.backup = store.backup
        self.close = store.close

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Read; the log is replayed at the first look, and again once it has grown.

        Raises:
            StoreError: the store cannot be read, or its log cannot be replayed.
        """
        with self._store.snapshot() as view:
            heads = view.heads()
            if heads != self._heads:
                with _replay_errors(is_old=True):
                    self._rows = replayed(view)
                self._heads = heads
            yield ReplayedSnapshot(view.run, view.dialect, self._rows)

    def is_outdated(self) -> bool:
        """Return False: what is read here is of this version."""
        return False


def _is_found(row: ObjectRow, query: ObjectQuery) -> bool:
    return (
        (row.kind, row.parent) == (query.kind, query.parent)
        and (query.ids is None or row.id in query.ids)
        and query.active in {None, is_active(row.marks)}
        and all(_has_name(row, name) for name in query.names)
    )


def _has_name(row: ObjectRow, name: NameFilter) -> bool:
    return _NAME_TESTS[name.match](row.folded if name.folded else row.name, name.text)
