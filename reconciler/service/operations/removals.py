"""Objects that were removed from an organization, by whom and when."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from reconciler.resources.ref import Kind
from reconciler.service.eventstore.rows import ObjectRow, StoredEvent
from reconciler.service.operations.answers import timestamp
from reconciler.service.operations.fields import Fields
from reconciler.service.operations.session import Reading
from reconciler.service.projections.codec import decode
from reconciler.service.projections.objects import next_row, trees_of

PAGE = 1000
AT_ONCE = 20_000  # events of the log that one call looks through
_REMOVED = ".removed"


def list_removals(call: Reading, fields: Fields) -> dict[str, Any]:
    """Answer what was removed from an organization, oldest first.

    One call looks through a part of the organization's log; ``next`` is the sequence after which
    the following part begins, and is empty at the end. It tells nothing of other organizations.
    """
    organization = call.owner(
        Kind.ORGANIZATION, fields.text("organizationId") or call.organization().id
    )
    sequence, limit = fields.number("cursor"), fields.number("limit", AT_ONCE)
    fields.end()
    left = min(limit or AT_ONCE, AT_ONCE)
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
        "removals": [_view(call, event) for event in removed],
        "next": str(sequence) if len(page) == wanted else "",
    }


def _view(call: Reading, event: StoredEvent) -> dict[str, Any]:
    row = _before(call, event)
    return {
        "kind": row.kind,
        "id": row.id,
        "projectId": row.parent if row.kind == Kind.OIDC_APPLICATION else "",
        "name": row.name,
        "trees": list(trees_of(row.marks)),
        "type": event.type,
        "sequence": str(event.sequence),
        "recordedAt": timestamp(event.sequence),
        "writer": event.writer,
        "context": json.loads(event.context) if event.context else {},
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
