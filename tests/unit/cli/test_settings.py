"""The table of settings, and variables that are read, empty or misspelt."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields

import pytest
from click.testing import CliRunner

from docs.forms.make import commands_of
from reconciler.apply.sinks import KINDS
from reconciler.cli.ci_jobs import ANSWERS
from reconciler.cli.connection import Connection
from reconciler.cli.main import cli
from reconciler.cli.options import MADE, Command
from reconciler.cli.settings import (
    GROUPS,
    INTERNAL,
    KNOWN,
    TOKEN,
    Setting,
    is_ci,
    misspelt,
    variable,
)
from reconciler.cli.suggestions import HARMFUL
from reconciler.errors import UsageError
from reconciler.report.plan_document import ON_MERGE
from reconciler.resources.schemas import schema_file
from reconciler.service.domain.trust import EDITOR, VIEWER
from reconciler.service.operations.callers import Role
from tests.docs.test_console_blocks import PAGES
from tests.docs.test_what_is_named import unknown_in
from tests.program import ROOT
from tests.rows import each_row

ROWS = [row for rows in GROUPS.values() for row in rows]
SUBCOMMANDS = {"revoke", "rotate", "restore", "rebuild"}


def row(name: str, command: str = "") -> Setting:
    """Return the row of a setting, of a command where several have rows of their own."""
    (found,) = [each for each in ROWS if each.name == name and command in each.commands]
    return found


ALL: dict[str, Command] = {}
for _path, _found in commands_of(cli):
    assert isinstance(_found, Command)
    ALL[_path] = _found


def help_of(path: str) -> str:
    """Return the help of a command on a terminal of 80 columns."""
    run = CliRunner().invoke(cli, [*path.split(), "--help"], terminal_width=78)
    return run.stdout


def test_every_command_of_a_row_is_there() -> None:
    """And no flag has two rows of one command, nor a name that the first two letters tell apart."""
    named = [(path, each.name) for each in ROWS for path in each.commands.split(", ") if path]

    assert {path for path, _ in named} <= ALL.keys()
    assert len(named) == len({*named})
    assert {each.name for each in ROWS} | SUBCOMMANDS >= HARMFUL


@pytest.mark.parametrize("path", [*ALL])
def test_every_argument_of_a_command_has_a_value(path: str) -> None:
    """Of a setting or an argument of the command line, or made of several."""
    command = ALL[path]
    assert command.callback is not None
    wanted = inspect.signature(command.callback).parameters.keys()

    assert wanted - {each.name for each in command.params} <= {*MADE, "form", "run"}


def test_choices_are_those_of_the_code_that_takes_them() -> None:
    """The table is read by every command, and that code by one."""
    sink = row("secrets-to").help

    assert row("on-merge").type == (*ON_MERGE,)
    assert row("on-unreviewed").type == ANSWERS
    of_tokens, of_rules = (each.type for each in ROWS if each.name == "role")
    assert of_tokens == tuple(role.value for role in Role)
    assert of_rules == (VIEWER, EDITOR)
    assert {*re.findall(r"[\w-]+(?=:)", KINDS)} < {*re.findall(r"[\w-]+(?=:)", sink)}


def test_a_setting_without_a_value_is_that_of_a_connection() -> None:
    """Commands that lack a setting use the default of its row."""
    defaults = {
        field.name: field.default for field in fields(Connection) if field.default is not MISSING
    }
    read = {
        each.value: each.type(each.default) for each in ROWS if each.default and callable(each.type)
    }

    assert {name: read[name] for name in defaults.keys() & read.keys()} == {
        name: defaults[name] for name in ("keep_owed", "settle")
    }


def test_every_key_is_one_of_an_environment() -> None:
    environments = schema_file("Configuration")["properties"]["environments"]
    keys = {each.key for each in ROWS if each.key}

    assert keys == {"service", "tree", "capabilities"}
    assert keys <= environments["additionalProperties"]["properties"].keys()


def test_the_help_of_a_plan_fits_two_screens() -> None:
    """Of 40 lines and 80 columns."""
    lines = help_of("plan").splitlines()

    assert len(lines) <= 80
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("path", [*ALL])
def test_every_help_has_an_example_and_groups_in_one_order(path: str) -> None:
    """The example can be run: every flag in it is there."""
    text = help_of(path)
    (example,) = re.findall(r"^  Example: (.*)$", text, re.MULTILINE)
    headings = re.findall(r"^(\S.*):$", text, re.MULTILINE)

    assert f"reconciler {path}" in example
    assert unknown_in(example) == []
    assert headings == [heading for heading in GROUPS if heading in headings]
    assert re.search(r"-h, --help +Show this message and exit\.$", text)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_settings_as_the_table_does(page: str) -> None:
    """Tables of options, and variables anywhere; tokens of CI jobs have names like theirs."""
    text = (ROOT / page).read_text(encoding="utf-8")
    flags = re.findall(r"`--([a-z-]+)", "".join(re.findall(r"^\| (`-.*?) \|", text, re.MULTILINE)))
    variables = {*re.findall(r"RECONCILER_[A-Z_]+[A-Z]", text)}

    assert {*flags} <= {each.name for each in ROWS}
    assert {name for name in variables - KNOWN if not name.endswith("_TOKEN")} <= {
        name for name in variables if f"{name}_".startswith(INTERNAL)
    }


def test_the_page_of_serving_lists_every_setting() -> None:
    """With the defaults that the table has."""
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    rows = {
        name: line
        for line in page.splitlines()
        if line.startswith("| `--")
        for name in re.findall(r"--([a-z-]+)", line.split(" | ")[0])
    }
    settings = {each.name: each for each in ROWS if "serve" in each.commands.split(", ")}

    assert rows.keys() == settings.keys()
    for name in ("listen", "keep-owed"):
        assert f"default `{settings[name].default}`" in rows[name]


@pytest.mark.parametrize(("environ", "value"), [({}, ""), ({TOKEN: "x"}, "x"), ({TOKEN: " "}, " ")])
def test_a_variable_is_its_value(environ: dict[str, str], value: str) -> None:
    assert variable(TOKEN, environ) == value


def test_a_variable_that_is_set_and_empty_is_an_error() -> None:
    """A secret of CI that was never set looks like this."""
    with pytest.raises(UsageError, match=f"{TOKEN} is set and empty"):
        variable(TOKEN, {TOKEN: ""})


@each_row(
    ("ci", "expected"),
    [("true", True), ("1", True), ("yes", True), ("", False), ("0", False), (" False ", False)],
)
def test_a_job_of_ci_says_so(ci: str, *, expected: bool) -> None:
    assert is_ci({"CI": ci}) is expected
    assert not is_ci({})


@each_row(
    ("name", "meant"),
    [
        ("RECONCILER_SERVCE", ["RECONCILER_SERVICE"]),
        ("RECONCILER_TOKNE", ["RECONCILER_TOKEN"]),
        ("RECONCILER_SERVICE", []),
        ("RECONCILER_NOTHING_LIKE_IT", []),
        ("RECONCILE_TOKEN", []),
        *((f"{prefix}", []) for prefix in INTERNAL),
    ],
)
def test_a_misspelt_variable_is_within_two_letters_of_a_known_one(
    name: str, meant: list[str]
) -> None:
    assert [known for _, known in misspelt({name: "x"})] == meant


def test_every_known_variable_has_the_prefix() -> None:
    assert all(name.startswith("RECONCILER_") and name.isupper() for name in KNOWN)
