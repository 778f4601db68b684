"""``reconciler secret``: one application's client secret, made anew."""

from __future__ import annotations

import click

from reconciler.apply.rotation import rotate
from reconciler.apply.sinks import KINDS
from reconciler.cli.connection import seal_key_option, service_options
from reconciler.cli.journals import open_journal
from reconciler.cli.locking import locked
from reconciler.cli.options import tree_option
from reconciler.cli.secrets import secrets_option, sink_for
from reconciler.cli.wiring import open_client
from reconciler.errors import ObjectNotFoundError, UsageError
from reconciler.plan.model import Scope
from reconciler.report.visible import visible
from reconciler.resources.ref import Kind, fold
from reconciler.state import ObservedObject, ObservedState


@click.group("secret")
def secret_group() -> None:
    """Look after client secrets."""


@secret_group.command("rotate")
@click.argument("ref", metavar="REF")
@service_options
@seal_key_option
@tree_option
@secrets_option
def rotate_command(ref: str, service: str, tree: str, secrets_to: str | None) -> None:
    """Give the application REF a new client secret, and deliver it. The old one ends at once.

    REF is ORGANIZATION/PROJECT/NAME, with or without OidcApplication in front.
    """
    path = ref.removeprefix(Kind.OIDC_APPLICATION.value).lstrip("/ ")
    sink = sink_for(service, secrets_to)
    if sink is None:
        raise UsageError(
            "the new secret would have nowhere to go", remedy=f"Give --secrets-to {KINDS}."
        )
    organization = path.partition("/")[0]
    with open_client(service) as client, locked(client, [organization], 0):
        observed = client.observe([organization])
        held = _application(observed, path)
        with open_journal(service, observed.instance, Scope(tree), [organization], 0) as journal:
            place = rotate(held, client, journal, sink, {"tree": tree, "revision": "", "plan": ""})
    click.echo(f"rotated  {visible(str(held.ref))}  secret in {visible(place)}")


def _application(observed: ObservedState, path: str) -> ObservedObject:
    for held in observed.objects.values():
        if held.ref.kind is Kind.OIDC_APPLICATION and fold(held.ref.path) == fold(path):
            return held
    raise ObjectNotFoundError(
        f"there is no application {path}",
        remedy="Write ORGANIZATION/PROJECT/NAME; `reconciler outputs` lists those declared.",
    )
