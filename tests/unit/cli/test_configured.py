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
from tests.rows import each_row

PLACE = SourceLocation("reconciler.yaml", 1, 1)
GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def an_environment(service: str, *, protected: bool = False) -> Configured:
    """Return a configuration with one environment, which is chosen."""
    environment = Environment("live", PLACE, service=service, protected=protected)
    named = {"live": environment}
    configuration = Configuration("reconciler.yaml", Path(), Path.cwd(), environments=named)
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

    for outside in ("postgresql://db/identity", "sqlite:x/../.reconciler/live/identity.db"):
        assert check_service(outside, ParameterSource.COMMANDLINE)
    for others in ("https://id.example.com", "http://localhost:8", "sqlite:identity.db"):
        with pytest.raises(UsageError, match="is not the service of environment live") as refused:
            check_service(others, ParameterSource.ENVIRONMENT)
        assert "Its own store is sqlite:.reconciler/live/identity.db." in refused.value.remedy
    assert not check_service("sqlite:.reconciler/live/identity.db", ParameterSource.DEFAULT_MAP)


@each_row(
    ("written", "typed", "is_protected"),
    [
        ("https://id.example.com/a", "https://ID.example.com:443/a/", True),
        ("https://id.example.com/a", "https://id.example.com/b", False),
        ("http://localhost:8", "http://127.0.0.1:8", True),
        ("sqlite:a.db", "sqlite:x/../a.db", True),
        ("", "sqlite:.reconciler/live/identity.db", True),
        ("", "sqlite:.reconciler/identity.db", False),
    ],
)
def test_a_protected_environment_is_known_by_its_service(
    written: str, typed: str, *, is_protected: bool
) -> None:
    """Commands that need no environment are given a service alone."""
    chosen = an_environment(written, protected=True)
    unprotected = an_environment(written)

    assert Configured(chosen.configuration).protected_at(typed) == ("live" if is_protected else "")
    assert Configured(unprotected.configuration).protected_at(typed) == ""
    assert (chosen.protected_at(typed), unprotected.protected_at(typed)) == ("live", "")
    assert NOT_CONFIGURED.protected_at(typed) == ""


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
