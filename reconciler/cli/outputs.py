"""``reconciler outputs``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence

import click

from reconciler.cli.clients import open_reader, takes_connection
from reconciler.cli.configuration_options import in_environment
from reconciler.cli.configured import configured
from reconciler.cli.connection import Connection
from reconciler.cli.manifests import read_desired
from reconciler.cli.options import format_option, paths_argument
from reconciler.cli.output import print_json, show_warnings
from reconciler.errors import UsageError
from reconciler.loop import observe_declared
from reconciler.plan.advice import unidentified
from reconciler.plan.matching import match
from reconciler.report.findings import FORMAT_VERSION
from reconciler.report.plan_json import ref_as_json
from reconciler.report.visible import visible
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import ObservedObject

Application = tuple[ResourceRef, ObservedObject | None]


@click.command("outputs")
@paths_argument
@in_environment
@takes_connection
@format_option("text", "json", "env")
def outputs_command(paths: tuple[str, ...], connection: Connection, form: str) -> None:
    """Tell the id and the client id of every application declared.

    PATHS are files and folders; the default is the folder manifests.
    """
    desired, _ = read_desired(paths, configured())
    with open_reader(connection) as reader:
        observed = observe_declared(desired, reader)
    show_warnings(list(unidentified(observed)))
    matching = match(desired, observed)
    applications: list[Application] = sorted(
        ((r.ref, held) for r, held in matching.pairs if r.ref.kind is Kind.OIDC_APPLICATION),
        key=lambda application: application[0],
    )
    if form == "json":
        print_json(_as_json(applications, connection.environment))
    else:
        lines = _as_env(applications) if form == "env" else _as_text(applications)
        click.echo("".join(f"{line}\n" for line in lines), nl=False)
    _show_missing([ref for ref, held in applications if held is None])
    sys.stdout.flush()


def _as_json(applications: Sequence[Application], environment: str) -> Mapping[str, object]:
    return {
        "format_version": FORMAT_VERSION,
        **({"environment": environment} if environment else {}),
        "applications": [
            {
                "ref": ref_as_json(ref),
                "id": held.id if held else None,
                "client_id": held.client_id if held else None,
            }
            for ref, held in applications
        ],
    }


def _as_text(applications: Sequence[Application]) -> Iterator[str]:
    width = max((len(visible(ref.path)) for ref, _ in applications), default=0)
    for ref, held in applications:
        if held is not None:
            name = visible(ref.path).ljust(width)
            yield f"{name}  id {visible(held.id)}  client id {visible(held.client_id)}"


def _as_env(applications: Sequence[Application]) -> Iterator[str]:
    seen: dict[str, ResourceRef] = {}
    for ref, held in applications:
        name = variable_name(ref)
        if name in seen:
            raise UsageError(
                f"{seen[name]} and {ref} would share the variable {name}",
                remedy="Take --format json, which keeps them apart.",
            )
        seen[name] = ref
        if held is not None:
            yield f"{name}_ID={_quoted(held.id)}"
            yield f"{name}_CLIENT_ID={_quoted(held.client_id)}"


def variable_name(ref: ResourceRef) -> str:
    """Return the environment variable of an application: its names in capitals."""
    name = re.sub(r"[^A-Z0-9]+", "_", "_".join(ref[1:]).upper())
    return f"_{name}" if name[:1].isdigit() else name


def _quoted(value: str) -> str:
    import shlex

    return shlex.quote(value)


def _show_missing(refs: Sequence[ResourceRef]) -> None:
    for ref in refs:
        click.echo(f"not applied yet: {visible(ref.path)}", err=True)
