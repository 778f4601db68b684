"""Our own reads beside lists: the service, the objects of an organization, and its trees."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from reconciler import __version__
from reconciler.kinds.organization.events import UNMADE
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import ContextRecorded
from reconciler.service.domain.refusal import not_found
from reconciler.service.eventstore.rows import ObjectQuery, ObjectRow, OwedRow, TokenRow
from reconciler.service.operations.answers import Answer, context_view, details_read, timestamp
from reconciler.service.operations.batch import MAX_ORDERS
from reconciler.service.operations.callers import end_of_token
from reconciler.service.operations.custody import is_lost
from reconciler.service.operations.operation import (
    ADMIN,
    MANAGEMENT,
    Effect,
    Operation,
)
from reconciler.service.operations.request import Fields
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.operations.texts import Encoded, Page, as_json, within
from reconciler.service.operations.trees import pauses_of
from reconciler.service.projections.objects import is_active, project_of, trees_of

PAGE = 1000
TREES_EACH = 100  # objects of an organization that the listing of trees looks at
TREES_IN_ALL = 20_000


def healthz(_: Reading, fields: Fields) -> Answer:
    """Health check."""
    fields.end()
    return {}


def get_service_info(call: Reading, fields: Fields) -> Answer:
    """Return which service this is, and what the caller's token permits."""
    fields.end()
    ends = end_of_token(call.view, call.caller.token)
    return {
        "instance": call.view.meta("instance"),
        "product": "reconciler",
        "version": __version__,
        "custody": True,
        "batch": MAX_ORDERS,
        "feed": True,
        "allOrganizations": call.caller.organizations is None,
        "role": call.caller.role.value,
        "expires": timestamp(ends) if ends else "",
    }


def get_iam(call: Reading, fields: Fields) -> Answer:
    """Answer the instance, to clients that know a service by the id of its own project.

    This service has neither a project nor an organization of its own.
    """
    fields.end()
    return {"globalOrgId": "", "iamProjectId": call.view.meta("instance"), "defaultOrgId": ""}


def record_context(call: Writing, fields: Fields) -> Answer:
    """Record the context of this call with an object that is already as wanted.

    So a tree takes over what it finds in step, and protection from deletion is remembered.
    """
    object_id = fields.text("id", required=True)
    fields.end()
    held = call.view.get_object(object_id)
    if held is None or not call.sees(held.organization):
        raise not_found("object")
    call.expect(held.sequence)
    return call.update(held, (ContextRecorded(Kind(held.kind)),))


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
    page = call.view.page_keys(organization.id, after=after, limit=limit + 1)
    keys = page[:limit]
    if not after:
        keys = [(organization.id, organization.sequence), *keys]
    objects = within(call.runtime.texts.of(as_json(object_view), keys, call.view.get_objects))
    is_last = len(objects) == len(keys) and len(page) <= limit
    return {"objects": Encoded(objects), "next": "" if is_last else keys[len(objects) - 1][0]}


def _views(rows: Sequence[ObjectRow]) -> list[Answer]:
    specs = json.loads(f"[{','.join(row.spec for row in rows)}]")  # one parse is faster than many
    return [object_view(row, spec) for row, spec in zip(rows, specs, strict=True)]


def object_view(row: ObjectRow, spec: Answer | None = None) -> Answer:
    """Return an object with its last writer and context; ``spec`` if it is parsed."""
    marks = _parsed(row.marks)
    return {
        "kind": row.kind,
        "id": row.id,
        "organizationId": row.organization,
        "projectId": project_of(row),
        "name": row.name,
        "spec": json.loads(row.spec) if spec is None else spec,
        "details": details_read(row),
        "clientId": row.client_id,
        "hasSecret": row.secret_hash != "",
        "state": "ACTIVE" if is_active(row.marks) else "INACTIVE",
        "trees": marks["trees"],
        "owner": marks["owner"],
        "preventDelete": marks["preventDelete"] or False,
        "critical": marks.get("critical", False),
        "ignore": marks.get("ignore", []),
        "undone": marks.get("undone"),
        "changedBy": row.changed_by,
        **context_view(row.context),
    }


@lru_cache(maxsize=16)
def _parsed(text: str) -> Answer:
    """Return the fields of a context or of marks. Very many objects share very few of them."""
    fields: Answer = json.loads(text)
    return fields


