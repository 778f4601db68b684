"""The sink of a command: where client secrets go."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace

import click

from reconciler.apply.sink import (
    Application,
    Delivery,
    Followed,
    Kept,
    Move,
    SecretSink,
    Stops,
    never,
)
from reconciler.apply.sinks import KINDS, open_sink
from reconciler.cli.connection import Connection, is_embedded
from reconciler.cli.options import option
from reconciler.diagnostics import warning
from reconciler.errors import LocalFileError
from reconciler.plan.model import Plan, makes_secret
from reconciler.resources.installation import STATE_FOLDER
from reconciler.resources.ref import ResourceRef

DEFAULT_SINK = f"file:{STATE_FOLDER}/secrets"

secrets_option = option(
    "--secrets-to",
    metavar="SINK",
    help=f"Where client secrets go: {KINDS}. With a store of one's own: {DEFAULT_SINK}.",
)


def sink_for(connection: Connection, secrets_to: str | None) -> SecretSink | None:
    """Return the sink that was asked for, or the one of an embedded service's state, or none."""
    own = f"file:{connection.state}/secrets" if is_embedded(connection.service) else ""
    address = secrets_to or own
    if not address:
        return None
    sink = open_sink(address, os.environ)
    return MaskingSink(sink) if os.environ.get("GITHUB_ACTIONS") == "true" else sink


class MaskingSink:
    """A sink that has the runner of a GitHub job mask each secret before another sink gets it.

    The runner takes this line out of the log; it goes to stderr, which is never a result.
    """

    def __init__(self, sink: SecretSink) -> None:
        self._sink = sink

    @property
    def follows(self) -> bool:
        """Return whether the other sink follows renames."""
        return self._sink.follows

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Prove the other sink."""
        self._sink.prove(refs)

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Mask, then deliver."""
        for delivery in deliveries:
            click.echo(f"::add-mask::{delivery.client_secret.reveal()}", err=True)
        return self._sink.deliver(deliveries, stops)

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Ask the other sink."""
        return self._sink.held(applications)

    def moved(self, moves: Sequence[Move]) -> Sequence[Followed]:
        """Pass the renames to the other sink."""
        return self._sink.moved(moves)

    def removed(self, applications: Sequence[Application]) -> Sequence[Followed]:
        """Pass the deletes to the other sink."""
        return self._sink.removed(applications)


def why_a_sink(plan: Plan) -> str:
    """Return the reason why a plan needs a sink, as half a sentence; empty if it needs none."""
    if any(makes_secret(change) for change in plan.changes):
        return "the plan creates client secrets"
    return "client secrets are owed to this tree" if plan.deliverable else ""


def warn_without_sink(plan: Plan, sink: SecretSink | None) -> Plan:
    """Add a warning to a plan with secrets that have no sink. It is not in the digest."""
    why = why_a_sink(plan)
    if not why or sink is not None:
        return plan
    nowhere = warning(
        "SECRET-NO-SINK",
        f"{why}, and no destination is chosen",
        f"The service answers a secret only once. Choose a destination with --secrets-to "
        f"{KINDS}; apply refuses without one.",
    )
    return replace(plan, warnings=(*plan.warnings, nowhere))
