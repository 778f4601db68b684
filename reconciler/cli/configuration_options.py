"""Options that choose the configuration of a run: environment, values, capabilities and service.

``--config``, ``--env`` and ``--var`` are read before all others, because the others take defaults
from what they choose. ``--trusted-config`` holds the configuration of a change against that of the
target branch: where they differ in what decides over credentials and approval, the plan has these
differences and nothing else, and is made without a request to any service.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.configured import (
    Configured,
    Need,
    check_service,
    configure,
    configured,
    found_configuration,
)
from reconciler.cli.options import Decorator, EnvironmentOption, option, takes
from reconciler.cli.settings import DEFAULT_SERVICE, is_ci, store_path
from reconciler.diagnostics import Diagnostic, error
from reconciler.errors import InvalidConfigurationError, UsageError
from reconciler.manifests.files import git_root, leads_out
from reconciler.resources.capabilities import CAPABILITIES, SOURCE
from reconciler.resources.installation import STATE_FOLDER

if TYPE_CHECKING:
    from reconciler.plan.model import Plan, Scope

_GIVEN = "reconciler.configuration-options"
_TRUSTED = "reconciler.trusted-config"
_CAPABILITIES = "reconciler.capabilities"


def _taking(
    need: Need, names: frozenset[str]
) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return the callback of the options; with the last of them it reads the configuration."""

    def take(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        _require_value(parameter, value)
        given = context.meta.setdefault(_GIVEN, {})
        given[parameter.name] = value
        if given.keys() == names and not context.resilient_parsing:
            configure(context, given["config"], given.get("env"), given["var"], need)
        return value

    return take


def _require_value(parameter: click.Parameter, value: Any) -> None:
    if value == "":
        raise UsageError(
            f"{parameter.opts[0]} is empty",
            remedy="Give it a value, or leave it out. A variable that CI did not set is empty.",
        )


def environments(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the environments that begin with these letters; a shell asks after each Tab."""
    with suppress(Exception):
        found = found_configuration()
        return [name for name in found.environments if name.startswith(incomplete)] if found else []
    return []


def _options(need: Need, *, has_env: bool = True) -> Decorator:
    names = frozenset({"config", "var", *(["env"] if has_env else [])})
    settings: dict[str, Any] = {"is_eager": True, "callback": _taking(need, names)}
    env = option(
        "--env",
        metavar="NAME",
        shell_complete=environments,
        help="The environment of reconciler.yaml to work on.",
        **settings,
    )
    return takes(
        _nothing,
        {
            **({"env": env} if has_env else {}),
            "config": option(
                "--config",
                metavar="FILE",
                help="The configuration; otherwise reconciler.yaml in this folder or above it, up "
                "to the Git root.",
                **settings,
            ),
            "var": click.option(  # RECONCILER_VAR_ and a name is the variable of each value
                "--var",
                cls=EnvironmentOption,
                multiple=True,
                metavar="NAME=VALUE",
                help="Value of a variable; also RECONCILER_VAR_ and its name. JSON, unless it is a "
                "text. Can be given several times.",
                **settings,
            ),
        },
    )


def _nothing(**_: Any) -> dict[str, Any]:
    """Give a command nothing: what was chosen is in its context."""
    return {}


in_environment = _options(Need.ONE)
"""Give a command the options; where there are environments, one must be chosen."""

perhaps_in_environment = _options(Need.NONE)
"""Give a command the options; it can do without an environment."""

with_configuration = _options(Need.NONE, has_env=False)
"""Give a command the options but for ``--env``: its arguments name environments."""

in_all_environments = _options(Need.ALL)
"""Give a command the options; where none is chosen, it works on all environments."""


def _trust(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    _require_value(parameter, value)
    context.meta[_TRUSTED] = value or ""
    return value


trusted_config_option = takes(
    _nothing,
    {
        "trusted_config": option(
            "--trusted-config",
            is_eager=True,  # known before --service is compared with that of the environment
            callback=_trust,
            metavar="FILE",
            help="The reconciler.yaml of the target branch. A difference in the service, tree or "
            "protection of an environment blocks the plan, and nothing is asked.",
        )
    },
)
"""Give a command the option to hold its configuration against a trusted one."""


def _keep(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    context.meta[_CAPABILITIES] = value or ""
    return value


capabilities_option = takes(
    _nothing,
    {
        "capabilities": option(
            "--capabilities",
            type=click.Choice([*CAPABILITIES]),
            callback=_keep,
            help="The kind of service that the manifests are for; otherwise that of the "
            f"environment, or {SOURCE}: this project's own. A plan goes by its service.",
        )
    },
)
"""Give a command the option that chooses the capabilities."""


def chosen_capabilities(chosen: Configured) -> str:
    """Return the name of the capabilities that were chosen; empty where none were."""
    context = click.get_current_context(silent=True)
    given: str = context.meta.get(_CAPABILITIES, "") if context else ""
    return given or (chosen.environment.capabilities if chosen.environment else "")


def judging_capabilities(chosen: Configured) -> str:
    """Return the name of the capabilities that judge where no service is asked."""
    return chosen_capabilities(chosen) or SOURCE


def untrusted() -> tuple[Diagnostic, ...]:
    """Return how the configuration of this run differs from the trusted one, where one is named.

    Raises:
        InvalidConfigurationError: the trusted file cannot be used.
        UsageError: there is no configuration to compare with it.
    """
    context = click.get_current_context(silent=True)
    file = context.meta.get(_TRUSTED, "") if context else ""
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
            f"{_what(found.environment, found.name)} is not as in the trusted configuration",
            f"It is {found.proposed} here and {found.trusted} there. Merge this change of "
            f"{proposed.file} on its own; then plan again. Nothing was sent.",
            found.place,
        )
        for found in differences(trusted, proposed)
    )


def _what(environment: str, field: str) -> str:
    return f"{field} of environment {environment}" if field else f"environment {environment}"


def refused_plan(
    scope: Scope, organizations: Iterable[str], blocks: tuple[Diagnostic, ...]
) -> Plan:
    """Return the plan of a run that must not ask any service: its blocks alone."""
    from reconciler.plan.model import Plan

    return Plan(scope, "", tuple(organizations), blocks=blocks)


def _checked_service(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the service; in CI it is named, because a default there is a throw-away store."""
    if not value.strip():
        raise UsageError(
            "--service is empty",
            remedy="Write the address of the service, such as --service https://HOST, or leave "
            f"--service out for {DEFAULT_SERVICE}. A variable that CI did not set is empty.",
        )
    source = ctx.get_parameter_source("service")
    # No shell replaces this ~, and a folder of that name is dangerous to remove. The reader of
    # reconciler.yaml has refused it already, and what is ./~ there is ~ from here.
    if value.startswith("sqlite:~") and source is not click.core.ParameterSource.DEFAULT_MAP:
        raise UsageError(
            f"{value}: ~ is not the home folder here",
            remedy=f"Write the path in full, or sqlite:./{value.removeprefix('sqlite:')} for a "
            "name that begins with ~.",
        )
    if not ctx.resilient_parsing:
        _check_state_folder()
    is_named = bool(untrusted()) or check_service(value, source)
    if (
        not is_named
        and is_ci(os.environ)
        and not ctx.params.get("against")
        and not ctx.resilient_parsing
    ):
        raise UsageError(
            "no service is named, and CI is set",
            remedy="Give --service ADDRESS or set RECONCILER_SERVICE. For a store of this job "
            f"alone: --service {value}.",
        )
    return value


def _check_state_folder() -> None:
    """Refuse a state folder that is, or holds, a link out of the repository.

    A pull request can add such a link, and direct the store, the journals and the secrets with it.

    Raises:
        UsageError: it leads out.
    """
    try:
        here = Path(os.path.realpath("."))
    except OSError:  # the current folder is gone, and what was in it
        return
    top = git_root(here) or here
    for path in (Path(STATE_FOLDER), store_path(DEFAULT_SERVICE), Path(STATE_FOLDER, "secrets")):
        if leads_out(path, top):
            raise UsageError(
                f"{path} leads out of the repository",
                remedy="Remove the link: the store, the journals and the secrets are kept there. "
                "Name a store elsewhere with --service, and a place for secrets with --secrets-to.",
            )


service_option = option(
    "--service",
    callback=_checked_service,
    default=DEFAULT_SERVICE,
    show_default=True,
    metavar="ADDRESS",
    help="The identity service: sqlite:PATH, postgresql://USER@HOST/DATABASE or https://HOST.",
)
