"""``reconciler plan``."""

from __future__ import annotations

import sys

import click

from reconciler.cli.connection import service_options
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.options import format_option, option, paths_argument
from reconciler.cli.output import print_json, stdout_style
from reconciler.cli.reading import read_desired, show_warnings
from reconciler.cli.scope import takes_scope
from reconciler.cli.secrets import check_sink, secrets_option
from reconciler.cli.wiring import open_reader
from reconciler.loop import preview
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope
from reconciler.report.plan_json import plan_as_json
from reconciler.report.plan_text import plan_as_text


@click.command("plan")
@paths_argument
@service_options
@takes_scope
@secrets_option
@format_option("text", "json")
@option(
    "--detailed-exitcode",
    is_flag=True,
    help="Exit 2 where changes are pending, 3 where a guard blocks them.",
)
def plan_command(
    paths: tuple[str, ...],
    service: str,
    secrets_to: str | None,
    scope: Scope,
    allowed: Allowances,
    form: str,
    detailed_exitcode: bool,
) -> int:
    """Show what apply would do, and do none of it.

    PATHS are files and folders; the default is the folder manifests.
    """
    desired, warnings = read_desired(paths)
    with open_reader(service) as reader:
        plan, _ = preview(desired, reader, scope, allowed)
    plan = check_sink(plan, service, secrets_to)
    if form == "json":
        print_json(plan_as_json(plan, service, warnings))
    else:
        show_warnings((*warnings, *plan.warnings, *plan.blocks))
        click.echo(plan_as_text(plan, stdout_style()))
    sys.stdout.flush()
    return exit_code(plan) if detailed_exitcode else ExitCode.DONE


def exit_code(plan: Plan) -> ExitCode:
    """Return the detailed exit code of a plan: blocked wins over changes."""
    if plan.blocks:
        return ExitCode.BLOCKED
    return ExitCode.CHANGES if plan.changes else ExitCode.DONE
