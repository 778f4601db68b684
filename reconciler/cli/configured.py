"""The configuration of a run: ``reconciler.yaml``, the environment that was chosen, its values.

What it says of settings goes into the ``default_map`` of click, before other options are read.
``--trusted-config`` holds the configuration of a change against that of the target branch: where
they differ in what decides over credentials and approval, the plan has these differences and
nothing else, and is made without a request to any service.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from reconciler.cli.connection import (
    DEFAULT_SERVICE,
    in_one_form,
    is_database,
    is_remote,
    store_path,
)
from reconciler.cli.settings import GROUPS, VARIABLE_PREFIX, is_ci
from reconciler.cli.settings import variable as value_of
from reconciler.diagnostics import Diagnostic, SourceLocation, error, warning
from reconciler.errors import InvalidConfigurationError, UsageError
from reconciler.manifests.files import DEFAULT_PATHS, configuration_here, git_root, leads_out
from reconciler.manifests.placeholders import NO_LAYERS, Layers
from reconciler.report.visible import shown_address
from reconciler.resources.capabilities import SOURCE
from reconciler.resources.installation import SECRETS, STATE_FOLDER
from reconciler.resources.origin import as_localhost

if TYPE_CHECKING:
    from reconciler.configuration.model import Configuration, Environment
    from reconciler.configuration.values import Given
    from reconciler.plan.model import Scope

KEYS = [row.key for rows in GROUPS.values() for row in rows if row.key]
_META = "reconciler.configured"


@dataclass(frozen=True, slots=True)
class Configured:
    """The configuration of a run, and the environment that was chosen in it.

    Attributes:
        configuration: None where there is no ``reconciler.yaml``.
        environment: None if the configuration has no environments, or the command needs none and
            none was chosen.
        layers: What is laid over the manifests.
        findings: Findings about the configuration. Errors are there only for ``validate``, which
            reports them in its own form.
        given: Values of variables from the command line, as ``NAME=VALUE``.
    """

    configuration: Configuration | None = None
    environment: Environment | None = None
    layers: Layers = NO_LAYERS
    findings: tuple[Diagnostic, ...] = ()
    given: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the environment; empty where none was chosen."""
        return self.environment.name if self.environment else ""

    @property
    def is_protected(self) -> bool:
        """Return whether only an approved plan is applied: a plan file or a digest."""
        return self.environment is not None and self.environment.protected

    def protected_at(self, address: str) -> str:
        """Return the protected environment that is written to at an address; empty for none.

        It is the chosen environment, or without a choice one with this service.
        """
        if self.environment or self.configuration is None:
            return self.name if self.is_protected else ""
        named = {
            as_localhost(in_one_form(self.configuration.service_of(each))): each.name
            for each in self.configuration.environments.values()
            if each.protected
        }
        return named.get(as_localhost(in_one_form(address)), "") if named else ""

    @property
    def declares(self) -> Environment | Configuration | None:
        """Return what declares the settings of a run: the environment, or without one the file."""
        return self.environment or self.configuration

    @property
    def written(self) -> Mapping[str, str]:
        """Return the settings that the configuration gives a run, by name."""
        values = {key: getattr(self.declares, key, "") for key in KEYS}
        if self.configuration and self.environment:
            values["service"] = self.configuration.service_of(self.environment)
        return {key: value for key, value in values.items() if value}

    @property
    def state(self) -> Path:
        """Return the folder of journals, and of secrets that go nowhere else."""
        if self.configuration is None or self.environment is None:
            return Path(STATE_FOLDER)
        return Path(self.configuration.state_of(self.environment))

    @property
    def manifests(self) -> tuple[str, ...]:
        """Return the PATHS of a command that is given none."""
        return (self.layers.root,) if self.layers.root else DEFAULT_PATHS

    def choose(self, name: str) -> Configured:
        """Return the same configuration with this environment chosen.

        Raises:
            UsageError: there is no such environment.
            InvalidConfigurationError: a value that was given cannot be used.
        """
        if self.configuration is None:
            raise _no_file("environments")
        environment = environment_named(self.configuration, name)
        return _in_environment(self.configuration, environment, self.findings, self.given)

    def each(self) -> Sequence[Configured]:
        """Return it with each environment chosen in turn, or with the chosen one alone."""
        if self.environment or not self.configuration or not self.configuration.environments:
            return [self]
        return [self.choose(name) for name in self.configuration.environments]


