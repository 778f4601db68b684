"""Making the objects anew from the log, and comparing: the log is the truth."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.resources.crashpoint import crashpoint
from reconciler.service.domain.evolution import BESIDE
from reconciler.service.eventstore.port import PAGE, EventStore, Snapshot, Transaction
from reconciler.service.eventstore.rows import ObjectRow, StoredEvent
from reconciler.service.projections.codec import decode
from reconciler.service.projections.objects import next_row


def rebuild(store: EventStore) -> int:
    """Replace every object by what the log says, in one transaction; return how many there are.

    Raises:
        ValueError: the log holds events that this version does not know.
        StoreError: the store cannot be written to.
    """
    with store.transaction() as tx:
        return replace_objects(tx)


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
        if stored.type in BESIDE:
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
