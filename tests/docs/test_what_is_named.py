"""Commands, flags and pages that the documents name are there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from docs.forms.make import PAGE as PAGE_OF_FORMS
from docs.forms.make import with_forms
from reconciler.cli.main import cli
from tests.docs.test_console_blocks import PAGES
from tests.program import ROOT

_CODE = re.compile(r"`(reconciler [^`\n]+)`")
_JOBS = {
    "reconciler comment",
    "reconciler review",
    "reconciler approve",
    "reconciler approve staging",
    "reconciler review staging",
    "reconciler services-shop",
    "reconciler services-shop plan",
}
"""Names of CI jobs that look like commands."""

_BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def lines_of(page: str) -> Iterator[str]:
    """Yield every command of the program that a page shows."""
    text = (ROOT / page).read_text(encoding="utf-8")
    yield from _CODE.findall(re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if found := re.match(r"(?:\$ )?(?:\S*bin/)?(reconciler (?:'[^']*'|[^'#;|&<>])+)", line):
                yield found[1]


def unknown_in(line: str) -> list[str]:
    """Return the commands and flags of a line that the program does not have."""
    command: click.Command = cli
    context = click.Context(cli)
    _, *words = shlex.split(line.replace("…", "").replace("...", ""), posix=True)
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        name, *words = words
        found = command.get_command(context, name)
        if found is None:
            return [] if name.isupper() else [name]
        command = found
    flags = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)}
    named = {word.split("=")[0] for word in words if re.match(r"-{1,2}[a-z]", word)}
    return sorted(named - flags - {"--help"})


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_flag_is_there(page: str) -> None:
    """One that was renamed is renamed in the documents, too."""
    lines = {line.strip() for line in lines_of(page)} - _JOBS

    assert {line: unknown for line in lines if (unknown := unknown_in(line))} == {}


def test_a_command_that_is_not_there_is_noticed() -> None:
    """Otherwise the test above would always pass."""
    assert unknown_in("reconciler plan --prune --dry-run") == ["--dry-run"]
    assert unknown_in("reconciler token make") == ["make"]
    assert unknown_in("reconciler lint") == ["lint"]


def test_every_page_is_in_the_index() -> None:
    """A page that the index does not name is found by nobody."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"]

    assert [name for name in pages if f"({name})" not in index] == []


def test_the_table_of_forms_is_written_from_the_commands() -> None:
    """Run make codes after a form was added or removed."""
    page = PAGE_OF_FORMS.read_text(encoding="utf-8")

    assert with_forms(page) == page
    assert "| `drift` | `text`, `json`, `markdown` |" in page


def test_every_symptom_is_a_message() -> None:
    """What is searched for is what was printed."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    sources = "".join(
        re.sub(r'"\s*f?"', "", path.read_text(encoding="utf-8"))
        for kind in ("*.py", "codes.toml")
        for path in (ROOT / "reconciler").rglob(kind)
    )
    symptoms = [
        part
        for line in page.splitlines()
        if line.startswith("| ")
        for cell in line.split(" | ")[:2]
        for quoted in re.findall(r"`([a-z][^`]* [^`]*|[A-Z]+-[A-Z-]+)`", cell)
        if not quoted.startswith("reconciler")
        for part in re.split(r"\s*\.\.\.\s*", quoted)
    ]

    assert len(symptoms) > 10
    assert [symptom for symptom in symptoms if symptom not in sources] == []
