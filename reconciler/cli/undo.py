"""``reconciler undo``: take back what one run did, by a plan like any other."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import click

from reconciler.cli.apply import Run, apply_undo, of_service, planned, run_of
from reconciler.cli.apply_output import OUTPUTS, Extent
from reconciler.cli.approval import check_protection, is_digest, take_approval
from reconciler.cli.clients import open_reader, sink_for, warn_without_sink
from reconciler.cli.configured import Need, check_partial, configured
from reconciler.cli.connection import place_of_store, require_seal_key
from reconciler.cli.manifests import Made
from reconciler.cli.moments import log_of
from reconciler.cli.options import command, paths_argument
from reconciler.cli.output import timed
from reconciler.cli.parameter_types import MICROS, is_run
from reconciler.cli.policies import PolicyFolders, judging
from reconciler.cli.process import ExitCode
from reconciler.cli.undoing import Undoing, check_paths
from reconciler.errors import ObjectNotFoundError, UsageError
from reconciler.plan.digest import plan_digest
from reconciler.plan.undo import is_change
from reconciler.report.plan_document import PlanDocument
from reconciler.report.visible import visible
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import ReadOnlyService
from reconciler.state import DesiredState


def _check_named(of: str, *, last: bool) -> None:
    """Refuse what names no run, or two."""
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


def _last_run(reader: ReadOnlyService, tree: str) -> str:
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
            (event.sequence, event.said("run"))
            for _, events in reader.changes_of(
                {head.id: begins for head in every if head.sequence > begins}
            )
            for event in events
            if is_change(event) and event.said("tree") == tree and event.said("run")
        ]
        if found:
            return max(found)[1]
    raise ObjectNotFoundError(
        f"there is no run of tree {visible(tree)}",
        remedy="Give --tree, or the id of a run: `reconciler history` shows those of all.",
    )


def _run_of_plan(reader: ReadOnlyService, digest: str) -> str:
    """Return the one run that applied the plan of a digest.

    Raises:
        NoHistoryError: the service keeps no history.
        ObjectNotFoundError: the caller sees no such run.
        UsageError: several runs did.
    """
    runs = {
        event.said("run")
        for _, events in reader.changes_of({head.id: 0 for head in log_of(reader).every})
        for event in events
        if event.said("plan") == digest and event.said("run")
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


@command(
    "undo",
    example="01a20af927484fd19232209f8ad77c57",
    formats=(*OUTPUTS,),
    need=Need.ONE,
    run=run_of,
)
@click.argument("of", metavar="[RUN|DIGEST]", default="")
@paths_argument
def undo_command(
    of: str,
    paths: tuple[str, ...],
    run: Run,
    folders: PolicyFolders,
    digest: str,
    keep: tuple[ResourceRef, ...],
    reason: str,
    out: str,
    expires: int,
    *,
    last: bool,
) -> int:
    """Take back what one run did: its objects become what they were before it.

    RUN is the id that apply shows at its end; DIGEST is of a plan that one run applied. An object
    that was changed since is refused. What the run made is deleted only with --prune. A plan that
    --out saved is carried out by apply FILE. Manifests in PATHS only give warnings.
    """
    connection, scope = run.connection, run.scope
    with run.output.of_a_run():
        chosen = configured()
        if last and os.path.lexists(of):  # the first of PATHS
            of, paths = "", (of, *paths)
        _check_named(of, last=last)
        check_paths(paths)
        check_partial(chosen, scope)
        approval, _ = take_approval((), digest, chosen.name, place_of_store(connection.service))
        is_only_shown = bool(out) or (chosen.is_protected and not digest)
        if not is_only_shown:
            require_seal_key(connection)
        if not out:
            check_protection(chosen, connection.service, auto_approve=run.auto_approve)
        with open_reader(connection) as reader:
            if last:
                of = _last_run(reader, scope.tree)
            elif is_digest(of):
                of = _run_of_plan(reader, of)
        scope = replace(scope, undo=of, keep=tuple(sorted({ref.key for ref in keep})))
        with judging(folders, chosen) as judge:
            judge.check()
            sink = sink_for(connection, run.secrets_to)
            run = replace(run, scope=scope, judge=judge, approval=approval, sink=sink)
            run = of_service(run, Undoing(of, reason, keep, paths, chosen))
            if not is_only_shown:
                return apply_undo(run)
            shown, desired = _shown(run)
    if out:
        from reconciler.cli.plan_files import save_plan

        made = Made(int(time.time()), "")
        save_plan(out, shown, desired, paths=paths, lasting=expires, made=made, reason=reason)
        return ExitCode.DONE
    raise UsageError(
        f"environment {chosen.name} is protected: it takes an approved plan only",
        remedy=f"Have this plan reviewed, then give --digest {plan_digest(shown.plan)}; or save it "
        "with --out FILE for apply. Nothing was written.",
    )


def _shown(run: Run) -> tuple[PlanDocument, DesiredState]:
    """Show the plan of an undo, and return it and what it wants; nothing is written or locked."""
    with open_reader(run.connection) as reader, timed("observe and plan"):
        ready, plan, _ = planned(run, reader)
    plan = warn_without_sink(plan, run.sink)
    document = PlanDocument(plan, run.connection.service, ready.warnings, for_apply=True)
    run.output.show_plan(document, Extent.ASKED)
    return document, ready.desired
