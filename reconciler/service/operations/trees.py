"""The organizations that a tree has applied something to: what it may have left behind."""

from __future__ import annotations

from collections import Counter
from typing import Any

from reconciler.resources.ref import Kind
from reconciler.service.eventstore.rows import ObjectQuery, ObjectRow
from reconciler.service.operations.custody import is_lost
from reconciler.service.operations.fields import Fields
from reconciler.service.operations.session import Reading
from reconciler.service.projections.objects import trees_of

EACH = 100
ALL = 20_000


def list_trees(call: Reading, fields: Fields) -> dict[str, Any]:
    """Answer the organizations the caller may see, with the trees that applied to each.

    It looks at the organization itself and at the first objects in it, and at so many in all: a
    tree that applies to an organization applies to most of it, and the answer is advice. Of the
    secrets that are owed in each, the first ones are counted by the tree that they are owed to.
    """
    fields.end()
    query = ObjectQuery(Kind.ORGANIZATION, "", call.caller.organizations, by_name=True)
    _, keys = call.view.list_objects(query)
    organizations = {row.id: row for row in call.view.get_objects([key.id for key in keys])}
    answer, left = [], ALL
    for organization in (organizations[key.id] for key in keys):
        if call.sees(organization.id):
            rows = call.view.objects_page(organization.id, limit=min(EACH, left)) if left else ()
            left -= len(rows)
            view = _view(organization, [organization, *rows])
            answer.append({**view, "owed": _owed(call, organization)})
    return {"organizations": answer}


def _owed(call: Reading, organization: ObjectRow) -> list[dict[str, Any]]:
    """Return how many secrets are owed in an organization, by tree; those lost are left out."""
    now = call.means.now()
    rows = call.view.owed_page(organization.id, limit=EACH)
    counts = Counter(row.tree for row in rows if not is_lost(row, now))
    return [{"tree": tree, "secrets": str(count)} for tree, count in sorted(counts.items())]


def _view(organization: ObjectRow, rows: list[ObjectRow]) -> dict[str, Any]:
    trees = {tree for row in rows for tree in trees_of(row.marks)}
    return {"id": organization.id, "name": organization.name, "trees": sorted(trees)}
