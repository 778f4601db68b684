"""Where a command's one-time secrets go."""

from __future__ import annotations

from dataclasses import replace

from reconciler.apply.executor import needs_sink
from reconciler.apply.sink import SecretSink, open_sink
from reconciler.cli.options import option
from reconciler.cli.wiring import is_embedded
from reconciler.diagnostics import warning
from reconciler.plan.model import Plan

DEFAULT_SINK = "file:.reconciler/secrets"

secrets_option = option(
    "--secrets-to",
    metavar="SINK",
    help=f"Where client secrets go: file:DIR. With a store of one's own: {DEFAULT_SINK}.",
)


def sink_for(service: str, secrets_to: str | None) -> SecretSink | None:
    """Return the sink that was asked for, or the embedded service's own, or none."""
    address = secrets_to or (DEFAULT_SINK if is_embedded(service) else "")
    return open_sink(address) if address else None


def check_sink(plan: Plan, service: str, secrets_to: str | None) -> Plan:
    """Add a warning to a plan that makes secrets with nowhere to go. It is not in the digest."""
    if not needs_sink(plan) or sink_for(service, secrets_to) is not None:
        return plan
    nowhere = warning(
        "SECRET-NO-SINK",
        "the plan makes client secrets, and there is nowhere to put them",
        "A secret is answered once. Give --secrets-to file:DIR; apply refuses without it.",
    )
    return replace(plan, warnings=(*plan.warnings, nowhere))
