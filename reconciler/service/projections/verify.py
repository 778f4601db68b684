"""Is what the store holds what was written? Every chain, number, head and object is checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.service.domain.held import ImpossibleHistoryError
from reconciler.service.eventstore.chain import event_hash, first_head
from reconciler.service.eventstore.errors import StoreError
from reconciler.service.eventstore.port import EventStore, Snapshot
from reconciler.service.eventstore.rows import Head, ObjectRow, StoredEvent
from reconciler.service.projections.rebuild import log, replayed


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
