"""Trees: what an idle round asks for, and the pauses and records of a tree in an organization.

A pause and a record are events of the organization, and stand in the marks of its row: they have a
history, and are made anew with it from the log. The lease of leadership (``leases``) is neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from reconciler.kinds.organization.events import (
    APPLIED,
    PAUSED,
    TreeApplied,
    TreePaused,
    TreeResumed,
)
from reconciler.resources.call import MAX_TEXTS
from reconciler.resources.ref import Kind, fold
from reconciler.service.domain.events import Event
from reconciler.service.domain.refusal import not_found, too_many_trees
from reconciler.service.eventstore.rows import ObjectQuery, ObjectRow
from reconciler.service.operations.answers import MICROSECONDS, Answer, details_at, timestamp
from reconciler.service.operations.leases import check_leadership
from reconciler.service.operations.operation import Effect, Operation
from reconciler.service.operations.request import Fields
from reconciler.service.operations.session import MAX_TREES, Reading, Writing
from reconciler.service.operations.texts import Page

HEADS_AT_ONCE = 10_000  # organizations; a page is cut by bytes, too
_ROWS_AT_ONCE = 1000
MAX_PAUSE_SECONDS = 31 * 24 * 60 * 60
OUTCOMES = ("changed", "unchanged")
COMMIT = r"^[0-9a-f]{40}(?:[0-9a-f]{24})?$"


def list_heads(call: Reading, fields: Fields) -> Answer:
    """Answer where the log of each organization ends that the caller may see, by id.

    With it come the pauses of its trees, their last records, and how many secrets are owed. What
    it costs depends on the number of organizations, and not on that of their objects.
    """
    cursor = fields.text("cursor")
    fields.end()
    page = Page(HEADS_AT_ONCE, as_text=call.request.as_text)
    following = page.fill((head["id"], head) for head in _heads(call, cursor))
    return {
        "instance": call.view.meta("instance"),
        "organizations": page.members(),
        "next": following,
    }


def _heads(call: Reading, cursor: str) -> Iterator[Answer]:
    query = ObjectQuery(Kind.ORGANIZATION, "", call.caller.organizations)
    _, found = call.view.list_objects(query)
    ids = [each for each, _ in found if each > cursor and call.sees(each)]
    now = call.runtime.now()
    for first in range(0, len(ids), _ROWS_AT_ONCE):
        part = ids[first : first + _ROWS_AT_ONCE]
        rows = {row.id: row for row in call.view.get_objects(part)}
        sequences = {head.organization: head.sequence for head in call.view.heads_of(part)}
        owed = call.view.owed_counts(part, now)
        for each in part:
            yield {
                "id": each,
                "name": rows[each].name,
                "sequence": str(sequences.get(each, 0)),
                "owed": str(owed.get(each, 0)),
                "pauses": pauses_of(rows[each], now),
                "applied": _records_of(rows[each]),
            }


def pauses_of(organization: ObjectRow, now: int) -> Sequence[Answer]:
    """Return the pauses of an organization's trees that are not over, by tree."""
    return [
        {
            "tree": tree,
            "reason": pause["reason"],
            "until": timestamp(pause["until"]),
            "since": timestamp(pause["since"]),
            "writer": pause["writer"],
        }
        for tree, pause in sorted(_marked(organization, PAUSED).items())
        if pause["until"] > now
    ]


def _records_of(organization: ObjectRow) -> Sequence[Answer]:
    return [
        {
            "tree": tree,
            "commit": record["commit"],
            "outcome": record["outcome"],
            "recordedAt": timestamp(record["at"]),
            "writer": record["writer"],
        }
        for tree, record in sorted(_marked(organization, APPLIED).items())
    ]


def _marked(organization: ObjectRow, mark: str) -> dict[str, Any]:
    known: dict[str, Any] = json.loads(organization.marks).get(mark, {})
    return known


def pause_tree(call: Writing, fields: Fields) -> Answer:
    """Say that a tree is not to be applied to an organization, for so many seconds from now."""
    organization, tree = _named(call, fields)
    reason = fields.text("reason", required=True, limit=MAX_TEXTS["reason"])
    seconds = fields.seconds(MAX_PAUSE_SECONDS)
    fields.end()
    now = call.runtime.now()
    paused = _marked(organization, PAUSED)
    _check_count(tree, [name for name, pause in paused.items() if pause["until"] > now])
    until = now + seconds * MICROSECONDS
    return _written(call, organization, TreePaused(Kind.ORGANIZATION, tree, reason, until))


def resume_tree(call: Writing, fields: Fields) -> Answer:
    """End the pause of a tree in an organization; without one, nothing is written."""
    organization, tree = _named(call, fields)
    fields.end()
    if tree not in _marked(organization, PAUSED):
        return _written(call, organization)
    return _written(call, organization, TreeResumed(Kind.ORGANIZATION, tree))


def record_commit(call: Writing, fields: Fields) -> Answer:
    """Record that a commit was applied to an organization, all of it; once for each commit.

    Only the holder of the leadership lease of the tree may.
    """
    organization, tree = _named(call, fields)
    commit = fields.text("commit", required=True)
    if not re.fullmatch(COMMIT, commit):
        raise fields.wrong("commit", "must be the 40 or 64 hexadecimal digits of a commit")
    outcome = fields.choice("outcome", OUTCOMES)
    lease = fields.text("lease", required=True)
    fields.end()
    check_leadership(call, organization.folded, tree, lease)
    records = _marked(organization, APPLIED)
    _check_count(tree, records)
    if records.get(tree, {}).get("commit") == commit:
        return _written(call, organization)
    return _written(call, organization, TreeApplied(Kind.ORGANIZATION, tree, commit, outcome))


def _written(call: Writing, organization: ObjectRow, *events: Event) -> Answer:
    """Write events, and answer the end of the organization's log."""
    call.change(organization, events)
    return {"details": details_at(organization.id, call.tx.head(organization.id).sequence)}


def _check_count(tree: str, known: Sequence[str] | dict[str, Any]) -> None:
    if tree not in known and len(known) >= MAX_TREES:
        raise too_many_trees(MAX_TREES)


def _named(call: Writing, fields: Fields) -> tuple[ObjectRow, str]:
    """Return the organization that a call names, and the tree.

    Raises:
        Refusal: the caller does not see it, or there is none.
    """
    name = fold(fields.text("organization", required=True))
    row = call.tx.find_object(Kind.ORGANIZATION, "", name)
    if row is None or not call.sees(row.id):
        raise not_found("organization")
    return row, fields.text("tree", required=True, limit=MAX_TEXTS["tree"])


ROWS = (
    Operation("ListHeads", "org.read", Effect.READS, list_heads),
    Operation("PauseTree", "org.tree.write", Effect.COORDINATES, pause_tree),
    Operation("ResumeTree", "org.tree.write", Effect.COORDINATES, resume_tree),
    Operation("RecordCommit", "org.tree.write", Effect.COORDINATES, record_commit),
)
