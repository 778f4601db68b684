"""``reconciler secret``: deliver what is owed, and replace one application's secret."""

from __future__ import annotations

from collections.abc import Iterator

import click

from reconciler.apply.rotation import rotate
from reconciler.apply.sinks import KINDS
from reconciler.cli.asking import ask_for_yes, auto_approve_option
from reconciler.cli.connection import keep_owed_option, seal_key_option, service_options
from reconciler.cli.deliver import deliver_command
from reconciler.cli.exit_codes import ExitCode
from reconciler.cli.findings import show_warnings
from reconciler.cli.journals import open_journal
from reconciler.cli.locking import locked
from reconciler.cli.options import tree_option
from reconciler.cli.refs import RefType
from reconciler.cli.secrets import secrets_option, sink_for
from reconciler.cli.streams import lost_output
from reconciler.cli.wiring import open_client, require_store
from reconciler.errors import ObjectNotFoundError, OutputError, UsageError
from reconciler.plan.model import Scope
from reconciler.report.place import Place, place_as_text
from reconciler.report.visible import visible
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import ObservedObject, ObservedState


@click.group("secret")
def secret_group() -> None:
    """Look after client secrets."""


secret_group.add_command(deliver_command)


@secret_group.command("rotate")
@click.argument("ref", metavar="REF", type=RefType(Kind.OIDC_APPLICATION))
@service_options
@seal_key_option
@keep_owed_option
@tree_option
@secrets_option
@auto_approve_option
def rotate_command(
    ref: ResourceRef, service: str, tree: str, secrets_to: str | None, *, auto_approve: bool
) -> int:
    """Give the application REF a new client secret, and deliver it. The old one ends at once.

    REF is ORGANIZATION/PROJECT/NAME, with or without OidcApplication in front. A slash inside a
    name is written %2F.
    """
    sink = sink_for(service, secrets_to)
    if sink is None:
        raise UsageError("the new secret has no destination", remedy=f"Give --secrets-to {KINDS}.")
    require_store(service)
    organization = ref.organization
    with open_client(service) as client, locked(client, [organization], 0):
        observed = client.observe([organization])
        held = _application(observed, ref)
        if not auto_approve:
            place = Place(service, observed.instance, tree)
            ask_for_yes("replace this client secret", "secret rotate", _at_stake(held, place))
        with open_journal(service, observed.instance, Scope(tree), [organization], 0) as journal:
            kept = rotate(held, client, journal, sink, {"tree": tree, "revision": "", "plan": ""})
    show_warnings(kept.notes)
    click.echo(f"rotated  {visible(str(held.ref))}  secret in {visible(kept.at)}")
    if lost := lost_output():
        raise OutputError(
            f"the client secret of {held.ref} was replaced and is in {kept.at}; "
            f"the result could not be printed: {lost}",
            remedy="Do not run the command again: it would replace the secret once more.",
        )
    return ExitCode.PARTLY if any(note.is_error for note in kept.notes) else ExitCode.DONE


def _at_stake(held: ObservedObject, place: Place) -> Iterator[str]:
    yield place_as_text(place)
    yield f"{visible(str(held.ref))}  (client id {visible(held.client_id)})"
    yield "Its client secret ends at once: what is deployed with it needs the new one to sign in."


def _application(observed: ObservedState, ref: ResourceRef) -> ObservedObject:
    held = observed.objects.get(ref.key)
    if held is None:
        raise ObjectNotFoundError(
            f"there is no application {ref.path}",
            remedy="Write ORGANIZATION/PROJECT/NAME; `reconciler outputs` lists those declared.",
        )
    twins = [each.id for each in observed.doubles if each.ref.key == ref.key]
    if twins:
        ids = ", ".join([held.id, *twins])
        raise UsageError(
            f"the service holds several applications {ref.path}: ids {ids}",
            remedy="Rename all but one of them: a name must say which one is meant.",
        )
    return held