def list_trees(call: Reading, fields: Fields) -> Answer:
    """Answer the organizations the caller may see, with the trees that applied to each.

    The answer is advice. It looks at an organization and the first objects in it, because a tree
    that applies to an organization applies to most of it. Of the secrets that are owed, it counts
    the first by their tree. ``custody`` is exact: false means no secrets to list, owed or lost.
    So are ``pauses`` and ``unmade``.
    """
    fields.end()
    query = ObjectQuery(Kind.ORGANIZATION, "", call.caller.organizations, by_name=True)
    _, found = call.view.list_objects(query)
    ids = [object_id for object_id, _ in found]
    organizations = {row.id: row for row in call.view.get_objects(ids)}
    answer, left, now = [], TREES_IN_ALL, call.runtime.now()
    for organization in map(organizations.__getitem__, ids):
        if call.sees(organization.id):
            limit = min(TREES_EACH, left)
            marks = call.view.page_marks(organization.id, limit) if left else ()
            left -= len(marks)
            kept = call.view.owed_page(organization.id, limit=TREES_EACH)
            trees = {tree for each in (organization.marks, *marks) for tree in trees_of(each)}
            answer.append(
                {
                    "id": organization.id,
                    "name": organization.name,
                    "trees": sorted(trees),
                    "owed": _owed_by_tree(kept, now),
                    "custody": bool(kept),
                    "pauses": pauses_of(organization, now),
                    "unmade": _unmade(organization),
                }
            )
    return {"organizations": answer}


def _unmade(organization: ObjectRow) -> Sequence[Answer]:
    """Return the objects that an undo removed, with its mark; names are folded."""
    found = []
    for key, mark in sorted(json.loads(organization.marks).get(UNMADE, {}).items()):
        kind, project, name = key.split("/", 2)
        undone = {each: value for each, value in mark.items() if each != "at"}
        found.append({"kind": kind, "projectId": project, "name": name, "undone": undone})
    return found


def list_tokens(call: Reading, fields: Fields) -> Answer:
    """Answer a page of the tokens, by name; of those that see no more than the caller sees.

    A token is named, and never shown: the service does not have it.
    """
    after, limit = fields.text("cursor"), fields.limit(PAGE)
    fields.end()
    page = Page(limit, as_text=call.request.as_text)
    following = page.fill(_tokens(call, after))
    return {"tokens": page.members(), "next": following}


def _tokens(call: Reading, after: str) -> Iterator[tuple[str, Answer]]:
    for row in sorted(call.view.tokens()):
        seen = json.loads(row.organizations) if row.organizations else None
        is_seen = call.caller.organizations is None if seen is None else all(map(call.sees, seen))
        if row.name > after and is_seen:
            yield row.name, _token_view(row, seen)


def _token_view(row: TokenRow, organizations: Sequence[str] | None) -> Answer:
    return {
        "name": row.name,
        "role": row.role,
        "allOrganizations": organizations is None,
        "organizations": organizations or [],
        "created": timestamp(row.created_at),
        "expires": timestamp(row.expires_at) if row.expires_at else "",
        "revoked": timestamp(row.revoked_at) if row.revoked_at else "",
    }


def _owed_by_tree(kept: Sequence[OwedRow], now: int) -> list[Answer]:
    counts = Counter(row.tree for row in kept if not is_lost(row, now))
    return [{"tree": tree, "secrets": str(count)} for tree, count in sorted(counts.items())]


_HEALTHZ = (f"{MANAGEMENT}/Healthz", f"{ADMIN}/Healthz")
ROWS = (
    Operation("Healthz", "", Effect.READS, healthz, grpc=_HEALTHZ, needs_token=False),
    Operation("GetIAM", "", Effect.READS, get_iam, grpc=(f"{MANAGEMENT}/GetIAM",)),
    Operation("GetServiceInfo", "", Effect.READS, get_service_info),
    Operation("ListObjects", "org.read", Effect.READS, list_objects),
    Operation("ListTokens", "token.list", Effect.READS, list_tokens),
    Operation("ListTrees", "org.read", Effect.READS, list_trees),
    Operation(
        "RecordContext", "org.context.write", Effect.CHANGES, record_context, is_of_context=True
    ),
)