NOT_CONFIGURED = Configured()


def configured() -> Configured:
    """Return the configuration of the command that runs."""
    context = click.get_current_context(silent=True)
    found = context.meta.get(_META, NOT_CONFIGURED) if context else NOT_CONFIGURED
    return found if isinstance(found, Configured) else NOT_CONFIGURED


class Need(Enum):
    """The need of a command for an environment, where a configuration has some."""

    ONE = "one must be chosen"
    NONE = "it can do without one"
    ALL = "it works on all of them if none is chosen"


def configure(
    context: click.Context, file: str | None, name: str | None, given: Sequence[str], need: Need
) -> None:
    """Read the configuration of a command, choose its environment, and set its defaults.

    Without ``file`` it is looked for. ``name`` is that of an environment, and ``given`` are values
    of variables, as ``NAME=VALUE``.

    Raises:
        InvalidConfigurationError: the file, or a value that was given, cannot be used.
        UsageError: there is no such environment, or one must be chosen.
    """
    path = file or configuration_here()
    if not path:
        if name or given:
            raise _no_file("--env" if name else "--var")
        return
    try:
        found = read_configured(path, name, given, need)
    except InvalidConfigurationError as failure:
        if need is not Need.ALL:
            raise
        found = Configured(findings=failure.diagnostics)
    context.meta[_META] = found
    context.default_map = {**(context.default_map or {}), **found.written}


def read_configured(path: str, name: str | None, given: Sequence[str], need: Need) -> Configured:
    """Return the configuration in a file, an environment chosen in it. Raises as ``configure``."""
    from reconciler.configuration.reading import read_configuration

    configuration, findings = read_configuration(path)
    if configuration is None:
        raise InvalidConfigurationError(findings)
    environment = environment_named(configuration, name) if name else None
    if need is Need.ONE and environment is None and configuration.environments:
        raise _no_environment(configuration)
    unread = _unread(configuration)
    return _in_environment(configuration, environment, (*findings, *unread), given)


def _no_file(what: str) -> UsageError:
    return UsageError(
        f"there is no reconciler.yaml for {what}",
        remedy="Environments and variables are declared in reconciler.yaml, in the current "
        "folder or above it up to the Git root; --config FILE names another one.",
    )


def with_first_step(
    findings: Iterable[Diagnostic], paths: Sequence[str], chosen: Configured
) -> tuple[Diagnostic, ...]:
    """Return findings; where the default folder holds no manifests, `init` is what to do."""
    if paths or chosen.configuration is not None:
        return tuple(findings)
    return tuple(
        replace(each, remedy=_FIRST_STEP) if _is_nothing_there(each) else each for each in findings
    )


def _is_nothing_there(finding: Diagnostic) -> bool:
    place = finding.location.file if finding.location else ""
    return finding.code in {"FILE-MISSING", "FILE-NONE"} and place in DEFAULT_PATHS


_FIRST_STEP = (
    "To begin with an example, run `reconciler init`. Otherwise give the folder of your manifests."
)


def environment_named(configuration: Configuration, name: str) -> Environment:
    """Return an environment of a configuration.

    Raises:
        UsageError: there is none of this name; the remedy says which one was probably meant.
    """
    environment = configuration.environments.get(name)
    if environment is not None:
        return environment
    from reconciler.resources.nearest import nearest

    meant = nearest(name, configuration.environments)
    hint = f"Did you mean {meant}? " if meant else ""
    raise UsageError(
        f"there is no environment {name} in {configuration.file}",
        remedy=f"{hint}{_listed(configuration)}",
    )


