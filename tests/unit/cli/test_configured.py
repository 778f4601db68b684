"""The service of an environment against the one that a person or a job names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.core import ParameterSource

from reconciler.cli.configured import NOT_CONFIGURED, Configured, check_service, configured
from reconciler.configuration.model import Configuration, Environment
from reconciler.diagnostics import SourceLocation
from reconciler.errors import UsageError

PLACE = SourceLocation("reconciler.yaml", 1, 1)
GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def an_environment(service: str) -> Configured:
    """Return a configuration with one environment, which is chosen."""
    environment = Environment("live", PLACE, service=service)
    configuration = Configuration("reconciler.yaml", Path(), environments={"live": environment})
    return Configured(configuration, environment)


@pytest.fixture
def context() -> Iterator[click.Context]:
    with click.Context(click.Command("plan")).scope() as context:
        yield context


def use(context: click.Context, chosen: Configured) -> None:
    context.meta["reconciler.configured"] = chosen


def test_a_command_without_a_configuration_has_the_usual(context: click.Context) -> None:
    """The default is no choice of anybody."""
    assert configured() == NOT_CONFIGURED
    assert (configured().manifests, configured().state) == (("manifests",), Path(".reconciler"))
    assert not check_service("sqlite:.reconciler/identity.db", ParameterSource.DEFAULT)
    assert all(check_service("https://id.example.com", source) for source in GIVEN)


@pytest.mark.parametrize(
    ("written", "typed", "is_same"),
    [
        ("https://id.example.com", "https://id.example.com/", True),
        ("https://id.example.com", "https://ID.example.com:443", True),
        ("https://id.example.com/a", "https://id.example.com/a/", True),
        ("https://id.example.com/a", "https://id.example.com", False),
        ("https://id.example.com", "http://id.example.com", False),
        ("https://id.example.com", "https://id.example.com:8443", False),
        ("https://id.example.com", "https://id.example.com.evil.test", False),
        ("https://id.example.com", "sqlite:a.db", False),
        ("sqlite:a.db", "sqlite:./x/../a.db", True),
        ("sqlite:a.db", "sqlite:b.db", False),
    ],
)
def test_the_service_that_is_named_is_that_of_the_environment(
    context: click.Context, written: str, typed: str, *, is_same: bool
) -> None:
    """By origin and path, or by file; however it is spelt."""
    use(context, an_environment(written))

    for source in GIVEN:
        if is_same:
            assert check_service(typed, source)
            continue
        with pytest.raises(UsageError, match=r"not the service of environment live|unencrypted"):
            check_service(typed, source)


def test_an_environment_without_a_service_takes_one_from_outside(context: click.Context) -> None:
    """Such as a database, which no file of a repository names."""
    use(context, an_environment(""))

    assert check_service("postgresql://db/identity", ParameterSource.COMMANDLINE)
    assert not check_service("sqlite:.reconciler/live/identity.db", ParameterSource.DEFAULT_MAP)


def test_without_a_choice_the_default_is_not_used(context: click.Context) -> None:
    """It would be none of the environments."""
    chosen = an_environment("https://id.example.com")
    use(context, Configured(chosen.configuration))

    with pytest.raises(UsageError, match="no environment is chosen"):
        check_service("sqlite:.reconciler/identity.db", ParameterSource.DEFAULT)
    assert check_service("sqlite:other.db", ParameterSource.COMMANDLINE)


def test_each_environment_is_chosen_in_turn(context: click.Context) -> None:
    """Where one was chosen, it stays the only one."""
    chosen = an_environment("https://id.example.com")

    assert [each.name for each in Configured(chosen.configuration).each()] == ["live"]
    assert list(chosen.each()) == [chosen]
    assert list(NOT_CONFIGURED.each()) == [NOT_CONFIGURED]
    with pytest.raises(UsageError, match="there is no environment other"):
        chosen.choose("other")
    with pytest.raises(UsageError, match=r"there is no reconciler\.yaml"):
        NOT_CONFIGURED.choose("live")
