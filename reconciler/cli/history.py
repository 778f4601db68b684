"""``reconciler history``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence

import click

from reconciler.cli.connection import service_options
from reconciler.cli.kind_name import kind_named
from reconciler.cli.options import format_option
from reconciler.cli.output import print_json, stdout_style
from reconciler.cli.wiring import open_inquiry
from reconciler.errors import ObjectNotFoundError, UsageError
from reconciler.plan.history import steps_of
from reconciler.report.history_report import history_as_json, history_as_text
from reconciler.resources.ref import Kind, fold
from reconciler.service_client.port import ServiceInquiry
from reconciler.state import ObservedState

_ID = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)


@click.command("history")
@click.argument("ref", nargs=-1, required=True, metavar="REF")
@service_options
@format_option("text", "json")
def history_command(ref: tuple[str, ...], service: str, form: str) -> None:
    """List every change of one object: when, by whom, why, and which fields.

    REF is a kind and names, as plans write them (OidcApplication acme/shop/storefront), or an id.
    """
    words = " ".join(ref).split(None, 1) or [""]
    with open_inquiry(service) as inquiry:
        object_id = words[0] if len(words) == 1 else _find(inquiry, kind_named(words[0]), words[1])
        if not _ID.fullmatch(object_id):
            raise UsageError(
                f"{object_id} is no object",
                remedy="Name a kind and names, such as Action acme/greet, or an id.",
            )
        steps = list(steps_of(inquiry.history(object_id)))
    if form == "json":
        print_json(history_as_json(object_id, steps))
    else:
        click.echo(history_as_text(f"{' '.join(words)}  (id {object_id})", steps, stdout_style()))
    sys.stdout.flush()


def _find(inquiry: ServiceInquiry, kind: Kind, path: str) -> str:
    """Return the id of the object of these names, or of the last removed one that had them."""
    observed = inquiry.observe(_possible_organizations(path))
    wanted = fold(path)
    for held in observed.objects.values():
        if held.ref.kind is kind and fold(held.ref.path) == wanted:
            return held.id
    removed = [
        removal.id
        for organization in _organizations(observed)
        for removal in inquiry.removals(organization)
        if removal.ref.kind is kind and fold(removal.ref.path) == wanted
    ]
    if removed:
        return removed[-1]
    raise ObjectNotFoundError(
        f"the service holds no {kind.value} {path}, and never did",
        remedy="Names are the organization, the project of an application, and its own, with "
        "slashes between.",
    )


def _possible_organizations(path: str) -> Sequence[str]:
    """Return what the organization may be: a name can have slashes of its own."""
    return list(_beginnings(path.split("/")))


def _beginnings(parts: Sequence[str]) -> Iterator[str]:
    for end in range(1, min(len(parts), 8) + 1):
        yield "/".join(parts[:end])


def _organizations(observed: ObservedState) -> Iterator[str]:
    return (o.id for o in observed.objects.values() if o.ref.kind is Kind.ORGANIZATION)
