"""The options that choose a configuration, an environment, and values of variables.

They are read before all others, because the others take defaults from what they choose.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from reconciler.cli.configured import Need, configure, found_configuration
from reconciler.cli.options import Decorator, EnvironmentOption, option, takes
from reconciler.cli.trusted import trust
from reconciler.errors import UsageError

_GIVEN = "reconciler.configuration-options"


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
    """Refuse an option that is given and empty.

    Raises:
        UsageError: it is.
    """
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
    trust(context, value or "")
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
