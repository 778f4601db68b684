"""Write the forms that the commands print: ``python -m docs.forms.make``.

Run it at the top of a checkout. A test keeps the table in ``docs/reports.md`` in step with the
options of the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from docs.pieces import with_piece
from reconciler.cli.main import cli

PAGE = Path(__file__).parents[1] / "reports.md"


def with_forms(page: str) -> str:
    """Return the page with the table between its comments."""
    commands: dict[tuple[str, ...], list[str]] = {}
    for name, found in commands_of(cli):
        for option in found.params:
            if "--format" in option.opts and isinstance(option.type, click.Choice):
                forms = tuple(map(str, option.type.choices))
                commands.setdefault(forms, []).append(f"`{name}`")
    rows = ["| Command | Forms |", "|---|---|"]
    for forms, names in sorted(commands.items(), key=lambda row: -len(row[0])):
        rows.append(f"| {', '.join(names)} | {', '.join(f'`{form}`' for form in forms)} |")
    return with_piece(page, "forms", rows)


def commands_of(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its name, after that of its group."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands_of(found, f"{path}{name} ")
        elif found:
            yield f"{path}{name}", found


if __name__ == "__main__":
    PAGE.write_text(with_forms(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
