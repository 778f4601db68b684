"""``reconciler render``: manifests with everything resolved, as they are judged and applied."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli.capabilities import capabilities_option
from reconciler.cli.configuration_options import in_environment
from reconciler.cli.configured import configured
from reconciler.cli.manifest_files import as_files, as_stream, check_folder, write_files
from reconciler.cli.manifests import read_offline
from reconciler.cli.options import option, paths_argument
from reconciler.cli.output import hint, show_warnings
from reconciler.manifests.export import manifest_resolved, order_of
from reconciler.report.visible import visible


@click.command("render")
@paths_argument
@in_environment
@capabilities_option
@option("--out", default="", metavar="DIR", help="Write files into DIR, which is made.")
@option("--overwrite", is_flag=True, help="Write into DIR although there are files in it.")
def render_command(paths: tuple[str, ...], out: str, overwrite: bool) -> None:
    """Write the manifests of an environment with variables, defaults and overlay resolved.

    No service is asked. They plan the same as what they are made from, in a folder without
    reconciler.yaml. Values have their long spelling, and scripts stand in the manifests or beside
    them. Without --out everything goes to stdout as one stream.

    PATHS are files and folders; the default is the folder manifests.
    """
    if out:
        check_folder(Path(out), overwrite=overwrite)
    desired, warnings = read_offline(paths, configured())
    show_warnings(warnings)
    resources = sorted(desired.resources.values(), key=lambda each: order_of(each.ref))
    manifests = [manifest_resolved(resource) for resource in resources]
    if out:
        write_files(Path(out), as_files(manifests))
        count = len(manifests)
        hint(f"Wrote {count} manifest{'' if count == 1 else 's'} into {visible(out)}.")
        return
    click.echo(as_stream(manifests), nl=False)
    sys.stdout.flush()
