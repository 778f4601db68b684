"""``reconciler drift``."""

from __future__ import annotations

import sys

import click

from reconciler.cli.capabilities import capabilities_option
from reconciler.cli.clients import open_reader, takes_connection
from reconciler.cli.configuration_options import in_environment
from reconciler.cli.configured import configured
from reconciler.cli.connection import Connection
from reconciler.cli.manifests import read_desired
from reconciler.cli.options import format_option, option, paths_argument, shard_option, tree_option
from reconciler.cli.output import print_json, show_warnings, stdout_style
from reconciler.cli.process import ExitCode
from reconciler.diagnostics import warning
from reconciler.loop import look_for_drift
from reconciler.plan.advice import unidentified
from reconciler.plan.drift import Drift
from reconciler.plan.model import Scope
from reconciler.report.drift_and_history import drift_as_json, drift_as_markdown, drift_as_text
from reconciler.report.plan_parts import Place
from reconciler.resources.ref import Shard
from reconciler.state import ObservedState


@click.command("drift")
@paths_argument
@in_environment
@capabilities_option
@takes_connection
@tree_option
@shard_option
@format_option("text", "json", "markdown")
@option("--detailed-exitcode", is_flag=True, help="Exit 2 where something has drifted.")
def drift_command(
    paths: tuple[str, ...],
    connection: Connection,
    tree: str,
    shard: Shard | None,
    form: str,
    detailed_exitcode: bool,
) -> int:
    """Show what was changed on the service and not in the manifests, by whom and when.

    PATHS are files and folders; the default is the folder manifests. Nothing is written: the
    service is given to this command without a way to.
    """
    desired, warnings = read_desired(paths, configured(), shard)
    with open_reader(connection) as reader:
        drift, observed = look_for_drift(desired, reader, Scope(tree=tree, shard=shard))
    place = Place(connection.service, observed.instance, tree, connection.environment)
    show_warnings([*warnings, *unidentified(observed)])
    if form == "json":
        print_json(drift_as_json(drift, place))
    elif form == "markdown":
        click.echo(drift_as_markdown(drift, place), nl=False)
    else:
        click.echo(drift_as_text(drift, place, stdout_style()))
    sys.stdout.flush()
    _warn_incomplete(observed)
    return exit_code(drift, observed) if detailed_exitcode else ExitCode.DONE


def exit_code(drift: Drift, observed: ObservedState) -> ExitCode:
    """Return the detailed exit code. Part of the objects shows false drift and hides real."""
    if observed.incomplete:
        return ExitCode.BLOCKED
    return ExitCode.CHANGES if drift.objects or drift.untold else ExitCode.DONE


def _warn_incomplete(observed: ObservedState) -> None:
    show_warnings(
        [
            warning("DRIFT-INCOMPLETE-READ", "the service's listing is not complete", reason)
            for reason in observed.incomplete
        ]
    )
