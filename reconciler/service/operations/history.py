"""Reads of the log: the events of an object, and what was removed from an organization.

An event may be as large as a request, and an object may have any number of them. So pages are cut
by bytes, and events are read a few at a time, or only as much of them as is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from heapq import merge

from reconciler.service.domain.events import side_stream
from reconciler.service.domain.refusal import not_found
from reconciler.service.eventstore.rows import EventKey, EventTrace, StoredEvent
from reconciler.service.operations.answers import Answer, context_view, timestamp
from reconciler.service.operations.operation import Effect, light_operation
from reconciler.service.operations.request import Fields
from reconciler.service.operations.session import Reading
from reconciler.service.operations.texts import READ_AT_ONCE, Page
from reconciler.service.projections.objects import (
    SIDE_EVENTS,
    decode,
    gives_name,
    gives_owner,
    next_row,
    project_of,
    tree_of,
)

PAGE = 1000  # events of a history, and keys of one read
AT_ONCE = 20_000  # events of the log that one call looks through
TRACES_AT_ONCE = 128  # each has a context, of up to 8,192 characters
_REMOVED = ".removed"
_CURSOR = re.compile(r"(0|[1-9][0-9]{0,17})(?:\.(0|[1-9][0-9]{0,17}))?", re.ASCII)
_NEVER_SHOWN = "secret_hash"


def get_object_history(call: Reading, fields: Fields) -> Answer:
    """Answer the events of one object, oldest first; of a removed one, too.

    Side events of the object are put among them by their sequence. A cursor has the version of the
    last event of each stream: ``7``, or ``7.2`` once there are two streams.
    """
    object_id, after = fields.text("id", required=True), fields.text("after")
    fields.end()
    passed = _CURSOR.fullmatch(after or "0")
    if passed is None:
        raise fields.wrong("after", "must be a cursor that this operation answered")
    first = call.view.read_stream(object_id, limit=1)
    if not first or first[0].type in SIDE_EVENTS or not call.sees(first[0].organization):
        raise not_found("object")
    streams = (object_id, side_stream(object_id))
    versions = [int(version or 0) for version in passed.groups()]
    found = merge(
        *(_events(call, *each) for each in zip(streams, versions, strict=True)),
        key=lambda event: event.sequence,
    )
    page = Page(PAGE, as_text=call.request.as_text)
    following = ""
    for event in found:
        if not page.takes(_event_view(event)):
            following = ".".join(str(version) for version in versions).removesuffix(".0")
            break
        versions[streams.index(event.stream)] = event.version
    return {"events": page.members(), "next": following}


def _events(call: Reading, stream: str, version: int) -> Iterator[StoredEvent]:
    """Yield a stream's events past a version, a few at a time: each may be very long."""
    while events := call.view.read_stream(stream, after=version, limit=READ_AT_ONCE):
        yield from events
        version = events[-1].version


def _event_view(event: StoredEvent) -> Answer:
    payload = json.loads(event.payload)
    payload.pop(_NEVER_SHOWN, None)
    return {
        "type": event.type,
        "version": event.version,
        **_recorded(event),
        "payload": payload,
    }


def _recorded(event: StoredEvent) -> Answer:
    return {
        "sequence": str(event.sequence),
        "recordedAt": timestamp(event.sequence),
        "writer": event.writer,
        **context_view(event.context),
    }


def list_removals(call: Reading, fields: Fields) -> Answer:
    """Answer what was removed from an organization, oldest first.

    One call reads a part of the organization's log. ``next`` is the sequence after which the
    following part begins, and is empty at the end.
    """
    organization = call.organization(fields.text("organizationId"))
    sequence, limit = fields.number("cursor"), fields.limit(AT_ONCE)
    fields.end()
    page = Page(AT_ONCE, as_text=call.request.as_text)
    passed = replayed = 0
    for key in _keys(call, organization.id, sequence, limit):
        if key.type.endswith(_REMOVED):
            if replayed >= AT_ONCE:
                break
            removal, events = _removal_view(call, key)
            if not page.takes(removal):
                break
            replayed += events
        sequence, passed = key.sequence, passed + 1
    else:
        # Fewer than asked for: this is the end of the log.
        sequence = sequence if passed == limit else 0
    return {"removals": page.members(), "next": str(sequence or "")}


def _keys(call: Reading, organization: str, sequence: int, limit: int) -> Iterator[EventKey]:
    """Yield the keys of an organization's events past a sequence, up to a number of them."""
    while limit:
        wanted = min(limit, PAGE)
        keys = call.view.event_keys(organization, after=sequence, limit=wanted)
        yield from keys
        if len(keys) < wanted:
            return
        sequence, limit = keys[-1].sequence, limit - wanted


def _removal_view(call: Reading, removal: EventKey) -> tuple[Answer, int]:
    """Return a removal, and how many events its object had.

    Of these only the first one and the one that gave the name are read in full, because updates
    may be long.
    """
    trees: set[str] = set()
    first = named = events = 0
    for trace in _lifetime(call, removal):
        first, events = trace.version, events + 1
        if not named and gives_name(trace.type):
            named = trace.version
        if gives_owner(trace.type):
            trees.add(tree_of(trace.context))
    born, event = (_event(call, removal.stream, each) for each in (first, removal.version))
    row = next_row(None, born, decode(born))
    if row is None:
        raise AssertionError("the first event of an object makes it")
    name = json.loads(_event(call, removal.stream, named).payload)["name"] if named else row.name
    view = {
        "kind": row.kind,
        "id": row.id,
        "projectId": project_of(row),
        "name": name,
        "trees": sorted(trees - {""}),
        "type": event.type,
        **_recorded(event),
    }
    return view, events


def _event(call: Reading, stream: str, version: int) -> StoredEvent:
    (event,) = call.view.read_stream(stream, after=version - 1, limit=1)
    return event


def _lifetime(call: Reading, removal: EventKey) -> Iterator[EventTrace]:
    """Yield the events of an object that was removed, newest first.

    A flow that came back after a removal begins anew.
    """
    version, limit = removal.version, 1
    while version > 1:
        # Short reads first: a flow may be set and removed in turn.
        limit = min(2 * limit, TRACES_AT_ONCE)
        traces = call.view.traces_before(removal.stream, version, limit)
        for trace in traces:
            if trace.type.endswith(_REMOVED):
                return
            yield trace
        version = traces[-1].version


ROWS = (
    light_operation("GetObjectHistory", "org.read", Effect.READS, get_object_history),
    light_operation("ListRemovals", "org.read", Effect.READS, list_removals),
)
