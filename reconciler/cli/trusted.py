"""The configuration of the target branch judges that of a change: ``--trusted-config``.

Where the two differ in what decides over credentials and approval, the plan holds these
differences and nothing else: it is made without a request to any service.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from reconciler.cli.configured import configured
from reconciler.diagnostics import Diagnostic, error
from reconciler.errors import InvalidConfigurationError, UsageError

if TYPE_CHECKING:
    from reconciler.plan.model import Plan, Scope

_META = "reconciler.trusted-config"


def trust(context: click.Context, file: str) -> None:
    """Take the file that the configuration of a command is held against; empty for none."""
    context.meta[_META] = file


def untrusted() -> tuple[Diagnostic, ...]:
    """Return how the configuration of this run differs from the trusted one, where one is named.

    Raises:
        InvalidConfigurationError: the trusted file cannot be used.
        UsageError: there is no configuration to compare with it.
    """
    context = click.get_current_context(silent=True)
    file = context.meta.get(_META, "") if context else ""
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
