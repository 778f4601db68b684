"""``reconciler secret``: list and deliver client secrets, and replace one application's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import click

from reconciler.apply.changes import ApplyReport
from reconciler.apply.delivery import DeliveryResult, deliver_owed, rotate
from reconciler.apply.sinks import KINDS
from reconciler.cli.apply import exit_code
from reconciler.cli.apply_output import TerminalWatch
from reconciler.cli.approval import ask_for_yes, check_protection
from reconciler.cli.clients import (
    locked,
    open_client,
    open_reader,
    prove_seal_key,
    require_store,
    sink_for,
)
from reconciler.cli.configured import configured
from reconciler.cli.connection import Connection
from reconciler.cli.journals import open_journal
from reconciler.cli.moments import new_context
from reconciler.cli.options import command, group
from reconciler.cli.output import draw, print_done, say, show_warnings, stdout_style
from reconciler.cli.parameter_types import CLIENT, RefType
from reconciler.cli.process import ExitCode, lost_output
from reconciler.cli.trees import paused_now, refuse_paused
from reconciler.errors import ObjectNotFoundError, OutputError, UnseenOrganizationError, UsageError
from reconciler.plan.advice import unidentified
from reconciler.plan.history import gives_secret
from reconciler.plan.model import Scope
from reconciler.plan.ownership import lost_secrets, owed_elsewhere, owed_to
from reconciler.report.apply_report import delivered_as_text
from reconciler.report.place import Place, place_as_text
from reconciler.report.secrets import SECRETS, SecretsDocument, applications_with_secret
from reconciler.report.visible import visible
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import ServiceClient
from reconciler.service_client.wire import no_custody
from reconciler.state import ObjectEvent, ObservedObject, ObservedState, OwedSecret

secret_group = group("secret", "Manage client secrets: list, deliver, rotate.")


@command("secret rotate", example="acme/shop/storefront", within=secret_group)
@click.argument("ref", metavar="REF", type=RefType(CLIENT))
def rotate_command(
    ref: ResourceRef,
    connection: Connection,
    tree: str,
    secrets_to: str | None,
    *,
    auto_approve: bool,
    lock_timeout: float,
    despite_pause: bool,
) -> int:
    """Give the application REF a new client secret, and deliver it. The old one ends at once.

    REF is ORGANIZATION/PROJECT/NAME, with or without OidcApplication in front. A slash inside a
    name is written %2F.
    """
    check_protection(configured(), connection.service, auto_approve=auto_approve)
    sink = sink_for(connection, secrets_to)
    if sink is None:
        raise UsageError("the new secret has no destination", remedy=f"Give --secrets-to {KINDS}.")
    require_store(connection.service)
    organization = ref.organization
    with open_client(connection) as client, locked(client, [organization], lock_timeout):
        observed = client.observe([organization], flows=False)
        held = _application(observed, ref)
        trees = () if despite_pause else sorted({tree, held.owner or tree})
        _refuse_paused(client, trees, organization)
        if not auto_approve:
            place = Place(connection.service, observed.instance, tree, connection.environment)
            ask_for_yes("replace this client secret", "secret rotate", _at_stake(held, place))
            _refuse_paused(client, trees, organization)  # the answer may have taken hours
        prove_seal_key(connection)
        opened = open_journal(
            connection, observed.instance, Scope(tree), [organization], lock_timeout
        )
        with opened as journal:
            kept = rotate(held, client, journal, sink, new_context(tree), custody=observed.custody)
    show_warnings([*kept.notes, *unidentified(observed)])
    say(f"rotated  {visible(str(held.ref))}  secret in {visible(kept.at)}")
    if lost := lost_output():
        raise OutputError(
            f"the client secret of {held.ref} was replaced and is in {kept.at}; "
            f"the result could not be printed: {lost}",
            remedy="Do not run the command again: it would replace the secret once more.",
        )
    return ExitCode.PARTLY if any(note.is_error for note in kept.notes) else ExitCode.DONE


def _refuse_paused(client: ServiceClient, trees: Iterable[str], organization: str) -> None:
    """Refuse to replace a secret while a tree of it is paused.

    A delivery is not refused: it replaces nothing.
    """
    for tree in trees:
        names = paused_now(client, tree, [organization])
        refuse_paused(tree, names, "replaces this secret all the same")


def _at_stake(held: ObservedObject, place: Place) -> Iterator[str]:
    yield place_as_text(place)
    yield f"{visible(str(held.ref))}  (client id {visible(held.client_id)})"
    yield "Its client secret ends at once: what is deployed with it needs the new one to sign in."


def _application(observed: ObservedState, ref: ResourceRef) -> ObservedObject:
    _check_named(observed, {ref.key})
    held = observed.objects[ref.key]
    twins = [each.id for each in observed.name_clashes if each.ref.key == ref.key]
    if twins:
        ids = ", ".join([held.id, *twins])
        raise UsageError(
            f"the service holds several applications {ref.path}: ids {ids}",
            remedy="Rename all but one of them: a name must say which one is meant.",
        )
    return held


@command("secret deliver", example="--secrets-to file:secrets", within=secret_group)
@click.argument("refs", metavar="[REF]...", nargs=-1, type=RefType(CLIENT))
def deliver_command(
    refs: tuple[ResourceRef, ...],
    connection: Connection,
    tree: str,
    secrets_to: str | None,
    lock_timeout: float,
) -> int:
    """Deliver the client secrets that the service keeps for this tree, and change nothing.

    REF is ORGANIZATION/PROJECT/NAME; without any, all that is owed is delivered.
    """
    sink = sink_for(connection, secrets_to)
    if sink is None:
        raise UsageError("the secrets have no destination", remedy=f"Give --secrets-to {KINDS}.")
    require_store(connection.service)
    keys = {ref.key for ref in refs}
    with open_client(connection) as client:
        named = sorted({ref.organization for ref in refs}) or client.organizations()
        observed = _of_named(client.observe(named, flows=False), keys)
        if not observed.custody:
            raise no_custody()
        _check_named(observed, keys)
        owed = owed_to(Scope(tree), observed)
        names = sorted({secret.ref.organization for secret in owed})
        with locked(client, names, lock_timeout), TerminalWatch() as watch:
            if names:  # another run may have delivered some before this one had the lock
                owed = owed_to(Scope(tree), _of_named(client.observe(names, flows=False), keys))
            kept = [secret for secret in owed if not secret.lost]
            if kept:
                sink.prove([secret.ref for secret in kept])
            done = deliver_owed(kept, client, sink, new_context(tree), watch.stop_signal)
        stopped = watch.stop_signal()
    code = _show_delivered(owed, done)
    if not owed:
        say(_nothing_owed(observed, Scope(tree), keys))
    return ExitCode.SIGNAL + stopped if stopped else code


@command(
    "secret list",
    example="acme/shop/storefront",
    formats=(*SECRETS,),
    within=secret_group,
)
@click.argument("refs", metavar="[REF]...", nargs=-1, type=RefType(CLIENT))
def list_command(refs: tuple[ResourceRef, ...], connection: Connection, form: str) -> None:
    """List the applications that have a client secret. No secret is shown.

    REF is ORGANIZATION/PROJECT/NAME; without any, all applications that the token sees are listed,
    each with the time of its secret and whether its delivery is owed. Nothing is written.
    """
    keys = {ref.key for ref in refs}
    with open_reader(connection) as reader:
        names = sorted({ref.organization for ref in refs}) or reader.organizations()
        observed = reader.observe(names, flows=False)
        _check_named(observed, keys)
        every = applications_with_secret(observed)
        found = [each for each in every if not keys or each.held.ref.key in keys]
        ids = [each.held.id for each in found] if observed.keeps_history else []
        histories = dict(reader.histories(ids))
        listed = [each._replace(since=_since(histories.get(each.held.id, ()))) for each in found]
    show_warnings(list(unidentified(observed)))
    draw(SECRETS[form], SecretsDocument(listed, connection.environment))


def _since(events: Sequence[ObjectEvent]) -> str:
    """Return when an application got its present secret; empty if the service does not say.

    It was made with the application, unless it was replaced since.
    """
    made = [*events[:1], *filter(gives_secret, events)]
    return made[-1].at if made else ""


def _check_named(observed: ObservedState, keys: Collection[ResourceRef]) -> None:
    """Check that the service holds the applications."""
    unknown = sorted(key for key in keys if key not in observed.objects)
    if unknown and observed.missing_role:
        raise UnseenOrganizationError(observed.unseen, remedy=observed.missing_role)
    if unknown:
        raise ObjectNotFoundError(
            f"there is no application {unknown[0].path}",
            remedy="Write ORGANIZATION/PROJECT/NAME; `reconciler secret list` lists them.",
        )


def _of_named(observed: ObservedState, keys: Collection[ResourceRef]) -> ObservedState:
    """Leave out what is owed to other applications than those named, if any are."""
    owed = (secret for secret in observed.owed if not keys or secret.ref.key in keys)
    return replace(observed, owed=tuple(owed))


def _nothing_owed(observed: ObservedState, scope: Scope, keys: Collection[ResourceRef]) -> str:
    which = "No client secret of the applications named" if keys else "No client secret"
    others = owed_elsewhere(scope, observed)
    if not others:
        return f"{which} is owed."
    return f"{which} is owed to tree {visible(scope.tree)}; {others} to other trees."


def _show_delivered(owed: Sequence[OwedSecret], done: DeliveryResult) -> int:
    show_warnings([*lost_secrets(owed), *done.notes])
    style = stdout_style()
    print_done([delivered_as_text(delivered, style) for delivered in done.delivered])
    return exit_code(ApplyReport((), tuple(done.notes), delivered=tuple(done.delivered)))
