"""``reconciler plan``, ``show`` and ``compare``; and a plan in each of its output forms."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from reconciler.cli.clients import (
    open_for_plan,
    open_reader,
    sink_for,
    warn_without_sink,
    why_a_sink,
)
from reconciler.cli.configured import Need, check_partial, configured, untrusted
from reconciler.cli.connection import Connection
from reconciler.cli.journals import begun
from reconciler.cli.manifests import Made, read_offline, read_whole, revision_of
from reconciler.cli.moments import check_complete, held_at, log_of, moments_of
from reconciler.cli.options import command, paths_argument
from reconciler.cli.output import (
    age_in_words,
    draw,
    show_warnings,
    time_in_words,
    timed,
)
from reconciler.cli.parameter_types import At, complete_files, declared_environments
from reconciler.cli.policies import PolicyFolders, judging
from reconciler.cli.process import ExitCode, keep_until_exit
from reconciler.diagnostics import of_all, warning
from reconciler.errors import InvalidManifestsError, UsageError
from reconciler.loop import LocalFiles, explained, histories_of, preview
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope, Update
from reconciler.report.html import plan_as_html
from reconciler.report.layout import Forms, in_json
from reconciler.report.markdown import plan_as_markdown
from reconciler.report.place import Place, place_as_marker
from reconciler.report.plan_document import About, PlanDocument
from reconciler.report.plan_json import plan_as_json
from reconciler.report.plan_text import plan_as_text
from reconciler.state import FeedEvent


class PlanForm(NamedTuple):
    """The form of a plan that is shown.

    Attributes:
        max_chars: Length of Markdown at most.
        docs: Address of the documents that Markdown and HTML link to; empty for no links.
        on_merge: Name of the CI whose jobs apply the plan on merge, if any do.
    """

    form: str
    max_chars: int
    docs: str
    on_merge: str | None

    def about(self, made: Made) -> About:
        """Return what Markdown and HTML say of the plan at their top."""
        return About(time_in_words(made.at), made.revision, self.docs, self.on_merge or "")


def plan_form_of(given: Mapping[str, Any]) -> PlanForm:
    """Return the form of a plan that settings describe."""
    return PlanForm(**{name: given[name] for name in PlanForm._fields})


_FORMS: Forms[PlanDocument] = {
    "text": plan_as_text,
    "json": in_json(plan_as_json),
    "markdown": plan_as_markdown,
    "html": plan_as_html,
}
FORMATS = (*_FORMS,)


@contextmanager
def _findings_as_comment(connection: Connection, scope: Scope, form: PlanForm) -> Iterator[None]:
    """Print invalid manifests as Markdown, too, where that is the form.

    A pull request whose comment shows the plan of an earlier commit then gets the findings in its
    place.
    """
    try:
        yield
    except InvalidManifestsError as failure:
        if form.form == "markdown":
            from reconciler.report.ci import findings_as_comment

            place = Place(connection.service, "", scope.tree, scope.environment)
            marker = place_as_marker(place, scope)
            text = findings_as_comment(failure.diagnostics, marker, form.max_chars)
            click.echo(text, nl=False)
        raise


@command(
    "plan",
    example="--env staging --out plan.json",
    formats=FORMATS,
    need=Need.ONE,
    form=plan_form_of,
)
@paths_argument
def plan_command(
    paths: tuple[str, ...],
    connection: Connection,
    secrets_to: str | None,
    scope: Scope,
    allowed: Allowances,
    folders: PolicyFolders,
    form: PlanForm,
    detailed_exitcode: bool,
    out: str,
    expires: int,
    against: str,
) -> int:
    """Show what apply would do. Nothing is changed.

    PATHS are files and folders; the default is the folder manifests. REF is
    Kind/organization[/project]/name.
    """
    chosen = configured()
    check_partial(chosen, scope)
    with _findings_as_comment(connection, scope, form), judging(folders, chosen) as judge:
        desired, warnings, scope, look = read_whole(paths, scope, chosen)
        judge.check()
        blocks, snapshot, service = untrusted(), None, connection.service
        if blocks:
            plan = Plan(scope, "", desired.organizations, blocks=blocks)
        elif against:
            from reconciler.cli.plan_files import plan_against

            plan, snapshot = plan_against(against, desired, (scope, allowed, LocalFiles(look)))
            service, plan = snapshot.service, judge(plan)
        else:
            with open_for_plan(connection) as reader, timed("observe and plan"):
                files = LocalFiles(look, partial(begun, connection, scope))
                plan, observed = preview(desired, reader, scope, allowed, files)
                plan = judge(explained(plan, reader, observed))
            keep_until_exit(observed)
    sink = sink_for(connection, secrets_to) if why_a_sink(plan) else None
    plan = warn_without_sink(plan, sink)
    made = Made(int(time.time()), revision_of(paths or chosen.manifests, os.environ))
    document = PlanDocument(plan, service, warnings, form.about(made))
    show_plan(document, form)
    if out:
        from reconciler.cli.plan_files import save_plan

        save_plan(
            out, document, desired, paths=paths, lasting=expires, snapshot=snapshot, made=made
        )
    return exit_code(plan) if detailed_exitcode else ExitCode.DONE


def exit_code(plan: Plan) -> ExitCode:
    """Return the detailed exit code of a plan: blocked wins over changes and owed secrets."""
    if plan.blocks:
        return ExitCode.BLOCKED
    is_pending = plan.changes or plan.deliverable or plan.owed_left
    return ExitCode.CHANGES if is_pending else ExitCode.DONE


@command("show", example="plan.json", formats=FORMATS, form=plan_form_of)
@click.argument("file", metavar="PLANFILE", shell_complete=complete_files)
def show_command(file: str, form: PlanForm) -> None:
    """Show a saved plan as it was made. Neither manifests nor service are read."""
    from reconciler.cli.plan_files import open_plan_file

    saved = open_plan_file(file)
    plan = saved.plan
    if saved.expires_at <= (now := int(time.time())):
        expired = warning(
            "PLAN-EXPIRED",
            f"the plan expired {age_in_words(now - saved.expires_at)} ago",
            f"It was made at {time_in_words(saved.made_at)} and is not applied any more. "
            "Run `reconciler plan` again.",
        )
        plan = replace(plan, warnings=(expired, *plan.warnings))
    made = Made(saved.made_at, saved.revision)
    document = PlanDocument(plan, saved.service, saved.warnings, form.about(made))
    show_plan(document, form, is_saved=True)


@command("compare", example="staging production", formats=FORMATS, form=plan_form_of)
@click.argument("one", required=False, is_eager=True, shell_complete=declared_environments)
@click.argument("other", required=False, shell_complete=declared_environments)
@paths_argument
def compare_command(
    one: str | None,
    other: str | None,
    paths: tuple[str, ...],
    connection: Connection,
    organization: Sequence[str],
    at: Sequence[At],
    form: PlanForm,
    detailed_exitcode: bool,
) -> int:
    """Show how the environment OTHER differs from ONE, in the forms of a plan.

    No service is asked: the manifests of both are resolved and compared. + is only in OTHER,
    - only in ONE, ~ in both with other values. Ids that manifests pin are not compared.

    With --at it shows what changed on a service since a moment, or between two, and who changed
    each field and why. No manifest is read.

    PATHS are files and folders; the default is the folder manifests.
    """
    if at:
        if one or len(at) > 2:
            raise UsageError(
                "--at is given once or twice, and without environments",
                remedy="Write `reconciler compare --at 2h`, or name two environments.",
            )
        plan = _compared_at(connection, organization, at)
        made = Made(int(time.time()), "")
        show_plan(PlanDocument(plan, connection.service, (), form.about(made)), form)
        return ExitCode.CHANGES if detailed_exitcode and plan.changes else ExitCode.DONE
    source = click.get_current_context().get_parameter_source("env")
    if source is ParameterSource.COMMANDLINE:
        raise UsageError(
            "--env does not go with two environments",
            remedy="The arguments name them. --env goes with --at, and names a service.",
        )
    if one and not other:
        raise click.MissingParameter(param_hint="'OTHER'", param_type="argument")
    if not one or not other or organization:
        raise UsageError(
            "compare takes two environments, or moments of a service",
            remedy="Write `reconciler compare staging production`, or `reconciler compare --at "
            "2h`, which --organization NAME limits.",
        )
    from reconciler.plan.planner import compare

    chosen = [configured().choose(name) for name in (one, other)]
    desired, warnings = zip(*(read_offline(paths, each) for each in chosen), strict=True)
    plan = compare(desired[0], desired[1], (one, other))
    findings = of_all(dict(zip((one, other), warnings, strict=True)))
    made = Made(int(time.time()), revision_of(paths or chosen[0].manifests, os.environ))
    show_plan(PlanDocument(plan, "", findings, form.about(made)), form)
    return ExitCode.CHANGES if detailed_exitcode and plan.changes else ExitCode.DONE


def _compared_at(connection: Connection, organizations: Sequence[str], at: Sequence[At]) -> Plan:
    """Return what changed on a service between two moments, or since one."""
    from reconciler.plan.between import changed_between, with_field_causes
    from reconciler.plan.history import names_by_id

    with open_reader(connection) as reader, timed("observe and compare"):
        log = log_of(reader, organizations)
        moments = moments_of(reader, log, at)
        before, after = reader.observe_at(moments.begins), held_at(reader, moments.ends, at[-1])
        check_complete(before)
        events: dict[str, list[FeedEvent]] = {}
        named = {head.id: head.name for head in log.heads}
        begins = {owner: moments.begins[name] for owner, name in named.items()}
        for owner, happened in reader.changes_of(begins):
            for event in happened:
                if moments.holds(named[owner], event.sequence):
                    events.setdefault(event.id, []).append(event)
        plan = changed_between(before, after, moments, events)
        names = names_by_id((*before.everything, *after.everything))
        updated = [change.held for change in plan.changes if isinstance(change, Update)]
        owners = {held.id: held.organization_id for held in updated}
        histories = dict(histories_of(reader, owners, names))
    return with_field_causes(plan, histories, moments)


def show_plan(document: PlanDocument, form: PlanForm, *, is_saved: bool = False) -> None:
    """Print a plan on stdout, and on stderr the findings of the text form."""
    if form.form == "text":
        show_warnings((*document.warnings, *document.plan.blocks), is_saved=is_saved)
    draw(_FORMS[form.form], document, form.max_chars)
