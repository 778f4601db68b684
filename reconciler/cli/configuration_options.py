"""The options that choose a configuration, an environment, and values of variables.

They are read before all others, because the others take defaults from what they choose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from reconciler.cli.configured import Need, configure
from reconciler.cli.options import Decorator, EnvironmentOption, option
from reconciler.cli.trusted import trust

_GIVEN = "reconciler.configuration-options"
_NAMES = frozenset({"config", "env", "var"})


def _taking(need: Need) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return the callback of the options; with the last of them it reads the configuration."""

    def take(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        given = context.meta.setdefault(_GIVEN, {})
        given[parameter.name] = value
        if given.keys() == _NAMES and not context.resilient_parsing:
            configure(context, given["config"], given["env"], given["var"], need)

    return take


def _options(need: Need) -> Decorator:
    take = _taking(need)
    options = (
        option(
            "--env",
            is_eager=True,
            expose_value=False,
            callback=take,
            default="",
            metavar="NAME",
            help="The environment of reconciler.yaml to work on.",
        ),
        option(
            "--config",
            is_eager=True,
            expose_value=False,
            callback=take,
            default="",
            metavar="FILE",
            help="The configuration; otherwise reconciler.yaml in this folder or above it, up to "
            "the Git root.",
        ),
        click.option(
            "--var",
            cls=EnvironmentOption,
            is_eager=True,
            expose_value=False,
            callback=take,
            multiple=True,
            metavar="NAME=VALUE",
            help="Value of a variable; also RECONCILER_VAR_ and its name. JSON, unless it is a "
            "text. Can be given several times.",
        ),
    )

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        for add in reversed(options):
            command = add(command)
        return command

    return decorated


in_environment = _options(Need.ONE)
"""Give a command the options; where there are environments, one must be chosen."""

perhaps_in_environment = _options(Need.NONE)
"""Give a command the options; it can do without an environment."""

in_all_environments = _options(Need.ALL)
"""Give a command the options; where none is chosen, it works on all environments."""


def _trust(context: click.Context, parameter: click.Parameter, value: str) -> None:
    trust(context, value)


trusted_config_option = option(
    "--trusted-config",
    is_eager=True,  # known before --service is compared with that of the environment
    expose_value=False,
    callback=_trust,
    default="",
    metavar="FILE",
    help="The reconciler.yaml of the target branch. A difference in the service, tree or "
    "protection of an environment blocks the plan, and nothing is asked.",
)
"""Give a command the option to hold its configuration against a trusted one."""
