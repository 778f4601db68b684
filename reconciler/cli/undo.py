"""``reconciler undo``: take back what one run did, by a plan like any other."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from reconciler.cli.after_undo import keeps_git_true
from reconciler.cli.apply import Run, apply_run, judged_plan
from reconciler.cli.apply_output import OUTPUTS, Extent
from reconciler.cli.approval import check_protection, is_digest, take_approval
from reconciler.cli.clients import open_reader, sink_for, warn_without_sink, why_a_sink
from reconciler.cli.configured import Configured, Need, check_partial, configured
from reconciler.cli.connection import Connection, place_of_store, require_seal_key
from reconciler.cli.manifests import Made, read_desired
from reconciler.cli.moments import check_complete, log_of, sequences_at
from reconciler.cli.options import command, paths_argument
from reconciler.cli.output import say, show_warnings, timed
from reconciler.cli.parameter_types import MICROS, At, is_run
from reconciler.cli.policies import PolicyFolders, judging
from reconciler.cli.process import ExitCode
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import ObjectNotFoundError, ReconcilerError, StalePlanError, UsageError
from reconciler.loop import LocalFiles, explained
from reconciler.plan.digest import plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope
from reconciler.plan.undo import changed_since, is_change, rotated_by, still_declared, undoing
from reconciler.report.plan_document import PlanDocument
from reconciler.report.visible import visible
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import FeedReader, ReadOnlyService
from reconciler.state import DesiredState, FeedEvent, ObservedState, Undone

if TYPE_CHECKING:
    from reconciler.plan.planfile import PlanFile
    from reconciler.service_client.port import HistoryReader


class _AsRead:
    """A service that answers what was read of it: the plan is of that very state."""

    def __init__(self, client: ReadOnlyService, observed: ObservedState) -> None:
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
        declared: Keys of what the manifests declare, as far as they were read.
        notes: What was found in reading them.
    """

    of: str
    reason: str
    keep: tuple[ResourceRef, ...]
    declared: Collection[ResourceRef] = ()
    notes: Sequence[Diagnostic] = ()

    def ready(self, run: Run, client: ReadOnlyService) -> tuple[Run, HistoryReader]:
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
        warnings = (*notes, *self.notes, *still_declared(before, now, events.keys(), self.declared))
        return replace(run, desired=desired, allowed=allowed, warnings=warnings), read

    def with_manifests(self, paths: Sequence[str], chosen: Configured) -> Undoing:
        """Return it with what manifests declare; that they cannot be read is a note."""
        try:
            desired, _ = read_desired(paths, chosen)
        except ReconcilerError as failure:
            note = warning(
                "UNDO-MANIFESTS-NOT-READ",
                "the manifests were not read",
                f"{failure.problem}. The undo does not need them: only warnings of what they still "
                "declare are missing.",
            )
            return replace(self, notes=(note,))
        return replace(self, declared=desired.resources.keys())


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


def apply_undo(run: Run, file: PlanFile, paths: Sequence[str], chosen: Configured) -> int:
    """Carry out the undo of a plan file, if the plan of now is the same; return the exit code.

    ``run`` has the options; what it wants is read from the service.
    """
    saved = file.plan.scope
    scope = replace(run.scope, undo=saved.undo, keep=saved.keep)
    undo = Undoing(saved.undo, file.reason, saved.keep)
    undo = undo.with_manifests(paths, chosen) if scope.prune else undo
    return apply_run(_of_service(replace(run, scope=scope), undo))


def _of_service(run: Run, undo: Undoing) -> Run:
    """Return a run that is about the organizations that the undone one wrote to."""
    with open_reader(run.connection) as reader:
        organizations = _organizations(reader, undo.of)
    return replace(run, desired=DesiredState({}, organizations), undo=undo)


def _check_named(of: str, *, last: bool) -> None:
    """Refuse what names no run, or two.

    Raises:
        UsageError: it does.
    """
    write = "Write `reconciler undo RUN`, with the id that apply and history show, or --last."
    if last and of:
        raise UsageError(f"--last and {visible(of)} both name a run", remedy=write)
    if not last and not of:
        raise UsageError("no run is named", remedy=write)
    if of and not is_digest(of) and not is_run(of):
        raise UsageError(
            f"{visible(of)} is neither the id of a run nor the digest of a plan", remedy=write
        )


_WINDOWS = (86_400, 31 * 86_400)  # seconds that are searched for the last run, before all


def _last_run(reader: FeedReader, tree: str) -> str:
    """Return the last run that changed something for a tree; an undo is one as well.

    Raises:
        NoHistoryError: the service keeps no history.
        ObjectNotFoundError: the caller sees none.
    """
    every = log_of(reader).every
    now = int(time.time())
    # The log may be long, and the last run is seldom old.
    for begins in (*((now - window) * MICROS for window in _WINDOWS), 0):
        found = [
            (event.sequence, str(event.context["run"]))
            for head in every
            if head.sequence > begins
            for event in reader.changes(head.id, begins)
            if is_change(event) and event.context.get("tree") == tree and event.context.get("run")
        ]
        if found:
            return max(found)[1]
    raise ObjectNotFoundError(
        f"there is no run of tree {visible(tree)}",
        remedy="Give --tree, or the id of a run: `reconciler history` shows those of all.",
    )


