"""In which organizations a tree has applied something: what it may have left behind."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from reconciler.resources.ref import Kind
from reconciler.service.eventstore.rows import ObjectQuery, ObjectRow
from reconciler.service.operations.fields import Fields
from reconciler.service.operations.session import Reading

EACH = 100
ALL = 20_000


def list_trees(call: Reading, fields: Fields) -> dict[str, Any]:
    """Answer the organizations the caller may see, with the trees that applied to each.

    It looks at the organization itself and at the first objects in it, and at so many in all: a
    tree that applies to an organization applies to most of it, and the answer is advice.
    """
    fields.end()
    query = ObjectQuery(Kind.ORGANIZATION, "", call.caller.organizations, by_name=True)
    _, organizations = call.view.list_objects(query)
    answer, left = [], ALL
    for organization in organizations:
        if call.sees(organization.id):
            rows = call.view.objects_page(organization.id, limit=min(EACH, left)) if left else ()
            left -= len(rows)
            answer.append(_view(organization, [organization, *rows]))
    return {"organizations": answer}


def _view(organization: ObjectRow, rows: list[ObjectRow]) -> dict[str, Any]:
    trees = {tree for row in rows for tree in _trees(row.marks)}
    return {"id": organization.id, "name": organization.name, "trees": sorted(trees)}


@lru_cache(maxsize=256)
def _trees(marks: str) -> tuple[str, ...]:
    return tuple(json.loads(marks)["trees"])
