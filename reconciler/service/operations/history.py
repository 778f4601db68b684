"""History: the events of one object, and the objects removed from an organization."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from reconciler.resources.ref import Kind
from reconciler.service.domain.events import SIDE_EVENTS, side_stream
from reconciler.service.domain.refusal import not_found
from reconciler.service.eventstore.rows import ObjectRow, StoredEvent
from reconciler.service.operations.answers import Answer, timestamp
from reconciler.service.operations.fields import Fields
from reconciler.service.operations.session import Reading
from reconciler.service.projections.objects import decode, next_row, trees_of

PAGE = 1000
AT_ONCE = 20_000  # events of the log that one call looks through
_REMOVED = ".removed"
_CURSOR = re.compile(r"(0|[1-9][0-9]{0,17})(?:\.(0|[1-9][0-9]{0,17}))?", re.ASCII)
_NEVER_SHOWN = "secret_hash"


def get_object_history(call: Reading, fields: Fields) -> Answer:
    """Answer the events of one object, oldest first; of a removed one, too.

    Side events of the object are put among them by their sequence. A cursor has
    the version of the last event of each stream: ``7``, or ``7.2`` once there are two streams.
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
    found = [
        event
        for stream, version in zip(streams, versions, strict=True)
        for event in call.view.read_stream(stream, after=version, limit=PAGE + 1)
    ]
    found.sort(key=lambda event: event.sequence)
    events = found[:PAGE]
    for event in events:
        versions[streams.index(event.stream)] = event.version
    following = ".".join(str(version) for version in versions).removesuffix(".0")
    return {
        "events": [_event_view(event) for event in events],
        "next": following if len(found) > PAGE else "",
    }


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
    """Return the members that tell when, by whom and why an event was written."""
    return {
        "sequence": str(event.sequence),
        "recordedAt": timestamp(event.sequence),
        "writer": event.writer,
        "context": json.loads(event.context) if event.context else {},
    }


def list_removals(call: Reading, fields: Fields) -> Answer:
    """Answer what was removed from an organization, oldest first.

    One call looks through a part of the organization's log; ``next`` is the sequence after which
    the following part begins, and is empty at the end. It tells nothing of other organizations.
    """
    organization = call.organization(fields.text("organizationId"))
    sequence, left = fields.number("cursor"), fields.limit(AT_ONCE)
    fields.end()
    removed: list[StoredEvent] = []
    page: Sequence[StoredEvent] = ()
    wanted = 0
    while left and len(page) == wanted:
        wanted = min(left, PAGE)
        page = call.view.read_organization(organization.id, after=sequence, limit=wanted)
        removed += [event for event in page if event.type.endswith(_REMOVED)]
        sequence = page[-1].sequence if page else sequence
        left -= wanted
    return {
        "removals": [_removal_view(call, event) for event in removed],
        "next": str(sequence) if len(page) == wanted else "",
    }


def _removal_view(call: Reading, event: StoredEvent) -> Answer:
    row = _before(call, event)
    return {
        "kind": row.kind,
        "id": row.id,
        "projectId": row.parent if row.kind == Kind.OIDC_APPLICATION else "",
        "name": row.name,
        "trees": list(trees_of(row.marks)),
        "type": event.type,
        **_recorded(event),
    }


def _before(call: Reading, last: StoredEvent) -> ObjectRow:
    """Return an object as it was before its last event."""
    row: ObjectRow | None = None
    version = 0
    while version < last.version - 1:
        for event in call.view.read_stream(last.stream, after=version, limit=PAGE):
            if event.version == last.version:
                break
            row = next_row(row, event, decode(event))
            version = event.version
    if row is None:
        raise AssertionError("what was removed was held")
    return row