def _no_environment(configuration: Configuration) -> UsageError:
    return UsageError(
        f"no environment is chosen, and {configuration.file} has some",
        remedy=f"Give --env NAME or set RECONCILER_ENV. {_listed(configuration)}",
    )


def _listed(configuration: Configuration) -> str:
    names = ", ".join(configuration.environments)
    return f"The environments are {names}." if names else "It has no environments."


def _in_environment(
    configuration: Configuration,
    environment: Environment | None,
    findings: Sequence[Diagnostic],
    given: Sequence[str],
) -> Configured:
    """Return a configuration with an environment chosen and its variables given their values."""
    from reconciler.configuration.values import values_in

    values, wrong = values_in(configuration, environment, _given(configuration, given))
    if wrong:
        raise InvalidConfigurationError(wrong)
    layers = configuration.layers_of(environment, values)
    return Configured(configuration, environment, layers, tuple(findings), tuple(given))


def _unread(configuration: Configuration) -> Iterator[Diagnostic]:
    """Yield a warning for each variable of the process that no declared variable takes."""
    for name in os.environ:
        wanted = name.removeprefix(VARIABLE_PREFIX)
        if name == wanted or wanted in configuration.variables:
            continue
        from reconciler.resources.nearest import nearest

        meant = nearest(wanted, configuration.variables)
        hint = f"Did you mean {VARIABLE_PREFIX}{meant}? " if meant else ""
        remedy = f"{hint}{configuration.file} declares no variable of this name."
        yield warning("ENV-UNKNOWN", f"no variable takes {name}", remedy)


def _given(configuration: Configuration, typed: Sequence[str]) -> Iterator[Given]:
    """Yield the values of the environment, then those of the command line."""
    from reconciler.configuration.values import Given

    for name in configuration.variables:
        variable = VARIABLE_PREFIX + name
        if text := value_of(variable, os.environ):
            yield Given(name, text, SourceLocation(variable))
    for each in typed:
        name, sign, text = each.partition("=")
        if not sign or not name:
            raise UsageError(
                f"--var {each} gives no value",
                remedy="Write --var NAME=VALUE, such as --var shopHost=shop.example.com.",
            )
        yield Given(name, text, SourceLocation(f"--var {name}"))


def check_service(address: str, source: ParameterSource | None) -> bool:
    """Return whether a file or a person named the service that a command takes.

    Raises:
        UsageError: the environment names another one than the person does, or there are
            environments and neither one nor a service is chosen.
    """
    found = configured()
    if source is ParameterSource.DEFAULT:
        if found.configuration and found.configuration.environments:
            raise _no_environment(found.configuration)
        return False
    if source is ParameterSource.DEFAULT_MAP:
        return bool(found.environment and found.environment.service)
    if found.configuration is None or found.environment is None:
        return True
    named, own = found.environment.service, found.configuration.service_of(found.environment)
    # No file of a repository names a database, so an environment without a service may be in one.
    if (named or not is_database(address)) and in_one_form(address) != in_one_form(own):
        fact = f"The environment names {own}." if named else f"Its own store is {own}."
        raise UsageError(
            f"--service {shown_address(address)} is not the service of environment {found.name}",
            remedy=f"{fact} Leave --service out, or choose the environment of that service.",
        )
    return True


def other_service(chosen: Configured, address: str) -> UsageError | None:
    """Return the error that an environment names another service elsewhere than is worked on."""
    named = chosen.environment.service if chosen.environment else ""
    if not is_remote(named) or in_one_form(named) == in_one_form(address):
        return None
    return UsageError(
        f"environment {chosen.name} names the service {shown_address(named)}, and --service is "
        f"{shown_address(address)}",
        remedy="Start run with the service of its environment.",
    )


def chosen_capabilities(chosen: Configured) -> str:
    """Return the name of the capabilities that were chosen; empty where none were."""
    own = chosen.environment.capabilities if chosen.environment else ""
    return _setting("capabilities") or own


def _setting(name: str) -> str:
    """Return the value of a setting of the command that runs; empty where it has none."""
    context = click.get_current_context(silent=True)
    return context.params.get(name) or "" if context else ""


