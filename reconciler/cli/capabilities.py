"""The kind of service that manifests are for: chosen by a flag, a variable or the environment.

A command without a service judges by what was chosen, or else by the source document. A plan
judges by what the service at hand takes, and says where that is not what was chosen.
"""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.configured import Configured
from reconciler.cli.options import option, takes
from reconciler.resources.capabilities import CAPABILITIES, SOURCE

_META = "reconciler.capabilities"


def _keep(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    context.meta[_META] = value or ""
    return value


def _nothing(**_: Any) -> dict[str, Any]:
    """Give a command nothing: what was chosen is in its context."""
    return {}


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
    given: str = context.meta.get(_META, "") if context else ""
    return given or (chosen.environment.capabilities if chosen.environment else "")


def judging_capabilities(chosen: Configured) -> str:
    """Return the name of the capabilities that judge where no service is asked."""
    return chosen_capabilities(chosen) or SOURCE
