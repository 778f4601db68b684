"""Options: flag, then environment, then default; and what is built from their values."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from reconciler.cli.options import option, takes, with_output_options
from reconciler.errors import UsageError


@click.command()
@takes(lambda **given: {"both": given}, {"one": option("--one"), "more": option("--more")})
@option("--plain", default="default")
def command(both: dict[str, str], plain: str) -> None:
    click.echo(f"{both['one']} {both['more']} {plain}")


@pytest.mark.parametrize(
    ("arguments", "environment", "printed"),
    [
        ([], {}, "None None default\n"),
        (["--one", "1", "--more", "2", "--plain", "3"], {}, "1 2 3\n"),
        ([], {"RECONCILER_ONE": "1", "RECONCILER_PLAIN": "3"}, "1 None 3\n"),
        (["--plain", "flag"], {"RECONCILER_PLAIN": "3"}, "None None flag\n"),
    ],
)
def test_a_flag_wins_over_the_environment(
    arguments: list[str], environment: dict[str, str], printed: str
) -> None:
    assert CliRunner().invoke(command, arguments, env=environment).stdout == printed


def test_a_variable_that_is_set_and_empty_is_an_error() -> None:
    found = CliRunner().invoke(command, [], env={"RECONCILER_PLAIN": ""})

    assert isinstance(found.exception, UsageError)
    assert "RECONCILER_PLAIN is set and empty" in found.exception.problem


def test_a_misspelt_variable_is_warned_of_once() -> None:
    found = CliRunner().invoke(command, [], env={"RECONCILER_SERVCE": "x"})

    assert found.stderr.count("no option reads RECONCILER_SERVCE") == 1


def test_every_command_takes_the_options_of_the_output() -> None:
    inner = click.Command("inner")
    group = click.Group("outer", commands=[inner])

    with_output_options(with_output_options(group))

    for each in (group, inner):
        assert [parameter.name for parameter in each.params] == ["color", "verbose", "quiet"]