def _run_of_plan(reader: FeedReader, digest: str) -> str:
    """Return the one run that applied the plan of a digest.

    Raises:
        NoHistoryError: the service keeps no history.
        ObjectNotFoundError: the caller sees no such run.
        UsageError: several runs did.
    """
    runs = {
        str(event.context["run"])
        for head in log_of(reader).every
        for event in reader.changes(head.id)
        if event.context.get("plan") == digest and event.context.get("run")
    }
    if not runs:
        raise ObjectNotFoundError(
            f"no run applied the plan {digest}",
            remedy="`reconciler history --organization NAME` shows the plan and the run of each "
            "event. A token sees events of its own organizations only.",
        )
    if len(runs) > 1:
        raise UsageError(
            f"several runs applied the plan {digest}: {', '.join(sorted(map(visible, runs)))}",
            remedy="Give the id of one of them, the later one first. Nothing was written.",
        )
    return runs.pop()


def _applied(run: Run, of: str) -> int:
    """Apply the undo of a run, and say what keeps Git true."""
    code = apply_run(run)
    if code == ExitCode.DONE:
        with open_reader(run.connection) as reader:
            begins = sequences_at(reader, log_of(reader), At(of, run=of))
            say(keeps_git_true(reader, of, run.scope.tree, begins), err=True)
    return code


@command("undo", example="01a20af927484fd19232209f8ad77c57", formats=(*OUTPUTS,), need=Need.ONE)
@click.argument("of", metavar="[RUN|DIGEST]", default="")
@paths_argument
def undo_command(
    of: str,
    paths: tuple[str, ...],
    connection: Connection,
    secrets_to: str | None,
    scope: Scope,
    allowed: Allowances,
    folders: PolicyFolders,
    form: str,
    digest: str,
    keep: tuple[ResourceRef, ...],
    reason: str,
    out: str,
    expires: int,
    *,
    last: bool,
    auto_approve: bool,
    lock_timeout: float,
    despite_pause: bool,
) -> int:
    """Take back what one run did: its objects become what they were before it.

    RUN is the id that apply shows at its end; DIGEST is of a plan that one run applied. An object
    that was changed since is refused. What the run made is deleted only with --prune. A plan that
    --out saved is carried out by apply FILE. Manifests in PATHS only give warnings.
    """
    output = OUTPUTS[form]()
    with output.of_a_run():
        chosen = configured()
        if last and os.path.lexists(of):  # the first of PATHS
            of, paths = "", (of, *paths)
        _check_named(of, last=last)
        check_partial(chosen, scope)
        approval, _ = take_approval((), digest, chosen.name, place_of_store(connection.service))
        is_only_shown = bool(out) or (chosen.is_protected and not digest)
        if not is_only_shown:
            require_seal_key(connection)
        if not out:
            check_protection(chosen, connection.service, auto_approve=auto_approve)
        with open_reader(connection) as reader:
            if last:
                of = _last_run(reader, scope.tree)
            elif is_digest(of):
                of = _run_of_plan(reader, of)
        scope = replace(scope, undo=of, keep=tuple(sorted({ref.key for ref in keep})))
        with judging(folders, chosen) as judge:
            judge.check()
            run = Run(
                DesiredState({}, ()),
                (),
                connection,
                scope,
                allowed,
                judge,
                LocalFiles(),
                approval,
                sink_for(connection, secrets_to),
                output,
                "",
                require_secrets=False,
                auto_approve=auto_approve,
                lock_timeout=lock_timeout,
                despite_pause=despite_pause,
                commit="",
            )
            undo = Undoing(of, reason, keep)
            run = _of_service(run, undo.with_manifests(paths, chosen) if scope.prune else undo)
            if not is_only_shown:
                return _applied(run, of)
            plan, ready = _shown(run)
    if out:
        from reconciler.cli.plan_files import save_plan

        save_plan(
            out,
            plan,
            ready.desired,
            service=connection.service,
            paths=paths,
            lasting=expires,
            snapshot=None,
            findings=tuple(ready.warnings),
            made=Made(int(time.time()), ""),
            reason=reason,
        )
        return ExitCode.DONE
    raise UsageError(
        f"environment {chosen.name} is protected: it takes an approved plan only",
        remedy=f"Have this plan reviewed, then give --digest {plan_digest(plan)}; or save it with "
        "--out FILE for apply. Nothing was written.",
    )


def _shown(run: Run) -> tuple[Plan, Run]:
    """Show the plan of an undo, and return it and its run; nothing is written or locked."""
    with open_reader(run.connection) as reader, timed("observe and plan"):
        ready, read = run.undo.ready(run, reader) if run.undo else (run, reader)
        plan, observed = ready.approval.preview(
            ready.desired, read, ready.scope, ready.allowed, ready.files
        )
        plan = judged_plan(ready, explained(plan, reader, observed))
    plan = warn_without_sink(plan, run.sink if why_a_sink(plan) else None)
    document = PlanDocument(plan, run.connection.service, ready.warnings, for_apply=True)
    run.output.show_plan(document, Extent.ASKED)
    return plan, ready
