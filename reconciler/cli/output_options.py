"""Give every command ``--color``, ``--verbose`` and ``--quiet``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from reconciler.cli.options import option
from reconciler.cli.output_choice import choose


def _take(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def take(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if not context.resilient_parsing:
            choose(name, value)

    return take


_OPTIONS = (
    option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        callback=_take("color"),
        help="Colour of the output; auto is the default: on a terminal, and as NO_COLOR and "
        "FORCE_COLOR say.",
    ),
    option(
        "--verbose",
        "-v",
        is_flag=True,
        expose_value=False,
        callback=_take("verbose"),
        help="Tell requests and timings on stderr.",
    ),
    option(
        "--quiet",
        "-q",
        is_flag=True,
        expose_value=False,
        callback=_take("quiet"),
        help="No progress, notes or hints.",
    ),
)


def with_output_options(command: click.Command) -> click.Command:
    """Return a command that has the options, as have the commands in it."""
    has_them = any("--color" in parameter.opts for parameter in command.params)
    if not has_them:
        for add in _OPTIONS:
            add(command)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            with_output_options(inner)
    return command
