"""The variables of environments, with their values and where each value comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from reconciler.cli.configured import Configured
from reconciler.configuration.model import Configuration, Environment, Variable
from reconciler.errors import InvalidConfigurationError
from reconciler.manifests.placeholders import VariableValue
from reconciler.report.visible import Style, visible

LONGEST = 500
"""Characters of a value that are shown."""


def explain_environments(chosen: Configured, style: Style) -> None:
    """Print the environment that was chosen, or each one, with its variables.

    Raises:
        InvalidConfigurationError: the configuration, or a value that was given, cannot be used.
    """
    if any(finding.is_error for finding in chosen.findings) or chosen.configuration is None:
        raise InvalidConfigurationError(chosen.findings)
    parts = ["\n".join(_lines(chosen.configuration, each, style)) for each in chosen.each()]
    click.echo("\n\n".join(parts))


def _lines(configuration: Configuration, chosen: Configured, style: Style) -> Iterator[str]:
    if chosen.environment is not None:
        yield _head(configuration, chosen.environment, style)
    variables = configuration.variables
    if not variables:
        yield "No variables are declared."
    for name, variable in variables.items():
        value = chosen.layers.variables.get(name)
        yield f"  {style(name, 'cyan')} <{variable.type}>  {_shown(variable, value, style)}"
        if variable.description:
            yield f"      {visible(variable.description)}"


def _head(configuration: Configuration, environment: Environment, style: Style) -> str:
    facts = [f"service {configuration.service_of(environment)}"]
    facts += [f"tree {environment.tree}"] if environment.tree else []
    facts += [f"overlay {configuration.path(environment.overlay)}"] if environment.overlay else []
    facts += ["protected"] if environment.protected else []
    facts += [f"capabilities {environment.capabilities}"] if environment.capabilities else []
    return f"{style(f'Environment {environment.name}', 'bold')}: {visible(', '.join(facts))}"


def _shown(variable: Variable, value: VariableValue | None, style: Style) -> str:
    """Return a value, and where it comes from: the file, the environment or the command line."""
    if value is None:
        return style("no value", "yellow")
    text = json.dumps(value.value, ensure_ascii=False)
    cut = f"{text[:LONGEST]} [{len(text) - LONGEST} more characters]"
    origin = "default, " if value is variable.default else ""
    shown = visible(text if len(text) <= LONGEST else cut)
    return f"{shown}  {style(f'({origin}{visible(str(value.origin))})', 'dim')}"
