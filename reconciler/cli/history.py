"""``reconciler history``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import click

from reconciler.cli.clients import open_reader, takes_connection
from reconciler.cli.configuration_options import perhaps_in_environment
from reconciler.cli.connection import Connection
from reconciler.cli.options import format_option
from reconciler.cli.output import print_json, stdout_style
from reconciler.cli.parameter_types import declared_refs, ref_named
from reconciler.errors import ObjectNotFoundError
from reconciler.loop import history_of
from reconciler.plan.history import action_names, steps_of, with_specs
from reconciler.report.drift_and_history import history_as_json, history_as_text
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.port import ReadOnlyService
from reconciler.state import ObservedState

_ID = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)


def _declared(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return declared_refs(None, incomplete)


@click.command("history")
@click.argument("ref", nargs=-1, required=True, metavar="REF", shell_complete=_declared)
@perhaps_in_environment
@takes_connection
@format_option("text", "json")
def history_command(ref: tuple[str, ...], connection: Connection, form: str) -> None:
    """List every change of one object: when, by whom, why, and which fields.

    REF is a kind and names, as plans write them (OidcApplication acme/shop/storefront), or an id.
    A slash inside a name is written %2F.
    """
    text = " ".join(ref).strip()
    with open_reader(connection) as reader:
        found = _Found(text) if _ID.fullmatch(text) else _find(reader, ref_named(text))
        object_id = found.id
        if found.organization_id:
            events = history_of(reader, object_id, found.organization_id, found.names)
        else:
            events = with_specs(reader.history(object_id), {})
        steps = list(steps_of(events))
    if form == "json":
        print_json(history_as_json(object_id, steps))
    else:
        name = f"{found.ref.address}  (id {object_id})" if found.ref else f"id {object_id}"
        click.echo(history_as_text(name, steps, stdout_style()))
    sys.stdout.flush()


class _Found(NamedTuple):
    """An object with a history.

    Attributes:
        ref: As the service spells it, if a ref named it.
        organization_id: Empty where an id named it.
        names: Names of the actions beside it, by id, for what a flow ran.
    """

    id: str
    ref: ResourceRef | None = None
    organization_id: str = ""
    names: Mapping[str, str] = MappingProxyType({})


def _find(reader: ReadOnlyService, ref: ResourceRef) -> _Found:
    """Return the object of these names, or the last removed one that had them."""
    observed = reader.observe([ref.organization])
    held, names = observed.objects.get(ref.key), action_names(observed)
    if held is not None:
        return _Found(held.id, held.ref, held.organization_id, names)
    removed = [
        _Found(removal.id, removal.ref, organization, names)
        for organization in _organizations(observed)
        for removal in reader.removals(organization)
        if removal.ref.key == ref.key
    ]
    if removed:
        return removed[-1]
    raise ObjectNotFoundError(
        f"the service does not hold {ref}, and never did",
        remedy="Names are the organization, the project of an application, and its own, with "
        "slashes between; a slash inside a name is written %2F.",
    )


def _organizations(observed: ObservedState) -> Iterator[str]:
    return (o.id for o in observed.objects.values() if o.ref.kind is Kind.ORGANIZATION)
