"""Maintenance of a store: verify it, copy it, rebuild its objects from the log.

The log is the truth. Where it is damaged, objects can be right that it no longer has, so nothing is
rebuilt from it unless that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from reconciler.resources.process import crashpoint
from reconciler.service.eventstore.errors import (
    ConflictError,
    StoreDamagedError,
    StoreError,
    StoreUnusableError,
)
from reconciler.service.eventstore.port import EventStore, Transaction
from reconciler.service.eventstore.rows import Head, ObjectRow, StoredEvent, event_hash, first_head
from reconciler.service.eventstore.sql import PAGE, Snapshot
from reconciler.service.projections.objects import SIDE_EVENTS, decode, next_row

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)
"""Errors of reading a damaged row, which may hold anything."""

REPLAY_REMEDY = (
    "It is damaged, or a newer version of this tool wrote it: restore a backup, or use that"
    " version. The store was left as it is."
)


def rebuild(store: EventStore) -> int:
    """Replace every object by what the log says, in one transaction; return how many there are.

    Raises:
        StoreDamagedError: the log is damaged.
        StoreError: the log cannot be replayed, or the store cannot be written to. In any case the
            store was left as it is.
    """
    if findings := _findings(store, _chain_findings):
        raise StoreDamagedError(
            f"the log of this store is damaged: {len(findings)} finding(s)",
            "Restore a backup. If there is none, keep a copy, then give --damaged: objects become "
            "what is left of the log. The store was left as it is.",
            findings,
        )
    with _replay_errors(), store.transaction() as tx:
        return _replace_objects(tx, replayed(tx))


class Rebuilt(NamedTuple):
    """The result of making the objects of a store from a damaged log.

    Attributes:
        objects: How many objects there are now.
        findings: What is damaged: the log stays as it is.
        lost: A sentence for each object that is no longer what it was, or could not be made.
    """

    objects: int
    findings: Sequence[str]
    lost: Sequence[str]


def rebuild_damaged(store: EventStore) -> Rebuilt:
    """Replace objects by what a log says that may be damaged, in one transaction.

    An object whose events cannot be replayed stays as it is held. Of several with one name, the
    first stays.

    Raises:
        StoreError: the log cannot be read, or the store cannot be written to; it was left as it is.
    """
    findings, stuck = _findings(store, _chain_findings), dict[str, str]()
    with _replay_errors(), store.transaction() as tx:
        rows = replayed(tx, stuck)
        before = {row.id: row for row in tx.all_objects()}
        kept = {object_id: before[object_id] for object_id in stuck if object_id in before}
        rows = _of_one_name_each(rows | kept, stuck)
        _replace_objects(tx, rows)
    with store.snapshot() as view:
        now = {row.id: row for row in view.all_objects()}
    ids = sorted(before.keys() | rows.keys() | stuck.keys())
    lost = (_loss(each, before.get(each), now.get(each), stuck.get(each, "")) for each in ids)
    return Rebuilt(len(rows), findings, [*filter(None, lost)])


def _of_one_name_each(
    rows: Mapping[str, ObjectRow], left_out: dict[str, str]
) -> dict[str, ObjectRow]:
    """Return the first object of each name; add the ids of the others, each with why."""
    first: dict[tuple[str, str, str], ObjectRow] = {}
    for row in rows.values():
        holder = first.setdefault((row.kind, row.parent, row.folded), row)
        if holder is not row:
            left_out[row.id] = f"the name is also that of id {holder.id}"
    return {row.id: row for row in first.values()}


def _loss(object_id: str, before: ObjectRow | None, now: ObjectRow | None, why: str) -> str:
    """Return what a rebuild did to an object, as a sentence; nothing where it is as it was."""
    row = before or now
    about = f"{row.kind} {row.name} (id {object_id})" if row else f"an object (id {object_id})"
    if why:
        done = "was left as it is" if now else "is gone" if before else "cannot be made"
        return f"{about} {done}: {why}"
    if now is None:
        return f"{about} is gone: the log does not have it"
    if before is None:
        return f"{about} was made: the store did not hold it"
    return "" if now == before else f"{about} was replaced by what the log says"


@contextmanager
def _replay_errors() -> Iterator[None]:
    """Raise what keeps a log from being replayed as an error of its store."""
    try:
        yield
    except ConflictError as error:
        raise StoreUnusableError(
            "the log of this store gives two objects the same name or client id",
            REPLAY_REMEDY,
        ) from error
    except UNREADABLE as error:
        raise StoreUnusableError(
            f"the log of this store cannot be replayed: {error}",
            REPLAY_REMEDY,
        ) from error


def _replace_objects(tx: Transaction, rows: Mapping[str, ObjectRow]) -> int:
    """Replace every object; return how many there are."""
    tx.clear_objects()
    for row in rows.values():
        crashpoint("S12")
        tx.put(row)
    return len(rows)


def replayed(view: Snapshot, stuck: dict[str, str] | None = None) -> dict[str, ObjectRow]:
    """Return every object as the log says it is, by id.

    ``stuck`` takes the ids of objects whose events cannot be replayed, each with why. They are left
    out. Without it such an object is an error.

    Raises:
        ValueError: the log holds events that this version does not know, or that cannot follow
            each other.
    """
    rows: dict[str, ObjectRow] = {}
    for stored in log(view):
        if stored.type in SIDE_EVENTS or (stuck and stored.stream in stuck):
            continue
        try:
            row = next_row(rows.get(stored.stream), stored, decode(stored))
        except UNREADABLE as error:
            if stuck is None:
                raise
            stuck[stored.stream] = str(error)
            row = None
        if row is None:
            rows.pop(stored.stream, None)
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


def backup(store: EventStore, target: Path) -> None:
    """Copy a sound store into a new file, also while it is in use.

    Raises:
        StoreDamagedError: the store is damaged.
        StoreError: the file exists or cannot be written. In any case nothing was written.
    """
    if findings := verify(store):
        raise StoreDamagedError(
            f"this store is damaged: {len(findings)} finding(s)",
            "A damaged copy cannot be restored: keep the last sound backup. To have a copy all "
            "the same, give --damaged. Nothing was written.",
            findings,
        )
    store.backup(target)


def verify(store: EventStore) -> Sequence[str]:
    """Return every finding as a sentence; nothing where the store is sound."""
    return _findings(store, _chain_findings, _object_findings)


def _findings(store: EventStore, *looks: Callable[[Snapshot], Iterable[str]]) -> Sequence[str]:
    findings = list(store.damage())
    try:
        with store.snapshot() as view:
            for look in looks:
                findings += look(view)
    except StoreError as error:
        findings.append(error.problem)
    except UNREADABLE as error:
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
    kept = {head.organization: head for head in view.heads()}
    for organization in sorted(heads.keys() | kept.keys()):
        if heads.get(organization) != kept.get(organization):
            yield f"organization {organization}: the log does not end where it should"


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


def _object_findings(view: Snapshot) -> Iterator[str]:
    try:
        wanted = replayed(view)
    except UNREADABLE as error:
        yield f"the log cannot be replayed: {error}"
        return
    held: dict[str, ObjectRow] = {row.id: row for row in view.all_objects()}
    for object_id in sorted(wanted.keys() | held.keys()):
        if wanted.get(object_id) != held.get(object_id):
            yield f"object {object_id}: is not what the log says"
