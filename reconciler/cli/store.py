"""``reconciler store`` and ``token``: care for the embedded store, and tokens of its callers."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli.approval import ask_for_yes
from reconciler.cli.connection import Connection, is_database, store_errors, store_path
from reconciler.cli.embedded import open_service
from reconciler.cli.options import command, group
from reconciler.cli.output import print_done, print_json, stdout_style
from reconciler.cli.parameter_types import complete_files
from reconciler.cli.process import ExitCode, lost_output
from reconciler.errors import ObjectNotFoundError, OutputError, UsageError
from reconciler.report.visible import visible
from reconciler.resources.ref import Kind, fold
from reconciler.service.eventstore.errors import StoreDamagedError
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import TokenRow
from reconciler.service.operations.answers import MICROSECONDS
from reconciler.service.operations.callers import all_tokens, make_token, revoke_token

if TYPE_CHECKING:
    from reconciler.service.restore import Lost


store_group = group("store", "Maintain the embedded store: verify, backup, restore, rebuild.")


@command("store verify", formats=("text", "json"), within=store_group)
def verify_command(service: str, form: str) -> int:
    """Check every chain, number and object of the store against its log of events."""
    from reconciler.service.projections.maintenance import verify

    with open_service(Connection(service), read_only=True) as opened:
        findings = verify(opened.store)
        with opened.store.snapshot() as view:
            events = sum(head.events for head in view.heads())
    style = stdout_style()
    if form == "json":
        print_json({"sound": not findings, "events": events, "findings": list(findings)})
    elif findings:
        for finding in findings:
            click.echo(f"{style('damaged', 'red', 'bold')}  {visible(finding)}")
    else:
        click.echo(f"{style('Sound:', 'green', 'bold')} {events} events, every chain verified.")
    return ExitCode.ERROR if findings else ExitCode.DONE


@command("store backup", example="identity-backup.db", within=store_group)
@click.argument("target", metavar="FILE", shell_complete=complete_files)
def backup_command(service: str, target: str, *, damaged: bool) -> None:
    """Copy the store into a new FILE, also while it is in use.

    The store is verified first.
    """
    from reconciler.service.projections.maintenance import backup, verify

    with open_service(Connection(service), read_only=True) as opened, _damage_shown():
        if damaged or is_database(service):  # a database refuses, however it is
            opened.store.backup(Path(target))
        else:
            backup(opened.store, Path(target))
        findings = verify(opened.store) if damaged else ()
    lines = [f"Saved to {visible(target)}. The seal key is not in it."]
    if findings:
        _show_damage(findings)
        lines.append("The copy is damaged as the store is: `store restore` refuses it.")
    _show_done(lines)


SHOWN = 20  # findings; `store verify` shows all


@contextmanager
def _damage_shown() -> Iterator[None]:
    """Print the findings that a command refuses for."""
    try:
        yield
    except StoreDamagedError as failure:
        _show_damage(failure.findings)
        raise


def _show_damage(findings: Sequence[str]) -> None:
    for finding in findings[:SHOWN]:
        click.echo(f"damaged  {visible(finding)}", err=True)
    if len(findings) > SHOWN:
        more = len(findings) - SHOWN
        click.echo(f"... and {more} more: `reconciler store verify` shows all", err=True)


@command("store restore", example="identity-backup.db", within=store_group)
@click.argument("backup", metavar="FILE", shell_complete=complete_files)
def restore_command(service: str, backup: str, *, auto_approve: bool) -> None:
    """Replace the store by a backup, if the backup is sound.

    The store before is kept in a file beside it.
    """
    from reconciler.service.restore import restore

    if is_database(service):
        raise UsageError(
            "a store in PostgreSQL is not restored from a file",
            remedy="Use the database's own tools, such as pg_restore; see docs/postgresql.md.",
        )

    def approve(lost: Lost | None) -> None:
        if lost is None:
            return
        for line in _lost_in_words(lost):
            click.echo(line, err=True)
        if not auto_approve:
            ask_for_yes("restore this backup", "store restore", [f"Service {visible(service)}"])

    with store_errors():
        kept = restore(Path(backup), store_path(service), approve)
    lines = [f"Restored from {visible(backup)}."]
    if kept is not None:
        lines.append(f"The store before is kept in {visible(str(kept))}.")
    _show_done(lines)


def _show_done(lines: Sequence[str]) -> None:
    """Print what was done.

    Raises:
        OutputError: it could not be printed on stdout, and stands on stderr.
    """
    if lost := print_done(lines):
        raise OutputError(
            f"the result could not be printed: {lost}",
            remedy="The command is done, and the result stands above. Do not run it again.",
        )


def _lost_in_words(lost: Lost) -> Iterator[str]:
    if lost.events is None:
        yield "The store that is replaced cannot be read, so it is not known what is lost."
        return
    if lost.is_other:
        yield "The backup is of another instance of the service than the store."
    yield f"Lost: {lost.events} event(s) that the store has and the backup lacks."
    if lost.secrets:
        yield (
            "Sinks no longer fit: these applications got another client secret since the backup, "
            "and the one before counts again. Run `reconciler secret rotate` for each:"
        )
        yield from (f"  {visible(ref.path)}" for ref in lost.secrets)
    if lost.let_in_again:
        yield "These were ended since the backup, and let callers in again. To end them once more:"
        for group, name, _ in lost.let_in_again:
            verb = "revoke" if group == "token" else "remove"
            yield f"  reconciler {group} {verb} {visible(name)}"
    if lost.shut_out:
        yield "These were made since the backup, and no longer count:"
        yield from (f"  {group} {visible(name)}" for group, name, _ in lost.shut_out)


@command("store rebuild", within=store_group)
def rebuild_command(service: str, *, damaged: bool) -> None:
    """Rebuild everything that is derived from the log of events.

    The log is verified first.
    """
    from reconciler.service.projections.maintenance import Rebuilt, rebuild, rebuild_damaged

    with open_service(Connection(service)) as opened, _damage_shown():
        store = opened.store
        done = rebuild_damaged(store) if damaged else Rebuilt(rebuild(store), (), ())
    _show_damage(done.findings)
    for sentence in done.lost:
        click.echo(f"lost  {visible(sentence)}", err=True)
    lines = [f"Rebuilt {done.objects} objects from the log."]
    if done.findings:
        lines.append("The log is damaged as before: `store verify` still says so.")
    _show_done(lines)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}", re.ASCII)


token_group = group("token", "Manage the tokens of a server: create, list, revoke.")


@command("token create", example="--name ci-apply --role editor", within=token_group)
def create_command(
    service: str, name: str, role: str, organization: Sequence[str], expires: int | None
) -> None:
    """Make a token and print it on stdout. It is shown only once."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{visible(name)} is not a valid name for a token",
            remedy="Use letters, digits and . _ @ - (at most 100), such as ci-apply.",
        )
    now = time.time_ns() // 1000
    ends = now + expires * MICROSECONDS if expires else 0
    with open_service(Connection(service), create=True) as opened:
        ids = _ids(opened.store, organization)
        row = TokenRow(name, role, ids, b"", now, ends, 0)
        token = make_token(opened.store, row, secrets.token_bytes)
    if token is None:
        raise UsageError(
            f"a token {name} exists already",
            remedy=f"Choose another name, or run `reconciler token revoke {name}` first.",
        )
    click.echo(token.reveal())
    if lost := lost_output():
        raise OutputError(
            f"the token {name} was made, and could not be printed: {lost}",
            remedy=f"Run `reconciler token revoke {name}`, then make another one.",
        )


@command("token list", formats=("text", "json"), within=token_group)
def list_command(service: str, form: str) -> None:
    """List every token, without the tokens themselves."""
    with open_service(Connection(service)) as opened:
        tokens = all_tokens(opened.store)
        names = _names(opened.store, tokens)
        rows = [_shown(row, names) for row in tokens]
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


@command("token revoke", example="ci-apply", within=token_group)
@click.argument("name")
def revoke_command(service: str, name: str) -> None:
    """Revoke a token, at once, in every running server."""
    with open_service(Connection(service)) as opened:
        revoked = revoke_token(opened.store, name, time.time_ns() // 1000)
    if not revoked:
        raise UsageError(
            f"there is no token {visible(name)} to revoke",
            remedy="`reconciler token list` names them all.",
        )
    click.echo(f"Revoked {name}.", err=True)


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


def _names(store: EventStore, tokens: Sequence[TokenRow]) -> dict[str, str]:
    """Return the names of the organizations that tokens are for, by id."""
    ids = {one for row in tokens if row.organizations for one in json.loads(row.organizations)}
    with store.snapshot() as view:
        rows = view.get_objects(ids) if ids else ()
    return {row.id: row.name for row in rows if row.kind == Kind.ORGANIZATION}


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
