"""Maintenance of a store: rebuild its objects from the log, which is the truth, and verify it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from reconciler.resources.process import crashpoint
from reconciler.service.domain.events import SIDE_EVENTS
from reconciler.service.domain.state import ImpossibleHistoryError
from reconciler.service.eventstore.chain import event_hash, first_head
from reconciler.service.eventstore.errors import StoreError, StoreUnusableError
from reconciler.service.eventstore.port import PAGE, EventStore, Snapshot, Transaction
from reconciler.service.eventstore.rows import Head, ObjectRow, StoredEvent
from reconciler.service.projections.objects import decode, next_row


def rebuild(store: EventStore) -> int:
    """Replace every object by what the log says, in one transaction; return how many there are.

    Raises:
        StoreError: the log cannot be replayed, or the store cannot be written to; it was left as
            it is.
    """
    with (
        replay_told(
            "the log of this store",
            "It is damaged, or a newer version of this tool wrote it: restore a backup, or use "
            "that version.",
        ),
        store.transaction() as tx,
    ):
        return replace_objects(tx)


@contextmanager
def replay_told(log_of: str, remedy: str) -> Iterator[None]:
    """Tell the user of a log that cannot be replayed.

    Raises:
        StoreUnusableError: what is done here found that.
    """
    try:
        yield
    except (ValueError, KeyError, TypeError, ImpossibleHistoryError) as error:
        raise StoreUnusableError(
            f"{log_of} cannot be replayed: {error}", f"{remedy} The store was left as it is."
        ) from error


def replace_objects(tx: Transaction) -> int:
    """Replace every object by what the log says; return how many there are.

    Raises:
        ValueError: the log holds events that this version does not know.
        ImpossibleHistoryError: the log holds events that cannot follow each other.
    """
    rows = replayed(tx)
    tx.clear_objects()
    for row in rows.values():
        crashpoint("S12")
        tx.put_object(row)
    return len(rows)


def replayed(view: Snapshot) -> dict[str, ObjectRow]:
    """Return every object as the log says it is, by id.

    Raises:
        ValueError: the log holds events that this version does not know.
        ImpossibleHistoryError: the log holds events that cannot follow each other.
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
    except (ValueError, KeyError, ImpossibleHistoryError) as error:
        yield f"the log cannot be replayed: {error}"
        return
    held: dict[str, ObjectRow] = {row.id: row for row in view.all_objects()}
    for object_id in sorted(wanted.keys() | held.keys()):
        if wanted.get(object_id) != held.get(object_id):
            yield f"object {object_id}: is not what the log says"
