"""``reconciler version`` and ``reconciler completion``: commands about the program itself."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

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


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash: eval "$(reconciler completion bash)"
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.BadParameter(f"there is no completion for {shell}")
    script = kind(ctx.find_root().command, {}, "reconciler", "_RECONCILER_COMPLETE")
    click.echo(script.source())
