"""Reads of the log: events of an object or an organization, removals, and objects as they were.

An event may be as large as a request, and an object may have any number of them. So pages are cut
by bytes, and events are read a few at a time, or only as much of them as is needed.

A client asks for earlier states of those objects that an event changed since, which ``ListChanges``
answers: all others are as they are now. So a look into the past costs as much as what happened
since, not as the whole log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice

from reconciler.service.domain.events import main_stream, side_stream
from reconciler.service.domain.refusal import not_found
from reconciler.service.eventstore.rows import (
    EventKey,
    EventNote,
    EventTrace,
    ObjectName,
    ObjectRow,
    StoredEvent,
)
from reconciler.service.operations.answers import Answer, context_view, timestamp
from reconciler.service.operations.inventory import object_view
from reconciler.service.operations.operation import Effect, Operation
from reconciler.service.operations.request import LARGEST, Fields
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
OBJECTS_AT_ONCE = 500  # of one look into the past
ORDERS = ("oldest", "newest")
NOTES_AT_ONCE = 128  # each has a context, of up to 8,192 characters
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


def _recorded(event: StoredEvent | EventNote) -> Answer:
    return {
        "sequence": str(event.sequence),
        "recordedAt": timestamp(event.sequence),
        "writer": event.writer,
        **context_view(event.context),
    }


def list_changes(call: Reading, fields: Fields) -> Answer:
    """Answer the events of an organization, oldest first: of what, by whom, when and why.

    ``cursor`` is the sequence after which they begin, such as that of an earlier ``ListHeads``, and
    ``next`` that of the following part; it is empty at the end. With the order ``newest`` they
    are newest first, and ``cursor`` is the sequence before which they begin, or 0 for the end of
    the log. What an event says of its object is in the history of the object.
    """
    newest = fields.choice("order", ORDERS) == "newest"
    return _listed(call, fields, "changes", PAGE, _Changes(call), newest=newest)


def list_removals(call: Reading, fields: Fields) -> Answer:
    """Answer what was removed from an organization, oldest first.

    One call reads a part of the organization's log. ``next`` is the sequence after which the
    following part begins, and is empty at the end.
    """
    return _listed(call, fields, "removals", AT_ONCE, _Removals(call))


class _Changes:
    """Views of every event.

    An object is named as it is now, or as it was when it was removed.

    Attributes:
        ends: What the types of the events end in that are viewed.
        replayed: How many events were read to name removed objects.
    """

    ends = ""

    def __init__(self, call: Reading) -> None:
        self.replayed = 0
        self._call = call
        self._gone: dict[str, Answer] = {}

    def views(self, notes: Sequence[EventNote]) -> Iterator[Answer]:
        ids = {main_stream(note.stream) for note in notes}
        named = {row.id: row for row in self._call.view.object_names(ids)}
        for note in notes:
            object_id = main_stream(note.stream)
            row = named.get(object_id)
            subject = _subject(row) if row else self._removed(object_id)
            yield {**subject, "type": note.type, **_recorded(note)}

    def _removed(self, object_id: str) -> Answer:
        if object_id not in self._gone:
            # Every page with events of it would replay it: kept, a long log takes linear time.
            kept, name = self._call.runtime.removed, (object_id, "")
            last = _event(self._call, object_id, self._call.view.stream_version(object_id))
            gone = kept.get(name, last.hash)
            if gone is None:
                gone, _, events = _removed(self._call, object_id, last.version)
                kept.put(name, last.hash, gone)
                self.replayed += events
            self._gone[object_id] = gone
        return self._gone[object_id]


class _Removals(_Changes):
    """Views of the events that removed an object, each with the trees that wrote it."""

    ends = _REMOVED

    def views(self, notes: Sequence[EventNote]) -> Iterator[Answer]:
        for note in notes:
            gone, trees, events = _removed(self._call, note.stream, note.version)
            self.replayed += events
            yield {**gone, "trees": trees, "type": note.type, **_recorded(note)}


def _listed(
    call: Reading,
    fields: Fields,
    member: str,
    most: int,
    listing: _Changes,
    *,
    newest: bool = False,
) -> Answer:
    """Answer a part of an organization's log, of at most ``most`` events, some of them listed."""
    organization = call.organization(fields.text("organizationId")).id
    sequence, limit = fields.number("cursor"), fields.limit(most)
    fields.end()
    page = Page(most, as_text=call.request.as_text)
    if newest:
        found = call.view.last_event_keys(organization, sequence or LARGEST, limit + 1)
        keys, is_all = iter(found[:limit]), len(found) <= limit
    else:
        keys, is_all = _keys(call, organization, sequence, limit), False
    passed = 0
    for key, view in _viewed(call, organization, keys, listing):
        if view is not None and not page.takes(view):
            break
        sequence, passed = key.sequence, passed + 1
        if listing.replayed >= AT_ONCE:
            break
    else:
        # Fewer than asked for: this is the end of the log.
        sequence = 0 if is_all or passed < limit else sequence
    return {member: page.members(), "next": str(sequence or "")}


