"""``reconciler completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


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
