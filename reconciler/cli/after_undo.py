"""The advice for Git after an undo: the commit to revert, or the manifests that differ."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from reconciler.cli.git import parents
from reconciler.cli.moments import log_of, sequences_at
from reconciler.cli.parameter_types import MICROS, At
from reconciler.cli.undoing import Undoing
from reconciler.errors import ReconcilerError
from reconciler.loop import preview
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Delete, Plan, Scope, held_of, ref_of
from reconciler.report.visible import visible
from reconciler.service_client.port import ReadOnlyService
from reconciler.state import COMMIT

SEARCHED = 31 * 86_400 * MICROS  # that far before a run, for the apply before it
MOST = 20  # manifests that are named
BY_HAND = (
    "Change the manifests to what is held now: a plan that would apply again what was undone is "
    "blocked."
)


def keeps_git_true(reader: ReadOnlyService, undo: Undoing, plan: Plan) -> str:
    """Return what to do in Git after the undo of a run.

    It is a commit to revert, if the log proves that the run applied just that one and all of it is
    undone; otherwise the manifests that differ from what is held.

    Args:
        reader: Of the service.
        undo: The undo.
        plan: The plan that was carried out.
    """
    is_whole = not (undo.keep or plan.scope.is_partial)
    commit = _commit_of(reader, undo.of, plan.scope.tree) if is_whole else ""
    if commit:
        return f"So that the manifests say the same: git revert {commit}"
    try:
        differing = _differing(reader, undo, plan)
    except ReconcilerError:
        return BY_HAND
    if not differing:
        return "The manifests say the same as what is held now."
    more = [f"  and {len(differing) - MOST} more"] if len(differing) > MOST else []
    said = "So that the manifests say the same as what is held now, change them. These differ:"
    return "\n".join([said, *differing[:MOST], *more])


def _differing(reader: ReadOnlyService, undo: Undoing, plan: Plan) -> Sequence[str]:
    """Return a line for each object of an undo whose manifest differs from what is held.

    Raises:
        ReconcilerError: the manifests or the service cannot be read.
    """
    undone = {ref_of(change).key for change in plan.changes}
    undone |= {held.ref.key for change in plan.changes if (held := held_of(change))}
    desired = undo.manifests()
    now, _ = preview(desired, reader, Scope(tree=plan.scope.tree), Allowances())
    found = []
    for change in now.changes:
        held = held_of(change)
        keys = {ref_of(change).key, *([held.ref.key] if held else [])}
        if not isinstance(change, Delete) and keys & undone:
            place = change.resource.source.place("metadata", "name")
            found.append(f"  {visible(place.file)}:{place.line}: {ref_of(change)}")
    found += [
        f"  {each.ref} is declared nowhere: reconciler export {shlex.quote(each.ref.address)}"
        for each in now.unmanaged
        if each.ref.key in undone
    ]
    return found


def _commit_of(reader: ReadOnlyService, run: str, tree: str) -> str:
    """Return the commit that a run applied, if the apply before it was of its only parent."""
    log = log_of(reader)
    begins: Mapping[str, int] = sequences_at(reader, log, At(run, run=run))
    before: tuple[int, str] = (0, "")
    commit = ""
    begun = {head.id: begins[head.name] for head in log.every}
    searched = {owner: max(0, begin - SEARCHED) for owner, begin in begun.items()}
    for owner, events in reader.changes_of(searched):
        begin = begun[owner]
        for event in events:
            said = event.context
            revision = str(said.get("revision", ""))
            if event.sequence > begin and said.get("run") == run:
                commit = revision
                break
            if event.sequence <= begin and said.get("tree") == tree and revision:
                before = max(before, (event.sequence, revision))
    is_one_step = COMMIT.fullmatch(commit) and parents(commit, Path.cwd()) == (before[1],)
    return commit if is_one_step else ""
