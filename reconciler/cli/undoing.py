"""The undo of a run, and what keeps Git true after it: a commit to revert, or manifests to change.

What an undo asks for is read from the service, under the lock of its apply.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from reconciler.cli.configured import Configured
from reconciler.cli.git import parents
from reconciler.cli.manifests import read_desired
from reconciler.cli.moments import check_complete, log_of, sequences_at
from reconciler.cli.output import show_warnings
from reconciler.cli.parameter_types import MICROS, At
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import ReconcilerError, StalePlanError, UsageError
from reconciler.loop import preview
from reconciler.plan.guards import Allowances
from reconciler.plan.history import gives_secret
from reconciler.plan.model import Delete, Plan, Scope, held_of, ref_of
from reconciler.plan.selection import Part
from reconciler.plan.undo import BeforeAndNow, changed_since, is_change, stays_rotated, takes_back
from reconciler.report.visible import visible
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import HistoryReader, ReadOnlyService
from reconciler.state import COMMIT, DesiredState, FeedEvent, ObservedState, Undone


class _AsRead:
    """A service that answers what was read of it: the plan is of that very state."""

    def __init__(self, client: ReadOnlyService, observed: ObservedState) -> None:
        self._observed = observed
        self.histories, self.removals = client.histories, client.removals
        self.generation = client.generation

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        """Return what was read; all flows are in it."""
        return self._observed


@dataclass(frozen=True, slots=True)
class Undoing:
    """The undo of a run.

    Attributes:
        of: Id of the run.
        keep: What stays as it is held.
        paths: Of the manifests; the default ones if there are none.
        chosen: Of whose environment they are.
        declared: Keys of what the manifests declare, as far as they were read.
        notes: What was found in reading them.
    """

    of: str
    reason: str
    keep: tuple[ResourceRef, ...]
    paths: Sequence[str]
    chosen: Configured
    declared: Collection[ResourceRef] = ()
    notes: Sequence[Diagnostic] = ()

    def ready(
        self,
        scope: Scope,
        names: Collection[str],
        allowed: Allowances,
        client: ReadOnlyService,
    ) -> tuple[DesiredState, Allowances, Sequence[Diagnostic], HistoryReader]:
        """Return what takes the run back, in the organizations of these names.

        Last is the service as it was read for that.

        Raises:
            StalePlanError: an object was changed since; each is printed on stderr.
        """
        past = _past_of(client, self.of, scope.tree)
        now = client.observe(names)
        before = client.observe_at({name: past.sequences[name] for name in names})
        check_complete(now)
        check_complete(before)
        known: dict[str, list[ResourceRef]] = {}
        for state in (before, now):
            for each in state.everything:
                known.setdefault(each.id, []).append(each.ref)
        refs = {key: named[-1] for key, named in known.items()}
        spared = self._spared(known)
        # What the run made and is gone by now is as it was before.
        events = {
            key: each for key, each in past.events.items() if key in refs and key not in spared
        }
        part, mark = Part(scope), Undone("", self.of, self.reason, {})
        states = BeforeAndNow(before, now, past.again, scope.prune, mark)
        later = changed_since(events, self.of, past.own, refs, past.undone)
        desired, undone, refused = states.undoing_part(
            later, events.keys(), lambda key: part.names(*known[key])
        )
        if refused:
            show_warnings(refused)
            raise StalePlanError(
                f"{len(refused)} object(s) cannot go back to what they were before run {self.of}",
                remedy="Undo the later run first, or leave the object out with --keep REF. "
                "Nothing was written.",
            )
        redo = frozenset(ref.folded for key, ref in refs.items() if key in undone)
        allowed = replace(allowed, redo=redo)
        # An application that lacks its secret is no matter of this undo, unless the run wrote it.
        objects = {
            key: each if each.id in undone else replace(each, has_secret=None)
            for key, each in now.objects.items()
        }
        read = _AsRead(client, replace(now, objects=objects))
        rotated = [stays_rotated(each, self.of, refs.get(each.id)) for each in past.rotated]
        warnings = (*rotated, *self.notes, *states.still_declared(undone, self.declared))
        return desired, allowed, warnings, read

    def _spared(self, known: Mapping[str, Collection[ResourceRef]]) -> Collection[str]:
        """Return the ids of what ``--keep`` names, by the name before the run or the one of now.

        Raises:
            UsageError: it names nothing.
        """
        kept = {each.key for each in self.keep}
        found = {key: {ref.key for ref in refs} & kept for key, refs in known.items()}
        unknown = kept.difference(*found.values())
        if unknown:
            named = next(each for each in self.keep if each.key in unknown)
            raise UsageError(
                f"--keep names nothing that is held: {named}", remedy="Correct the name."
            )
        return {key for key, refs in found.items() if refs}

    def with_manifests(self) -> Undoing:
        """Return it with what manifests declare; that they cannot be read is a note."""
        try:
            desired, _ = read_desired(self.paths, self.chosen)
        except ReconcilerError as failure:
            note = warning(
                "UNDO-MANIFESTS-NOT-READ",
                "the manifests were not read",
                f"{failure.problem}. The undo does not need them: only warnings of what they still "
                "declare are missing.",
            )
            return replace(self, notes=(note,))
        return replace(self, declared=desired.resources.keys())


def check_paths(paths: Sequence[str]) -> None:
    """Refuse a path of manifests that leads nowhere; one that cannot be read stops no undo."""
    for path in paths:
        if not os.path.lexists(path):
            raise UsageError(
                f"{visible(path)} does not exist",
                remedy="Correct the path, or leave it out: an undo does not need manifests. "
                "Nothing was written.",
            )


class _Past(NamedTuple):
    """The events since a run began, and the runs that they are of.

    Attributes:
        sequences: Where each organization stood before it, by name.
        events: Of each object that it wrote to, by id.
        own: The run and those that take it back.
        again: Ids of what only those wrote to.
        undone: All runs that were undone since.
        rotated: What gave a new client secret, which an undo cannot take back.
    """

    sequences: Mapping[str, int]
    events: Mapping[str, Sequence[FeedEvent]]
    own: Collection[str]
    again: Collection[str]
    undone: Collection[str]
    rotated: Sequence[FeedEvent]


def _past_of(reader: ReadOnlyService, run: str, tree: str) -> _Past:
    """Return what happened since a run began.

    Raises:
        NoHistoryError: the service keeps no history.
        ObjectNotFoundError: the caller sees no event of the run.
        UsageError: the run is of another tree, or several writers used its id.
    """
    log = log_of(reader)
    sequences = sequences_at(reader, log, At(run, run=run))
    events: dict[str, list[FeedEvent]] = {}
    rotated: list[FeedEvent] = []
    for _, since_then in reader.changes_of({each.id: sequences[each.name] for each in log.every}):
        for event in since_then:
            if event.said("run") == run and gives_secret(event):
                rotated.append(event)
            if is_change(event):
                events.setdefault(event.id, []).append(event)
    found = {
        key: happened
        for key, happened in events.items()
        if any(each.said("run") == run for each in happened)
    }
    for happened in found.values():
        ours = [each for each in happened if each.said("run") == run]
        trees = {each.said("tree") for each in ours}
        if trees != {tree}:
            raise UsageError(
                f"run {run} is of tree {visible(', '.join(sorted(trees)))}, not of {visible(tree)}",
                remedy="Give --tree. Another tree's objects are never written to.",
            )
    since = [*chain.from_iterable(events.values())]
    own = takes_back(run, since)
    undone = {each.said("undo") for each in since if each.said("undo")}
    again = {
        key
        for key, happened in events.items()
        if key not in found and all(each.said("run") in own for each in happened)
    }
    return _Past(sequences, found, own, again, undone, rotated)


SEARCHED = 31 * 86_400 * MICROS  # that far before a run, for the apply before it
MOST = 20  # manifests that are named
BY_HAND = (
    "Change the manifests to what is held now: a plan that would apply again what was undone is "
    "blocked."
)


def keeps_git_true(reader: ReadOnlyService, undo: Undoing, plan: Plan) -> str:
    """Return what to do in Git after the undo of a run.

    It is a commit to revert, if the log proves that the run applied just that one and all of it is
    undone; otherwise the manifests that differ from what is held. ``plan`` was carried out.
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
    desired, _ = read_desired(undo.paths, undo.chosen)
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
