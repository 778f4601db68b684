"""``reconciler schema``."""

from __future__ import annotations

import click

from reconciler.cli.completing import kinds
from reconciler.cli.kind_name import kind_named
from reconciler.resources.schema_files import schema_path


@click.command("schema")
@click.argument("kind", required=False, shell_complete=kinds)
def schema_command(kind: str | None) -> None:
    """Print the JSON Schema of KIND, or of any manifest."""
    path = schema_path(kind_named(kind) if kind else None)
    click.echo(path.read_text(encoding="utf-8"), nl=False)
