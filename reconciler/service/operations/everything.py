"""All that an organization holds, page by page, and the history of one object."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from reconciler.resources.ref import APPLICATION, Kind
from reconciler.service.domain.evolution import BESIDE, beside
from reconciler.service.domain.refusal import not_found
from reconciler.service.eventstore.rows import ObjectRow, StoredEvent
from reconciler.service.operations.answers import details_read, timestamp
from reconciler.service.operations.fields import Fields
from reconciler.service.operations.session import Reading

PAGE = 1000
_CURSOR = re.compile(r"(0|[1-9][0-9]{0,17})(?:\.(0|[1-9][0-9]{0,17}))?", re.ASCII)
_NEVER_SHOWN = "secret_hash"


def list_objects(call: Reading, fields: Fields) -> dict[str, Any]:
    """Answer a page of an organization's objects: the organization itself, then by id."""
    organization = call.owner(
        Kind.ORGANIZATION, fields.text("organizationId") or call.organization().id
    )
    after, limit = fields.text("cursor"), fields.number("limit", PAGE)
    fields.end()
    limit = min(limit or PAGE, PAGE)
    page = list(call.view.objects_page(organization.id, after=after, limit=limit + 1))
    rows = page[:limit]
    following = rows[-1].id if len(page) > limit else ""
    return {
        "objects": _views(rows if after else [organization, *rows]),
        "next": following,
    }


def _views(rows: Sequence[ObjectRow]) -> list[dict[str, Any]]:
    specs = json.loads(f"[{','.join(row.spec for row in rows)}]")  # one parse is faster than many
    return [_view(row, spec) for row, spec in zip(rows, specs, strict=True)]


def _view(row: ObjectRow, spec: dict[str, Any]) -> dict[str, Any]:
    marks = _parsed(row.marks)
    return {
        "kind": row.kind,
        "id": row.id,
        "organizationId": row.organization,
        "projectId": row.parent if row.kind == APPLICATION else "",
        "name": row.name,
        "spec": spec,
        "details": details_read(row),
        "clientId": row.client_id,
        "hasSecret": row.secret_hash != "",
        "trees": marks["trees"],
        "owner": marks.get("owner", ""),
        "preventDelete": marks["preventDelete"] or False,
        "critical": marks.get("critical", False),
        "changedBy": row.changed_by,
        "context": _parsed(row.context),
    }


@lru_cache(maxsize=256)
def _parsed(text: str) -> dict[str, Any]:
    """Return the fields of a JSON text. Very many objects share very few contexts."""
    fields: dict[str, Any] = json.loads(text) if text else {}
    return fields


def get_object_history(call: Reading, fields: Fields) -> dict[str, Any]:
    """Answer the events of one object, oldest first; of a removed one, too.

    Events that stand beside the object's own are put among them by their sequence. A cursor has
    the version of the last event of each stream: ``7``, or ``7.2`` once there are two streams.
    """
    object_id, after = fields.text("id", required=True), fields.text("after")
    fields.end()
    passed = _CURSOR.fullmatch(after or "0")
    if passed is None:
        raise fields.wrong("after", "must be a cursor that this operation answered")
    first = call.view.read_stream(object_id, limit=1)
    if not first or first[0].type in BESIDE or not call.sees(first[0].organization):
        raise not_found("object")
    streams = (object_id, beside(object_id))
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


def _event_view(event: StoredEvent) -> dict[str, Any]:
    payload = json.loads(event.payload)
    payload.pop(_NEVER_SHOWN, None)
    return {
        "type": event.type,
        "version": event.version,
        "sequence": str(event.sequence),
        "recordedAt": timestamp(event.sequence),
        "writer": event.writer,
        "context": json.loads(event.context) if event.context else {},
        "payload": payload,
    }