def judging_capabilities(chosen: Configured) -> str:
    """Return the name of the capabilities that judge where no service is asked."""
    return chosen_capabilities(chosen) or SOURCE


def untrusted() -> tuple[Diagnostic, ...]:
    """Return how the configuration of this run differs from the trusted one, where one is named.

    Raises:
        InvalidConfigurationError: the trusted file cannot be used.
        UsageError: there is no configuration to compare with it.
    """
    file = _setting("trusted_config")
    if not file:
        return ()
    from reconciler.configuration.reading import read_configuration
    from reconciler.configuration.semantics import differences
    from reconciler.plan.model import UNTRUSTED_CONFIG

    proposed = configured().configuration
    if proposed is None:
        raise UsageError(
            "--trusted-config has no reconciler.yaml to judge",
            remedy="Restore reconciler.yaml, or leave --trusted-config out.",
        )
    trusted, findings = read_configuration(file)
    if trusted is None:
        raise InvalidConfigurationError(findings)
    return tuple(
        error(
            UNTRUSTED_CONFIG,
            f"{found.what} is not as in the trusted configuration",
            f"It is {found.proposed} here and {found.trusted} there. Merge this change of "
            f"{proposed.file} on its own; then plan again. Nothing was sent.",
            found.place,
        )
        for found in differences(trusted, proposed)
    )


def check_partial(chosen: Configured, *scopes: Scope) -> None:
    """Refuse a part of a tree where the environment takes the whole only."""
    environment = chosen.environment
    if environment is None or environment.allow_partial:
        return
    if any(scope.is_partial for scope in scopes):
        raise UsageError(
            f"environment {chosen.name} does not allow a part of the tree",
            remedy="Leave --target and --exclude out: the environment has allowPartial: false "
            f"({environment.place('allowPartial')}). Nothing was written.",
        )


def checked_service(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the service; in CI it is named, because a default there is a throw-away store."""
    if not value.strip():
        raise UsageError(
            "--service is empty",
            remedy="Write the address of the service, such as --service https://HOST, or leave "
            f"--service out for {DEFAULT_SERVICE}. A variable that CI did not set is empty.",
        )
    # Environments are compared, or a shell completes a word: no service is asked.
    if ctx.params.get("one") or ctx.resilient_parsing:
        return value
    source = ctx.get_parameter_source("service")
    # No shell replaces this ~, and a folder of that name is dangerous to remove. The reader of
    # reconciler.yaml has refused it already, and what is ./~ there is ~ from here.
    if value.startswith("sqlite:~") and source is not ParameterSource.DEFAULT_MAP:
        raise UsageError(
            f"{value}: ~ is not the home folder here",
            remedy=f"Write the path in full, or sqlite:./{value.removeprefix('sqlite:')} for a "
            "name that begins with ~.",
        )
    _check_state_folder()
    is_named = bool(untrusted()) or check_service(value, source)
    if not is_named and is_ci(os.environ) and not ctx.params.get("against"):
        raise UsageError(
            "no service is named, and CI is set",
            remedy="Give --service ADDRESS or set RECONCILER_SERVICE. For a store of this job "
            f"alone: --service {value}.",
        )
    return value


def _check_state_folder() -> None:
    """Refuse a state folder that is, or holds, a link out of the repository.

    A pull request can add such a link, and direct the store, the journals and the secrets with it.
    """
    try:
        here = Path(os.path.realpath("."))
    except OSError:  # the current folder is gone, and what was in it
        return
    root = git_root(here)
    top, named = root or here, "the repository" if root else "the current folder"
    for path in (Path(STATE_FOLDER), store_path(DEFAULT_SERVICE), Path(STATE_FOLDER, SECRETS)):
        if leads_out(path, top):
            raise UsageError(
                f"{path} leads out of {named}",
                remedy="Remove the link: the store, the journals and the secrets are kept there. "
                "A container can mount a volume there. Or name a store elsewhere with --service, "
                "and a place for secrets with --secrets-to.",
            )
