"""``reconciler apply``.

The locks of the organizations and of the journal are taken before the first write and kept to the
end of the command.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reconciler.apply.changes import ApplyReport, Status
from reconciler.apply.executor import Executor
from reconciler.apply.sink import SecretSink
from reconciler.cli.apply_output import OUTPUTS, Extent, TextOutput
from reconciler.cli.approval import Approval, ask_for_yes, check_protection, take_approval
from reconciler.cli.clients import (
    holds_anything,
    locked,
    open_client,
    open_for_plan,
    open_reader,
    prove_seal_key,
    sink_for,
    warn_without_sink,
    why_a_sink,
)
from reconciler.cli.configured import (
    Configured,
    Need,
    check_partial,
    configured,
    untrusted,
)
from reconciler.cli.connection import Connection, place_of_store, require_seal_key
from reconciler.cli.journals import begun, open_journal
from reconciler.cli.manifests import clean_commit, read_whole, revision_of
from reconciler.cli.moments import new_context, organizations_of_run
from reconciler.cli.options import MADE, command, paths_argument
from reconciler.cli.output import say, timed
from reconciler.cli.policies import Judge, PolicyFolders, check_judged, judging
from reconciler.cli.process import ExitCode, exit_code_of, lost_output
from reconciler.cli.trees import paused_now, record, refuse_paused
from reconciler.cli.undoing import Undoing, check_paths, keeps_git_true
from reconciler.diagnostics import Diagnostic
from reconciler.errors import (
    BlockedPlanError,
    LocalFileError,
    OutputError,
    ReconcilerError,
    StalePlanError,
    UsageError,
)
from reconciler.loop import NO_FILES, LocalFiles, carry_out, explained
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope
from reconciler.plan.planfile import PlanFile
from reconciler.plan.undo import marked
from reconciler.report.apply_report import ResultDocument, report_as_text
from reconciler.report.place import Place, place_as_text
from reconciler.report.plan_document import PlanDocument, blocks_in_words
from reconciler.resources.process import crashpoint
from reconciler.service_client.port import HistoryReader, ReadOnlyService, ServiceClient
from reconciler.state import DesiredState, ObservedState, Pause, Undone, pauses_of

NOTHING_DECLARED = DesiredState({}, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The flags and inputs of one apply.

    Attributes:
        commit: The commit that is applied, all of it; empty where that is not certain.
        undo: What is undone; None for an apply of manifests.
    """

    desired: DesiredState = NOTHING_DECLARED
    warnings: Sequence[Diagnostic] = ()
    connection: Connection
    scope: Scope
    allowed: Allowances
    judge: Judge
    files: LocalFiles = NO_FILES
    approval: Approval
    secrets_to: str | None
    sink: SecretSink | None = None
    output: TextOutput
    revision: str = ""
    require_secrets: bool = False
    auto_approve: bool
    lock_timeout: float
    despite_pause: bool
    commit: str = ""
    undo: Undoing | None = None


def run_of(given: Mapping[str, Any]) -> Run:
    """Return the run that settings describe; nothing of it is read, approved or opened yet."""
    names = Run.__dataclass_fields__.keys()
    made = {name: build(given) for name, build in MADE.items() if name in names}
    flags = {name: given[name] for name in names & given.keys() - made.keys()}
    judge, output = Judge(configured()), OUTPUTS[given["form"]]()
    return Run(**made, **flags, judge=judge, approval=Approval(), output=output)


@command("apply", example="plan.json", formats=(*OUTPUTS,), need=Need.ONE, run=run_of)
@paths_argument
def apply_command(paths: tuple[str, ...], run: Run, folders: PolicyFolders, digest: str) -> int:
    """Make a plan, show it, ask for approval, and carry it out.

    PATHS are files and folders; the default is the folder manifests. REF is
    Kind/organization[/project]/name. A plan file before PATHS, or --digest, is the approval: the
    plan is made again, and applied if it is the same.
    """
    connection, scope = run.connection, run.scope
    with run.output.of_a_run():
        require_seal_key(connection)
        chosen = configured()
        approval, paths = take_approval(
            paths, digest, chosen.name, place_of_store(connection.service)
        )
        check_partial(chosen, scope, *([approval.file.plan.scope] if approval.file else []))
        check_protection(chosen, connection.service, auto_approve=run.auto_approve)
        if chosen.is_protected and not approval.is_given:
            raise UsageError(
                f"environment {chosen.name} is protected: it takes an approved plan only",
                remedy=f"Run `reconciler plan --env {chosen.name} --out FILE`, have it reviewed, "
                "then give the file to apply, or --digest with the digest of the plan. Nothing was "
                "written.",
            )
        with judging(folders, chosen) as judge:
            sink = sink_for(connection, run.secrets_to)
            run = replace(run, judge=judge, approval=approval, sink=sink)
            if approval.file is not None and approval.file.plan.scope.undo:
                judge.check()
                return _apply_saved_undo(run, approval.file, paths, chosen)
            desired, warnings, scope, look = read_whole(paths, scope, chosen)
            judge.check()
            run = replace(
                run,
                desired=desired,
                warnings=warnings,
                scope=scope,
                files=LocalFiles(look, partial(begun, connection, scope)),
                revision=run.revision or revision_of(paths or chosen.manifests, os.environ),
                commit=_commit(paths or chosen.manifests, chosen, desired, scope),
            )
            if blocks := untrusted():  # shown, then refused: a service is not asked
                _approve(run, Plan(scope, "", desired.organizations, blocks=blocks))
            if not holds_anything(connection.service):
                return _apply_to_new_store(run)
            return _applied(run)[0]


