"""Write the forms that the commands print: ``python -m docs.forms.make``.

Run it at the top of a checkout. A test keeps the table in ``docs/reports.md`` in step with the
options of the commands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from reconciler.cli.main import cli

PAGE = Path(__file__).parents[1] / "reports.md"
_TABLE = re.compile(r"(<!-- forms -->\n).*?(<!-- end of forms -->)", re.DOTALL)


def with_forms(page: str) -> str:
    """Return the page with the table between its comments."""
    commands: dict[tuple[str, ...], list[str]] = {}
    for name, forms in _forms_of(cli):
        commands.setdefault(forms, []).append(f"`{name}`")
    rows = ["| Command | Forms |", "|---|---|"]
    for forms, names in sorted(commands.items(), key=lambda row: -len(row[0])):
        rows.append(f"| {', '.join(names)} | {', '.join(f'`{form}`' for form in forms)} |")
    return _TABLE.sub(lambda found: "\n".join([found[1], *rows, "", found[2]]), page)


def _forms_of(group: click.Group, path: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each command that has forms, after the name of its group, with these."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from _forms_of(found, f"{path}{name} ")
        elif found:
            for option in found.params:
                if "--format" in option.opts and isinstance(option.type, click.Choice):
                    yield f"{path}{name}", tuple(map(str, option.type.choices))


if __name__ == "__main__":
    PAGE.write_text(with_forms(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
