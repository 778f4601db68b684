"""``reconciler undo``: take back what one run did, by a plan like any other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from reconciler.cli.after_undo import keeps_git_true
from reconciler.cli.apply import Run, apply_run
from reconciler.cli.apply_output import OUTPUTS
from reconciler.cli.approval import Approval, check_protection, take_approval
from reconciler.cli.clients import open_reader, sink_for
from reconciler.cli.configured import Need, configured
from reconciler.cli.connection import Connection, place_of_store, require_seal_key
from reconciler.cli.moments import check_complete, log_of, sequences_at
from reconciler.cli.options import command
from reconciler.cli.output import say, show_warnings
from reconciler.cli.parameter_types import At, past_moment
from reconciler.cli.policies import PolicyFolders, judging
from reconciler.cli.process import ExitCode
from reconciler.diagnostics import Diagnostic
from reconciler.errors import StalePlanError, UsageError
from reconciler.loop import LocalFiles
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Scope
from reconciler.plan.undo import changed_since, is_change, rotated_by, undoing
from reconciler.report.visible import visible
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import FeedReader, ServiceClient
from reconciler.state import DesiredState, FeedEvent, ObservedState, Undone

if TYPE_CHECKING:
    from reconciler.service_client.port import HistoryReader


class _AsRead:
    """A service that answers what was read of it: the plan is of that very state."""

    def __init__(self, client: ServiceClient, observed: ObservedState) -> None:
        self._client = client
        self._observed = observed
        self.history, self.removals = client.history, client.removals

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        """Return what was read; all flows are in it."""
        return self._observed

    def generation(self) -> int | None:
        """Return the generation of a ZITADEL."""
        return self._client.generation()


@dataclass(frozen=True, slots=True)
class Undoing:
    """The undo of a run.

    Attributes:
        of: Id of the run.
        keep: What stays as it is held.
    """

    of: str
    reason: str
    keep: tuple[ResourceRef, ...]

    def ready(self, run: Run, client: ServiceClient) -> tuple[Run, HistoryReader]:
        """Return a run whose desired state takes the other run back.

        Raises:
            StalePlanError: an object was changed since; each is printed on stderr.
        """
        sequences, events, notes = _events_of(client, self.of, run.scope.tree)
        names = run.desired.organizations
        now = client.observe(names)
        before = client.observe_at({name: sequences[name] for name in names})
        check_complete(now)
        check_complete(before)
        refs = {each.id: each.ref for state in (before, now) for each in state.everything}
        kept = {each.key for each in self.keep}
        unknown = [each for each in self.keep if each.key not in {refs[i].key for i in refs}]
        if unknown:
            raise UsageError(
                f"--keep names nothing that is held: {unknown[0]}", remedy="Correct the name."
            )
        spared = {
            each.id for state in (before, now) for each in state.everything if each.ref.key in kept
        }
        # What the run made and is gone by now is as it was before.
        events = {key: told for key, told in events.items() if key in refs and key not in spared}
        mark = Undone("", self.of, self.reason, {})
        desired, taken = undoing(before, now, events.keys(), mark)
        stale = (*changed_since(events, self.of, refs), *taken)
        if stale:
            show_warnings(stale)
            raise StalePlanError(
                f"{len(stale)} object(s) cannot go back to what they were before run {self.of}",
                remedy="Undo the later run first, or leave the object out with --keep REF. "
                "Nothing was written.",
            )
        redo = frozenset(ref.folded for key, ref in refs.items() if key in events)
        allowed = replace(run.allowed, redo=redo)
        # An application that lacks its secret is no matter of this undo, unless the run wrote it.
        objects = {
            key: each if each.id in events else replace(each, has_secret=None)
            for key, each in now.objects.items()
        }
        read = _AsRead(client, replace(now, objects=objects))
        warnings = (*run.warnings, *notes)
        return replace(run, desired=desired, allowed=allowed, warnings=warnings), read


def _events_of(
    reader: FeedReader, run: str, tree: str
) -> tuple[Mapping[str, int], Mapping[str, Sequence[FeedEvent]], Sequence[Diagnostic]]:
    """Return where each organization stood before a run, the events of what it wrote to, and notes.

    Raises:
        NoHistoryError: the service keeps no history.
        ObjectNotFoundError: the caller sees no event of the run.
        UsageError: the run is of another tree, or several writers used its id.
    """
    log = log_of(reader)
    sequences = sequences_at(reader, log, At(run, run=run))
    events: dict[str, list[FeedEvent]] = {}
    notes: list[Diagnostic] = []
    for head in log.every:
        for event in reader.changes(head.id, sequences[head.name]):
            notes += rotated_by(event, run)
            if is_change(event):
                events.setdefault(event.id, []).append(event)
    found = {
        key: told
        for key, told in events.items()
        if any(each.context.get("run") == run for each in told)
    }
    for told in found.values():
        trees = {str(e.context.get("tree", "")) for e in told if e.context.get("run") == run}
        if trees != {tree}:
            raise UsageError(
                f"run {run} is of tree {visible(', '.join(sorted(trees)))}, not of {visible(tree)}",
                remedy="Give --tree. Another tree's objects are never written to.",
            )
    return sequences, found, notes


def _organizations(reader: FeedReader, run: str) -> tuple[str, ...]:
    """Return the organizations that a run wrote to."""
    log = log_of(reader)
    sequences = sequences_at(reader, log, At(run, run=run))
    return tuple(
        head.name
        for head in log.every
        if any(
            each.context.get("run") == run for each in reader.changes(head.id, sequences[head.name])
        )
    )


@command("undo", example="01a20af927484fd19232209f8ad77c57", formats=(*OUTPUTS,), need=Need.ONE)
@click.argument("of", metavar="RUN")
def undo_command(
    of: str,
    connection: Connection,
    secrets_to: str | None,
    scope: Scope,
    allowed: Allowances,
    folders: PolicyFolders,
    form: str,
    digest: str,
    keep: tuple[ResourceRef, ...],
    reason: str,
    *,
    auto_approve: bool,
    lock_timeout: float,
    despite_pause: bool,
) -> int:
    """Take back what one run did: its objects become what they were before it.

    RUN is the id that apply shows at its end. An object that was changed since is refused. What
    the run made is deleted only with --prune. No manifest is read.
    """
    output = OUTPUTS[form]()
    with output.of_a_run():
        require_seal_key(connection)
        chosen = configured()
        if not past_moment(of).run:
            raise UsageError(f"{visible(of)} is not the id of a run", remedy="See history.")
        approval, _ = take_approval((), digest, chosen.name, place_of_store(connection.service))
        check_protection(chosen, connection.service, auto_approve=auto_approve)
        if chosen.is_protected and not digest:
            raise UsageError(
                f"environment {chosen.name} is protected: it takes an approved plan only",
                remedy="Give --digest with the digest of the plan. Nothing was written.",
            )
        scope = replace(scope, undo=of, keep=tuple(sorted({ref.key for ref in keep})))
        with open_reader(connection) as reader:
            organizations = _organizations(reader, of)
        with judging(folders, chosen) as judge:
            judge.check()
            run = Run(
                DesiredState({}, organizations),
                (),
                connection,
                scope,
                allowed,
                judge,
                LocalFiles(),
                Approval(digest=approval.digest),
                sink_for(connection, secrets_to),
                output,
                "",
                require_secrets=False,
                auto_approve=auto_approve,
                lock_timeout=lock_timeout,
                despite_pause=despite_pause,
                commit="",
                undo=Undoing(of, reason, keep),
            )
            code = apply_run(run)
        if code == ExitCode.DONE:
            with open_reader(connection) as reader:
                begins = sequences_at(reader, log_of(reader), At(of, run=of))
                say(keeps_git_true(reader, of, scope.tree, begins), err=True)
        return code
