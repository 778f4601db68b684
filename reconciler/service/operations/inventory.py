"""Our own reads beside lists: the service, the objects of an organization, their history, trees."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import add, itemgetter
from typing import TypeAlias

from reconciler import __version__
from reconciler.resources.ref import APPLICATION, Kind
from reconciler.service.domain.events import SIDE_EVENTS, ContextRecorded, side_stream
from reconciler.service.domain.refusal import not_found
from reconciler.service.eventstore.rows import (
    MarkedKey,
    ObjectQuery,
    ObjectRow,
    OwedRow,
    StoredEvent,
)
from reconciler.service.operations.answers import Answer, details_read, organization_view, timestamp
from reconciler.service.operations.batch import MAX_ORDERS
from reconciler.service.operations.custody import is_lost
from reconciler.service.operations.operation import (
    ADMIN,
    MANAGEMENT,
    Effect,
    Operation,
    light_operation,
)
from reconciler.service.operations.request import Fields
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.operations.texts import json_bytes, listed, within
from reconciler.service.projections.objects import decode, is_active, next_row, trees_of

PAGE = 1000
TREES_EACH = 100  # objects of an organization that the listing of trees looks at
TREES_IN_ALL = 20_000
AT_ONCE = 20_000  # events of the log that one call looks through
_REMOVED = ".removed"
_CURSOR = re.compile(r"(0|[1-9][0-9]{0,17})(?:\.(0|[1-9][0-9]{0,17}))?", re.ASCII)
_NEVER_SHOWN = "secret_hash"

_Traces: TypeAlias = tuple[str, str, str]
"""Last writer, context and marks of an object. Very many objects share very few of them."""


def healthz(_: Reading, fields: Fields) -> Answer:
    """Answer that the service answers."""
    fields.end()
    return {}


def get_service_info(call: Reading, fields: Fields) -> Answer:
    """Answer which service this is."""
    fields.end()
    return {
        "instance": call.view.meta("instance"),
        "product": "reconciler",
        "version": __version__,
        "custody": True,
        "batch": MAX_ORDERS,
        "allOrganizations": call.caller.organizations is None,
    }


def get_my_org(call: Reading, fields: Fields) -> Answer:
    """Answer the organization of the call."""
    fields.end()
    return {"org": organization_view(call.organization())}


def record_context(call: Writing, fields: Fields) -> Answer:
    """Record the context of this call with an object that is already as wanted.

    So a tree takes over what it finds in step, and protection from deletion is remembered.
    """
    object_id = fields.text("id", required=True)
    fields.end()
    held = call.view.get_object(object_id)
    if held is None or not call.sees(held.organization):
        raise not_found("object")
    call.expect(held)
    return call.update(held, (ContextRecorded(),))


def list_objects(call: Reading, fields: Fields) -> Answer:
    """Answer a page of an organization's objects: the organization itself, then by id."""
    organization = call.organization(fields.text("organizationId"))
    after, limit = fields.text("cursor"), fields.limit(PAGE)
    fields.end()
    if call.request.as_text:
        return _texts(call, organization, after, limit)
    page = call.view.objects_page(organization.id, after=after, limit=limit + 1)
    rows = page[:limit]
    return {
        "objects": _views(rows if after else [organization, *rows]),
        "next": rows[-1].id if len(page) > limit else "",
    }


def _texts(call: Reading, organization: ObjectRow, after: str, limit: int) -> Answer:
    """Answer a page as JSON text. The texts of both parts of an object are put together."""
    page = call.view.page_keys(organization.id, after=after, limit=limit + 1)
    keys = page[:limit]
    if not after:
        keys = [MarkedKey(organization.id, organization.sequence, *_traces(organization)), *keys]
    endings = map(_Endings().__getitem__, map(_traces, keys))
    parts = call.runtime.texts.of(_object_view, keys, call.view.get_objects)
    # ``map`` takes as many endings as the part has texts, for it asks for the next text first.
    objects = within(list(map(add, map(_WITHOUT_BRACE, part), endings)) for part in parts)
    is_last = len(objects) == len(keys) and len(page) <= limit
    return {"objects": listed(objects), "next": "" if is_last else keys[len(objects) - 1].id}


def _views(rows: Sequence[ObjectRow]) -> list[Answer]:
    specs = json.loads(f"[{','.join(row.spec for row in rows)}]")  # one parse is faster than many
    parsed = _ParsedTexts()
    return [
        {**_object_view(row, spec), **_traces_view(_traces(row), parsed)}
        for row, spec in zip(rows, specs, strict=True)
    ]


