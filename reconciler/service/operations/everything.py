"""All that an organization holds, page by page, and the history of one object."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from reconciler.resources.ref import APPLICATION, Kind
from reconciler.service.domain.evolution import BESIDE, beside
from reconciler.service.domain.refusal import not_found
from reconciler.service.eventstore.rows import MarkedKey, ObjectRow, StoredEvent
from reconciler.service.operations.answers import details_read, timestamp
from reconciler.service.operations.fields import Fields
from reconciler.service.operations.session import Reading
from reconciler.service.operations.texts import json_bytes, listed, within

PAGE = 1000
_CURSOR = re.compile(r"(0|[1-9][0-9]{0,17})(?:\.(0|[1-9][0-9]{0,17}))?", re.ASCII)
_NEVER_SHOWN = "secret_hash"

_Said: TypeAlias = tuple[str, str, str]


def list_objects(call: Reading, fields: Fields) -> dict[str, Any]:
    """Answer a page of an organization's objects: the organization itself, then by id."""
    organization = call.owner(
        Kind.ORGANIZATION, fields.text("organizationId") or call.organization().id
    )
    after, limit = fields.text("cursor"), fields.number("limit", PAGE)
    fields.end()
    limit = min(limit or PAGE, PAGE)
    if call.request.as_text:
        return _texts(call, organization, after, limit)
    page = call.view.objects_page(organization.id, after=after, limit=limit + 1)
    rows = page[:limit]
    return {
        "objects": _views(rows if after else [organization, *rows]),
        "next": rows[-1].id if len(page) > limit else "",
    }


def _texts(call: Reading, organization: ObjectRow, after: str, limit: int) -> dict[str, Any]:
    """Answer a page as JSON text. The texts of both parts of an object are put together."""
    page = call.view.page_keys(organization.id, after=after, limit=limit + 1)
    keys = page[:limit]
    if not after:
        keys = [MarkedKey(organization.id, organization.sequence, *_said(organization)), *keys]
    lasting = call.means.texts.of(_lasting, keys, call.view.get_objects)
    marked = _MarkedTexts()
    objects = within(
        b"%b,%b" % (text[:-1], marked[_said(key)][1:])
        for text, key in zip(lasting, keys, strict=True)
    )
    is_last = len(objects) == len(keys) and len(page) <= limit
    return {"objects": listed(objects), "next": "" if is_last else keys[len(objects) - 1].id}


def _views(rows: Sequence[ObjectRow]) -> list[dict[str, Any]]:
    specs = json.loads(f"[{','.join(row.spec for row in rows)}]")  # one parse is faster than many
    parsed = _Parsed()
    return [
        {**_lasting(row, spec), **_marked(_said(row), parsed)}
        for row, spec in zip(rows, specs, strict=True)
    ]


def _lasting(row: ObjectRow, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the members that only an event of the object changes; ``spec`` if it is parsed."""
    return {
        "kind": row.kind,
        "id": row.id,
        "organizationId": row.organization,
        "projectId": row.parent if row.kind == APPLICATION else "",
        "name": row.name,
        "spec": json.loads(row.spec) if spec is None else spec,
        "details": details_read(row),
        "clientId": row.client_id,
        "hasSecret": row.secret_hash != "",
    }


def _said(held: ObjectRow | MarkedKey) -> _Said:
    """Return the last writer, context and marks. Very many objects share very few of them."""
    *_, changed_by, context, marks = held
    return changed_by, context, marks


def _marked(said: _Said, parsed: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the members that contexts leave behind."""
    changed_by, context, text = said
    marks = parsed[text]
    return {
        "trees": marks["trees"],
        "owner": marks.get("owner", ""),
        "preventDelete": marks["preventDelete"] or False,
        "critical": marks.get("critical", False),
        "changedBy": changed_by,
        "context": parsed[context],
    }


class _Parsed(dict[str, dict[str, Any]]):
    """The fields of JSON texts, for the length of one answer: contexts are never kept."""

    def __missing__(self, text: str) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(text) if text else {}
        self[text] = fields
        return fields


class _MarkedTexts(dict[_Said, bytes]):
    """The JSON of what contexts leave behind, for the length of one answer."""

    def __missing__(self, said: _Said) -> bytes:
        text = self[said] = json_bytes(_marked(said, _Parsed()))
        return text


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