def _viewed(
    call: Reading, organization: str, keys: Iterator[EventKey], listing: _Changes
) -> Iterator[tuple[EventKey, Answer | None]]:
    """Yield keys of an organization's events, with a view of those listed."""
    while part := [*islice(keys, NOTES_AT_ONCE)]:
        asked = [key.sequence for key in part if key.type.endswith(listing.ends)]
        notes = call.view.event_notes(organization, asked) if asked else ()
        found = {note.sequence: note for note in notes}
        views = listing.views([found[sequence] for sequence in asked])
        for key in part:
            yield key, next(views) if key.type.endswith(listing.ends) else None


def _keys(call: Reading, organization: str, sequence: int, limit: int) -> Iterator[EventKey]:
    """Yield the keys of an organization's events past a sequence, up to a number of them."""
    while limit:
        wanted = min(limit, PAGE)
        keys = call.view.event_keys(organization, after=sequence, limit=wanted)
        yield from keys
        if len(keys) < wanted:
            return
        sequence, limit = keys[-1].sequence, limit - wanted


def _removed(call: Reading, stream: str, version: int) -> tuple[Answer, Sequence[str], int]:
    """Return what an object was that an event removed, its trees, and how many events it had.

    Of these only the first one and the one that gave the name are read in full, because updates
    may be long.
    """
    trees: set[str] = set()
    first = named = events = 0
    for trace in _lifetime(call, stream, version):
        first, events = trace.version, events + 1
        if not named and gives_name(trace.type):
            named = trace.version
        if gives_owner(trace.type):
            trees.add(tree_of(trace.context))
    born = _event(call, stream, first)
    row = next_row(None, born, decode(born))
    if row is None:
        raise AssertionError("the first event of an object makes it")
    if named:
        row = row._replace(name=json.loads(_event(call, stream, named).payload)["name"])
    return _subject(row), sorted(trees - {""}), events


def _subject(row: ObjectRow | ObjectName) -> Answer:
    return {"kind": row.kind, "id": row.id, "projectId": project_of(row), "name": row.name}


def _event(call: Reading, stream: str, version: int) -> StoredEvent:
    (event,) = call.view.read_stream(stream, after=version - 1, limit=1)
    return event


def _lifetime(call: Reading, stream: str, version: int) -> Iterator[EventTrace]:
    """Yield the events of an object before the version that removed it, newest first.

    A flow that came back after a removal begins anew.
    """
    limit = 1
    while version > 1:
        # Short reads first: a flow may be set and removed in turn.
        limit = min(2 * limit, NOTES_AT_ONCE)
        traces = call.view.traces_before(stream, version, limit)
        for trace in traces:
            if trace.type.endswith(_REMOVED):
                return
            yield trace
        version = traces[-1].version


def list_objects_at(call: Reading, fields: Fields) -> Answer:
    """Answer objects as they were after the event of a sequence, or the last one before it.

    Objects are answered in the order of ``ids``, as many as an answer has room for, and at least
    one. ``absent`` has the ids of those that there were none of. What is in neither list is to be
    asked for again. An id of another organization is that of an object that never was.
    """
    organization = call.organization(fields.text("organizationId"))
    sequence = fields.number("sequence")
    values = fields.values("ids")
    fields.end()
    if not 1 <= len(values) <= OBJECTS_AT_ONCE:
        raise fields.wrong("ids", f"must be 1 to {OBJECTS_AT_ONCE} ids")
    ids = [Fields({"ids": value}).text("ids", required=True) for value in values]
    page = Page(OBJECTS_AT_ONCE, as_text=call.request.as_text)
    absent: list[str] = []
    replayed = 0
    for object_id in ids:
        row, events = _as_of(call, organization.id, object_id, sequence)
        if row is None:
            absent.append(object_id)
        elif not page.takes(object_view(row)):
            break
        replayed += events
        if replayed >= AT_ONCE:
            break
    return {"objects": page.members(), "absent": absent}


def _as_of(
    call: Reading, organization: str, object_id: str, sequence: int
) -> tuple[ObjectRow | None, int]:
    """Return an object as it was at a sequence, and how many events were read for that."""
    row: ObjectRow | None = None
    version = 0
    for event in _events(call, object_id, version):
        is_own = event.organization == organization and event.type not in SIDE_EVENTS
        if not is_own or event.sequence > sequence:
            return row, version + 1
        row, version = next_row(row, event, decode(event)), event.version
    return row, version


ROWS = (
    Operation("GetObjectHistory", "org.read", Effect.READS, get_object_history),
    Operation("ListChanges", "org.read", Effect.READS, list_changes),
    Operation("ListRemovals", "org.read", Effect.READS, list_removals),
    Operation("ListObjectsAt", "org.read", Effect.READS, list_objects_at),
)
