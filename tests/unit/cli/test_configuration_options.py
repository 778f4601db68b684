"""Options that choose the configuration of a run."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from reconciler.cli.configuration_options import (
    capabilities_option,
    chosen_capabilities,
    judging_capabilities,
    refused_plan,
    service_option,
)
from reconciler.cli.configured import NOT_CONFIGURED
from reconciler.diagnostics import error
from reconciler.errors import UsageError
from reconciler.plan.model import Scope
from reconciler.resources.capabilities import CAPABILITIES, SOURCE


@click.command()
@capabilities_option
@service_option
def command(service: str) -> None:
    click.echo(f"{service} {judging_capabilities(NOT_CONFIGURED)}")


def run(*arguments: str, **environment: str) -> Any:
    return CliRunner().invoke(command, arguments, env={"CI": "", **environment})


def test_without_a_choice_the_source_document_judges() -> None:
    assert chosen_capabilities(NOT_CONFIGURED) == ""
    assert run("--service", "sqlite:x.db").stdout == f"sqlite:x.db {SOURCE}\n"


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
    ],
)
def test_a_service_is_named(
    arguments: list[str], environment: dict[str, str], problem: str
) -> None:
    found = run(*arguments, **environment)

    assert isinstance(found.exception, UsageError)
    assert found.exception.problem == problem


def test_a_refused_plan_holds_its_blocks_alone() -> None:
    blocks = (error("X", "s", "r"),)

    plan = refused_plan(Scope("default"), ["acme"], blocks)

    assert (plan.blocks, plan.changes, plan.instance) == (blocks, (), "")
