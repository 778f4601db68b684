"""No file asks a package index for this tool, because the index has another tool of its name.

The distribution is ``identity-reconciler`` and is not published. It is installed from a file of a
release, from a Git revision or from a checkout, and never by a bare name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from reconciler.resources.installation import DISTRIBUTION
from tests.architecture.test_house_rules import FILES, content_of, name_of
from tests.architecture.tree import ROOT
from tests.rows import each_row

COMMAND = "reconciler"
NAME = rf"(?:identity[-_.])?{COMMAND}"
EXTRAS = r"(?:\[[\w, -]*\])?"
VERSION = r"\s*(?:[=<>~!]=|[<>;]).*"
REQUIREMENT = re.compile(rf"{NAME}{EXTRAS}(?:{VERSION})?", re.IGNORECASE)

# A command that fetches the packages it is given by name.
FETCHES = re.compile(
    r"\b(?:pip3?\s+(?:install|download|wheel)|pipx\s+(?:install|run|inject|runpip)|uvx"
    r"|uv\s+(?:tool\s+(?:install|run)|pip\s+install|add)|poetry\s+add|pdm\s+add"
    r"|(?:conda|npm|brew)\s+install)\b([^`\n]*)"
)
# The name with the address that it is taken from.
DIRECT = re.compile(rf"{NAME}{EXTRAS}\s*@\s*(?:git\+|https?:|file:)\S+")
# With one of these the package is a file or an address, and the bare name is the command to run.
NAMES_A_SOURCE = re.compile(r"--(?:from|spec)\b")
# Wherever it stands, a name with a version or with extras is a requirement.
SPECIFIED = re.compile(rf"(?<![\w.-])(?:{NAME})(?:\[[a-z][\w, -]*\]|(?:==|~=|>=)\s*\d)")
LISTS_REQUIREMENTS = re.compile(r"(?:requirements|constraints).*\.(?:txt|in)|\.ci/.*\.txt|.*\.in")


def asked_of_an_index(name: str, text: str) -> Iterator[str]:
    """Yield each line of a file that would have an index asked for this tool."""
    is_list = bool(LISTS_REQUIREMENTS.fullmatch(name))
    for written in text.replace("\\\n", " ").splitlines():
        if COMMAND not in written.lower():
            continue
        line = DIRECT.sub("", written)
        in_list = is_list and REQUIREMENT.fullmatch(line.strip())
        if in_list or SPECIFIED.search(line) or _fetches_by_name(line):
            yield written


def _fetches_by_name(line: str) -> bool:
    fetched = FETCHES.search(line)
    if not fetched or NAMES_A_SOURCE.search(line):
        return False
    return any(REQUIREMENT.fullmatch(word.strip("\"'.,;()")) for word in fetched[1].split())


def test_no_file_asks_an_index_for_this_tool() -> None:
    """What another author publishes under the name must never run in a job with a token."""
    asking = [
        (name_of(path), line)
        for path in FILES
        if path != Path(__file__)
        for line in asked_of_an_index(name_of(path), content_of(path).decode(errors="replace"))
    ]

    assert asking == []


@each_row(
    "line",
    [
        "pip install {name}",
        "python -m pip install --quiet '{name}[serve]'",
        "`pip install {name}` and go on",
        "pipx install {name}",
        "uv tool install \\\n    {name}",
        "uvx {name} plan",
        "npm install -g {name}",
        "    - {name}==0.1.0",
        "{name}",
        "{name}>=1",
        "Install it with: '{name}[postgres]'",
    ],
)
@each_row("name", [COMMAND, DISTRIBUTION])
def test_each_form_of_asking_is_noticed(line: str, name: str) -> None:
    """A scan that notices nothing would pass."""
    assert list(asked_of_an_index("x/requirements.in", line.format(name=name)))


@each_row(
    "line",
    [
        "pip install ./identity_reconciler-0.1.0-py3-none-any.whl",
        "pip install './identity_reconciler-0.1.0-py3-none-any.whl[serve]'",
        "pipx install git+https://git.example.com/team/reconciler@v0.1.0",
        "pipx install 'identity-reconciler[serve] @ git+https://git.example.com/team/r@v0.1.0'",
        "uv tool run --from ./identity_reconciler-0.1.0-py3-none-any.whl reconciler plan",
        "identity-reconciler @ https://example.com/identity_reconciler-0.1.0-py3-none-any.whl",
        "# reconciler",
    ],
)
def test_a_file_and_an_address_are_not_a_name(line: str) -> None:
    """These are how it is installed."""
    assert list(asked_of_an_index("x/requirements.in", line)) == []


def test_the_project_has_the_name_and_the_command_kept_its_own() -> None:
    """Scripts go on calling the command and importing the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project["name"] == DISTRIBUTION
    assert list(project["scripts"]) == [COMMAND]
