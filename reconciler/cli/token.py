"""``reconciler token``: the tokens that callers of a server have."""

from __future__ import annotations

import json
import re
import secrets
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from reconciler.cli.connection import Connection
from reconciler.cli.embedded import open_service
from reconciler.cli.options import format_option, option, service_option
from reconciler.cli.output import print_json
from reconciler.cli.parameter_types import seconds_of
from reconciler.cli.process import ExitCode, lost_output
from reconciler.errors import ObjectNotFoundError, OutputError, UsageError
from reconciler.report.visible import visible
from reconciler.resources.ref import Kind, fold
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import TokenRow
from reconciler.service.operations.answers import MICROSECONDS
from reconciler.service.operations.callers import Role, all_tokens, make_token, revoke_token

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}", re.ASCII)


@click.group("token")
def token_group() -> None:
    """Make, list and revoke the tokens of a server."""


@token_group.command("create")
@service_option
@option("--name", required=True, help="Who will use it; recorded with every change it makes.")
@option(
    "--role",
    required=True,
    type=click.Choice([role.value for role in Role]),
    help="A viewer reads, an editor also writes, an admin also makes organizations.",
)
@option(
    "--organization",
    "organizations",
    multiple=True,
    metavar="NAME",
    help="Where it may do it; can be given again. Without it: everywhere.",
)
@option("--expires", metavar="LIFE", help="When it ends, such as 90d, 12h or 30m.")
def create_command(
    service: str, name: str, role: str, organizations: Sequence[str], expires: str | None
) -> None:
    """Make a token and print it, this once, on stdout."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{visible(name)} is not a valid name for a token",
            remedy="Use letters, digits and . _ @ - (at most 100), such as ci-apply.",
        )
    now = time.time_ns() // 1000
    ends = now + seconds_of(expires) * MICROSECONDS if expires else 0
    with open_service(Connection(service), create=True) as opened:
        ids = _ids(opened.store, organizations)
        row = TokenRow(name, role, ids, b"", now, ends, 0)
        token = make_token(opened.store, row, secrets.token_bytes)
    if token is None:
        raise UsageError(
            f"a token {name} exists already",
            remedy=f"Choose another name, or run `reconciler token revoke {name}` first.",
        )
    click.echo(token.reveal())
    sys.stdout.flush()
    if lost := lost_output():
        raise OutputError(
            f"the token {name} was made, and could not be printed: {lost}",
            remedy=f"Run `reconciler token revoke {name}`, then make another one.",
        )


@token_group.command("list")
@service_option
@format_option("text", "json")
def list_command(service: str, form: str) -> None:
    """List every token, without the tokens themselves."""
    with open_service(Connection(service)) as opened:
        names = _names(opened.store)
        rows = [_shown(row, names) for row in all_tokens(opened.store)]
    if form == "json":
        print_json({"tokens": rows})
        return
    for row in rows:
        scope = ", ".join(row["organizations"]) if row["organizations"] is not None else "all"
        click.echo(
            f"{row['name']}  {row['role']}  {visible(scope)}  created {row['created']}"
            f"{'  expires ' + row['expires'] if row['expires'] else ''}"
            f"{'  revoked ' + row['revoked'] if row['revoked'] else ''}"
        )


@token_group.command("revoke")
@service_option
@click.argument("name")
def revoke_command(service: str, name: str) -> int:
    """End a token, in every running server, now."""
    with open_service(Connection(service)) as opened:
        revoked = revoke_token(opened.store, name, time.time_ns() // 1000)
    if not revoked:
        raise UsageError(
            f"there is no token {visible(name)} to revoke",
            remedy="`reconciler token list` names them all.",
        )
    click.echo(f"Revoked {name}.", err=True)
    return ExitCode.DONE


def _ids(store: EventStore, names: Sequence[str]) -> str:
    """Return the ids of organizations as a token keeps them."""
    if not names:
        return ""
    with store.snapshot() as view:
        found = {name: view.find_object(Kind.ORGANIZATION, "", fold(name)) for name in names}
    missing = [name for name, row in found.items() if row is None]
    if missing:
        raise ObjectNotFoundError(
            f"there is no organization {visible(missing[0])}",
            remedy="Apply its manifest first, or correct the name.",
        )
    return json.dumps(sorted(row.id for row in found.values() if row))


def _names(store: EventStore) -> dict[str, str]:
    with store.snapshot() as view:
        return {row.id: row.name for row in view.all_objects() if row.kind == Kind.ORGANIZATION}


def _shown(row: TokenRow, names: dict[str, str]) -> dict[str, Any]:
    ids = json.loads(row.organizations) if row.organizations else None
    return {
        "name": row.name,
        "role": row.role,
        "organizations": None if ids is None else [names.get(one, one) for one in ids],
        "created": _time(row.created_at),
        "expires": _time(row.expires_at),
        "revoked": _time(row.revoked_at),
    }


def _time(microseconds: int) -> str:
    if not microseconds:
        return ""
    return datetime.fromtimestamp(microseconds / MICROSECONDS, UTC).isoformat(timespec="seconds")