def _commit(paths: Sequence[str], chosen: Configured, desired: DesiredState, scope: Scope) -> str:
    """Return the commit that the manifests are of, if nothing of it is edited or left out."""
    if not desired.whole or scope.shard is not None or scope.is_partial:
        return ""
    named = chosen.configuration.file if chosen.configuration else ""
    return clean_commit([*paths, *filter(None, [chosen.layers.overlay, named])], desired)


def of_service(run: Run, undo: Undoing) -> Run:
    """Return a run that is about the organizations that the undone one wrote to.

    Their events are read here and once more by ``planned``: which organizations to lock must be
    known before the lock, and whether an object was changed since is certain only under it.
    """
    with open_reader(run.connection) as reader:
        organizations = organizations_of_run(reader, undo.of)
    undo = undo.with_manifests() if run.scope.prune else undo
    return replace(run, desired=DesiredState({}, organizations), undo=undo)


def apply_undo(run: Run) -> int:
    """Carry out the undo of a run, and say what keeps Git true; return the exit code."""
    code, plan = _applied(run)
    if run.undo is not None and code == ExitCode.DONE and plan.changes:
        # The undo is done by now, also where the service cannot be asked once more.
        with suppress(ReconcilerError), open_reader(run.connection) as reader:
            say(keeps_git_true(reader, run.undo, plan), err=True)
    return code


def _apply_saved_undo(run: Run, file: PlanFile, paths: Sequence[str], chosen: Configured) -> int:
    """Carry out the undo of a plan file, if the plan of now is the same; return the exit code.

    ``run`` has the options; what it wants is read from the service.
    """
    check_paths(paths)
    saved = file.plan.scope
    scope = replace(run.scope, undo=saved.undo, keep=saved.keep)
    undo = Undoing(saved.undo, file.reason, saved.keep, paths, chosen)
    # What it brings back is of no commit.
    return apply_undo(of_service(replace(run, scope=scope, revision=""), undo))


def planned(run: Run, client: ReadOnlyService) -> tuple[Run, Plan, ObservedState]:
    """Return a run with what it wants, its plan as policies judge it, and what that is based on.

    The policies of a plan file must judge it again.
    """
    reader: HistoryReader = client
    if run.undo is not None:
        desired, allowed, warnings, reader = run.undo.ready(
            run.scope, run.desired.organizations, run.allowed, client
        )
        run = replace(run, desired=desired, allowed=allowed, warnings=warnings)
    plan, observed = run.approval.preview(run.desired, reader, run.scope, run.allowed, run.files)
    plan = run.judge(explained(plan, client, observed))
    check_judged(run.approval.file.plan if run.approval.file else None, plan)
    return run, plan, observed


def _applied(run: Run) -> tuple[int, Plan]:
    """Take the lock, plan, get approval, and carry the plan out; return exit code and plan."""
    with open_client(run.connection) as client:
        with locked(client, run.desired.organizations, run.lock_timeout):
            crashpoint("C1")
            with timed("observe and plan"):
                run, plan, observed = planned(run, client)
            approved = _approve(run, plan, pauses_of(observed, run.scope.tree))
            if not run.approval.is_given and not run.auto_approve:
                # The answer may have taken hours.
                _refuse_paused(run, paused_now(client, run.scope.tree, run.desired.organizations))
            code = _carry_out(run, approved, observed, client)
            crashpoint("C12")
        crashpoint("C13")
        return code, approved


