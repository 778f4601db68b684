"""``reconciler version``."""

from __future__ import annotations

import click

from reconciler import __version__
from reconciler.cli.options import format_option
from reconciler.cli.output import print_json


@click.command("version")
@format_option("text", "json")
def version_command(form: str) -> None:
    """Tell the version of this program."""
    if form == "json":
        print_json({"version": __version__})
    else:
        click.echo(f"reconciler {__version__}")
