"""``reconciler version``."""

from __future__ import annotations

import click

from reconciler import __version__
from reconciler.cli.output import print_json


@click.command("version")
@click.option(  # not of options.py: the version is shown even where a variable is wrong
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the output.",
)
def version_command(form: str) -> None:
    """Tell the version of this program."""
    if form == "json":
        print_json({"version": __version__})
    else:
        click.echo(f"reconciler {__version__}")