def _apply_to_new_store(run: Run) -> int:
    """Plan against a store that does not exist yet; make and lock it once the plan is approved."""
    with open_for_plan(run.connection) as nothing:
        run, plan, _ = planned(run, nothing)
    approved = _approve(run, plan)
    if not approved.changes:
        return ExitCode.DONE
    organizations = run.desired.organizations
    with open_client(run.connection) as client, locked(client, organizations, run.lock_timeout):
        observed = client.observe(organizations)
        if observed.objects:
            raise StalePlanError(
                "another run created and filled the store in the meantime",
                remedy="Run `reconciler plan` again and review the new plan.",
            )
        return _carry_out(run, approved, observed, client)


def _approve(run: Run, plan: Plan, paused: Iterable[tuple[str, Pause]] = ()) -> Plan:
    """Show a plan and return it, with its warnings, once it may be carried out."""
    plan, service = warn_without_sink(plan, run.sink), run.connection.service
    is_approved = run.auto_approve or run.approval.is_given
    asks = bool(plan.changes or plan.deliverable) and not is_approved
    extent = Extent.SUMMARY if run.approval.is_given else Extent.CHANGES
    extent = Extent.ASKED if asks else extent
    document = PlanDocument(plan, service, run.warnings, for_apply=True)
    run.output.show_plan(document, extent)
    if lost := lost_output():
        raise OutputError(
            f"the plan could not be printed: {lost}",
            remedy="Run apply with a stdout that can be written. Nothing was written to the "
            "service.",
        )
    if plan.blocks:
        raise BlockedPlanError(
            f"the plan is blocked by {blocks_in_words(plan.blocks)}",
            remedy="Each says above what to do. Nothing was written.",
        )
    _refuse_paused(run, [name for name, _ in paused])
    if (why := why_a_sink(plan)) and run.sink is None:
        raise BlockedPlanError(
            f"{why}, and no destination is chosen",
            remedy="Give --secrets-to file:DIR. Nothing was written.",
        )
    if run.require_secrets and run.sink is None:
        raise UsageError(
            "--require-secrets needs a place to look for them",
            remedy="Give --secrets-to. Nothing was written.",
        )
    if asks:
        ask_for_yes("apply this plan", "apply", [place_as_text(document.place)])
    return plan


def _refuse_paused(run: Run, names: Sequence[str]) -> None:
    """Refuse to apply a tree that is paused in these organizations, if there are any."""
    if not run.despite_pause:
        refuse_paused(run.scope.tree, names, "applies this once")


def _carry_out(run: Run, plan: Plan, observed: ObservedState, client: ServiceClient) -> int:
    """Carry out an approved plan with progress, and report; return the exit code."""
    tree, instance, desired = run.scope.tree, observed.instance, run.desired
    context = new_context(tree, run.revision, run.approval.digest_of(plan))
    run_id = context["run"]
    if run.undo:
        plan = marked(plan, Undone(run_id, run.undo.of, run.undo.reason, {}))
        context |= {"undo": run.undo.of, "reason": run.undo.reason}
    place = Place(
        run.connection.service, instance, tree, run.scope.environment, undo=run.scope.undo
    )
    if why_a_sink(plan):
        prove_seal_key(run.connection)
    opened = open_journal(
        run.connection, instance, run.scope, desired.organizations, run.lock_timeout
    )
    with opened as journal:
        with run.output.watch() as watch, timed("apply and observe again"):
            executor = Executor(client, journal, run.sink, watch, context, run.allowed)
            required = run.require_secrets
            report = carry_out(plan, observed, desired, client, executor, require_secrets=required)
        result = ResultDocument(report, place, run_id if observed.keeps_history else "")
        run.output.show_report(result)
        if lost_output():  # the report must not be lost
            say(report_as_text(result), err=True)
        executor.was_told()
    code = exit_code(report)
    if code == ExitCode.DONE and run.commit:
        outcome = "changed" if plan.changes else "unchanged"
        record(client, tree, desired.organizations, run.commit, outcome, context)
    return code


def exit_code(report: ApplyReport) -> int:
    """Return the exit code of an apply with this report."""
    if report.interrupted:
        return ExitCode.SIGNAL + report.interrupted
    errors = [delivered.error for delivered in report.delivered if delivered.error]
    errors += [outcome.error for outcome in report.outcomes if outcome.error]
    written = (
        report.count(Status.MADE)
        or any(outcome.written for outcome in report.outcomes)
        # The service gave this secret out, and records it, also where the sink did not take it.
        or any(isinstance(each.error, LocalFileError | None) for each in report.delivered)
    )
    if errors and not written:
        return exit_code_of(errors[0])
    return ExitCode.DONE if report.is_complete else ExitCode.PARTLY
