"""``reconciler plan``."""

from __future__ import annotations

import os
import time

import click

from reconciler.cli.capabilities import capabilities_option
from reconciler.cli.clients import open_for_plan, takes_connection
from reconciler.cli.configuration_options import in_environment, trusted_config_option
from reconciler.cli.configured import configured
from reconciler.cli.connection import Connection
from reconciler.cli.manifests import Made, read_whole, revision_of
from reconciler.cli.options import option, paths_argument, takes_scope
from reconciler.cli.output import timed
from reconciler.cli.parameter_types import seconds_of
from reconciler.cli.process import ExitCode, keep_until_exit
from reconciler.cli.show import PlanForm, show_plan, takes_plan_form
from reconciler.cli.sink import secrets_option, sink_for, warn_without_sink, why_a_sink
from reconciler.cli.trusted import refused_plan, untrusted
from reconciler.loop import explained, preview
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope


@click.command("plan")
@paths_argument
@in_environment
@capabilities_option
@trusted_config_option
@takes_connection
@takes_scope
@secrets_option
@takes_plan_form
@option(
    "--detailed-exitcode",
    is_flag=True,
    help="Exit 2 where changes are pending or secrets owed, 3 where a guard blocks the plan.",
)
@option("--out", default="", metavar="FILE", help="Save the plan, for apply FILE and show FILE.")
@option(
    "--expires",
    default="24h",
    show_default=True,
    metavar="LIFE",
    help="How long a saved plan can be applied, such as 2d, 24h or 30m.",
)
@option(
    "--against",
    is_eager=True,  # known before --service: with a snapshot no service is needed
    default="",
    metavar="FILE",
    help="Plan against a snapshot (export --snapshot) instead of the service.",
)
def plan_command(
    paths: tuple[str, ...],
    connection: Connection,
    secrets_to: str | None,
    scope: Scope,
    allowed: Allowances,
    form: PlanForm,
    detailed_exitcode: bool,
    out: str,
    expires: str,
    against: str,
) -> int:
    """Show what apply would do, and do none of it.

    PATHS are files and folders; the default is the folder manifests.
    """
    lasting = seconds_of(expires)
    chosen = configured()
    desired, warnings, scope = read_whole(paths, scope, chosen)
    blocks, snapshot, service = untrusted(), None, connection.service
    if blocks:
        plan = refused_plan(scope, desired.organizations, blocks)
    elif against:
        from reconciler.cli.plan_files import plan_against

        plan, snapshot = plan_against(against, desired, (scope, allowed))
        service = snapshot.service
    else:
        with open_for_plan(connection) as reader, timed("observe and plan"):
            plan, observed = preview(desired, reader, scope, allowed)
            plan = explained(plan, reader, observed)
        keep_until_exit(observed)
    sink = sink_for(connection, secrets_to) if why_a_sink(plan) else None
    plan = warn_without_sink(plan, sink)
    made = Made(int(time.time()), revision_of(paths or chosen.manifests, os.environ))
    show_plan(plan, service, warnings, form, made)
    if out:
        from reconciler.cli.plan_files import Saving

        saving = Saving(service, paths, lasting, snapshot, warnings, made)
        saving.save(out, plan, desired)
    return exit_code(plan) if detailed_exitcode else ExitCode.DONE


def exit_code(plan: Plan) -> ExitCode:
    """Return the detailed exit code of a plan: blocked wins over changes and owed secrets."""
    if plan.blocks:
        return ExitCode.BLOCKED
    is_pending = plan.changes or plan.deliverable or plan.owed_left
    return ExitCode.CHANGES if is_pending else ExitCode.DONE
