"""``reconciler compare``: the differences of two environments once their manifests are resolved."""

from __future__ import annotations

import os
import time

import click

from reconciler.cli.capabilities import capabilities_option
from reconciler.cli.configuration_options import environments, with_configuration
from reconciler.cli.configured import configured
from reconciler.cli.manifests import Made, read_offline, revision_of
from reconciler.cli.options import option, paths_argument
from reconciler.cli.process import ExitCode
from reconciler.cli.show import PlanForm, show_plan, takes_plan_form
from reconciler.diagnostics import of_all
from reconciler.plan.planner import compare


@click.command("compare")
@click.argument("one", shell_complete=environments)
@click.argument("other", shell_complete=environments)
@paths_argument
@with_configuration
@capabilities_option
@takes_plan_form
@option("--detailed-exitcode", is_flag=True, help="Exit 2 where the environments differ.")
def compare_command(
    one: str, other: str, paths: tuple[str, ...], form: PlanForm, detailed_exitcode: bool
) -> int:
    """Show how the environment OTHER differs from ONE, in the forms of a plan.

    No service is asked: the manifests of both are resolved and compared. + is only in OTHER,
    - only in ONE, ~ in both with other values. Ids that manifests pin are not compared.

    PATHS are files and folders; the default is the folder manifests.
    """
    chosen = [configured().choose(name) for name in (one, other)]
    desired, warnings = zip(*(read_offline(paths, each) for each in chosen), strict=True)
    plan = compare(desired[0], desired[1], (one, other))
    findings = of_all(dict(zip((one, other), warnings, strict=True)))
    made = Made(int(time.time()), revision_of(paths or chosen[0].manifests, os.environ))
    show_plan(plan, "", findings, form, made)
    return ExitCode.CHANGES if detailed_exitcode and plan.changes else ExitCode.DONE
