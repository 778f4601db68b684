"""``reconciler version`` and ``completion``: what is known without a service or a manifest."""

from __future__ import annotations

import click

from reconciler import __version__
from reconciler.cli.options import command


@command("version", example="--format json")
@click.option(  # no setting of the table: the version is shown even where a variable is wrong
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the output.",
)
def version_command(form: str) -> None:
    """Show the version of this program."""
    if form == "json":
        from reconciler.cli.output import print_json

        print_json({"version": __version__})
    else:
        click.echo(f"reconciler {__version__}")


@command("completion", example="bash")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    kinds = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
    context = click.get_current_context()
    script = kinds[shell](context.find_root().command, {}, "reconciler", "_RECONCILER_COMPLETE")
    click.echo(script.source())