def _object_view(row: ObjectRow, spec: Answer | None = None) -> Answer:
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
        "state": "ACTIVE" if is_active(row.marks) else "INACTIVE",
    }


_WITHOUT_BRACE: Callable[[bytes], bytes] = itemgetter(slice(-1))  # which ends an object
_traces: Callable[[ObjectRow | MarkedKey], _Traces] = itemgetter(-3, -2, -1)


def _traces_view(traces: _Traces, parsed: Mapping[str, Answer]) -> Answer:
    """Return the members that contexts set."""
    changed_by, context, text = traces
    marks = parsed[text]
    return {
        "trees": marks["trees"],
        "owner": marks.get("owner", ""),
        "preventDelete": marks["preventDelete"] or False,
        "critical": marks.get("critical", False),
        "changedBy": changed_by,
        "context": parsed[context],
    }


class _ParsedTexts(dict[str, Answer]):
    """The fields of JSON texts, during one answer: contexts are never kept longer."""

    def __missing__(self, text: str) -> Answer:
        fields: Answer = json.loads(text) if text else {}
        self[text] = fields
        return fields


class _Endings(dict[_Traces, bytes]):
    """The last members of an object's JSON, those that contexts set, during one answer."""

    def __missing__(self, traces: _Traces) -> bytes:
        text = json_bytes(_traces_view(traces, _ParsedTexts()))
        ending = self[traces] = b"," + text[1:]
        return ending


def list_trees(call: Reading, fields: Fields) -> Answer:
    """Answer the organizations the caller may see, with the trees that applied to each.

    The answer is advice. It looks at an organization and the first objects in it, because a tree
    that applies to an organization applies to most of it. Of the secrets that are owed, it counts
    the first by their tree. ``custody`` is exact: false means no secrets to list, owed or lost.
    """
    fields.end()
    query = ObjectQuery(Kind.ORGANIZATION, "", call.caller.organizations, by_name=True)
    _, found = call.view.list_objects(query)
    ids = [key.id for key in found]
    organizations = {row.id: row for row in call.view.get_objects(ids)}
    answer, left = [], TREES_IN_ALL
    for organization in map(organizations.__getitem__, ids):
        if call.sees(organization.id):
            limit = min(TREES_EACH, left)
            keys = call.view.page_keys(organization.id, limit=limit) if left else ()
            left -= len(keys)
            kept = call.view.owed_page(organization.id, limit=TREES_EACH)
            view = _trees_view(organization, [organization.marks, *(key.marks for key in keys)])
            owed = _owed_by_tree(kept, call.runtime.now())
            answer.append({**view, "owed": owed, "custody": bool(kept)})
    return {"organizations": answer}


def _owed_by_tree(kept: Sequence[OwedRow], now: int) -> list[Answer]:
    counts = Counter(row.tree for row in kept if not is_lost(row, now))
    return [{"tree": tree, "secrets": str(count)} for tree, count in sorted(counts.items())]


def _trees_view(organization: ObjectRow, marks: Sequence[str]) -> Answer:
    trees = {tree for each in marks for tree in trees_of(each)}
    return {"id": organization.id, "name": organization.name, "trees": sorted(trees)}


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
    return {
        "sequence": str(event.sequence),
        "recordedAt": timestamp(event.sequence),
        "writer": event.writer,
        "context": json.loads(event.context) if event.context else {},
    }


def list_removals(call: Reading, fields: Fields) -> Answer:
    """Answer what was removed from an organization, oldest first.

    One call reads a part of the organization's log. ``next`` is the sequence after which the
    following part begins, and is empty at the end.
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
        raise AssertionError("an object was removed before it was made")
    return row


_HEALTHZ = (f"{MANAGEMENT}/Healthz", f"{ADMIN}/Healthz")
ROWS = (
    Operation("Healthz", "", Effect.READS, healthz, Fields, _HEALTHZ, needs_token=False),
    light_operation("GetMyOrg", "org.read", Effect.READS, get_my_org, MANAGEMENT),
    light_operation("GetServiceInfo", "", Effect.READS, get_service_info),
    light_operation("ListObjects", "org.read", Effect.READS, list_objects),
    light_operation("GetObjectHistory", "org.read", Effect.READS, get_object_history),
    light_operation("ListRemovals", "org.read", Effect.READS, list_removals),
    light_operation("ListTrees", "org.read", Effect.READS, list_trees),
    light_operation("RecordContext", "org.context.write", Effect.CHANGES, record_context),
)
