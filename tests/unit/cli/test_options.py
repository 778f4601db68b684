"""Options: flag, then environment, then default; and what is built from their values."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from reconciler.cli.configured import (
    NOT_CONFIGURED,
    chosen_capabilities,
    judging_capabilities,
)
from reconciler.cli.connection import Connection
from reconciler.cli.options import command, group, paths_argument
from reconciler.errors import UsageError
from reconciler.resources.capabilities import CAPABILITIES, SOURCE


@command("drift", formats=("text", "json"))
@paths_argument
def told(paths: tuple[str, ...], connection: Connection, tree: str, form: str) -> None:
    click.echo(f"{connection.service} {judging_capabilities(NOT_CONFIGURED)} {tree} {form}")


def run(*arguments: str, **environment: str) -> Any:
    return CliRunner().invoke(told, arguments, env={"CI": "", **environment})


@pytest.mark.parametrize(
    ("arguments", "environment", "tree"),
    [
        ([], {}, "default"),
        (["--tree", "flag"], {}, "flag"),
        ([], {"RECONCILER_TREE": "variable"}, "variable"),
        (["--tree", "flag"], {"RECONCILER_TREE": "variable"}, "flag"),
    ],
)
def test_a_flag_wins_over_the_environment(
    arguments: list[str], environment: dict[str, str], tree: str
) -> None:
    assert run(*arguments, **environment).stdout.split()[2] == tree


def test_every_command_takes_the_options_of_the_output() -> None:
    outer = group("outer", "A group.")
    inner = command("outer inner", within=outer)(lambda: None)

    for each in (outer, inner):
        assert [parameter.name for parameter in each.params] == ["color", "verbose", "quiet"]


def test_without_a_choice_the_source_document_judges() -> None:
    assert chosen_capabilities(NOT_CONFIGURED) == ""
    assert run("--service", "sqlite:x.db").stdout == f"sqlite:x.db {SOURCE} default text\n"


def test_a_folder_called_as_the_home_folder_is_named_by_its_path() -> None:
    assert run("--service", "sqlite:./~/x.db").stdout.split()[0] == "sqlite:./~/x.db"


@pytest.mark.parametrize("name", [*CAPABILITIES])
def test_capabilities_are_chosen_by_flag(name: str) -> None:
    assert run("--service", "sqlite:x.db", "--capabilities", name).stdout.split()[1] == name


@pytest.mark.parametrize(
    ("arguments", "environment", "problem"),
    [
        (["--service", " "], {}, "--service is empty"),
        ([], {"CI": "true"}, "no service is named, and CI is set"),
        (["--service", "sqlite:~/x.db"], {}, "sqlite:~/x.db: ~ is not the home folder here"),
        (["--service", "sqlite:~ana/x.db"], {}, "sqlite:~ana/x.db: ~ is not the home folder here"),
        (["--env", ""], {}, "--env is empty"),
        (["--config", ""], {}, "--config is empty"),
    ],
)
def test_what_decides_over_the_service_is_named(
    arguments: list[str], environment: dict[str, str], problem: str
) -> None:
    found = run(*arguments, **environment)

    assert isinstance(found.exception, UsageError)
    assert found.exception.problem == problem
