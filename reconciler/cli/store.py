"""``reconciler store``: looking after the embedded store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.approval import ask_for_yes, auto_approve_option
from reconciler.cli.connection import Connection, is_database, store_path
from reconciler.cli.embedded import open_service, store_errors
from reconciler.cli.options import format_option, service_option
from reconciler.cli.output import print_done, print_json, stdout_style
from reconciler.cli.process import ExitCode
from reconciler.errors import OutputError, UsageError
from reconciler.report.visible import visible

if TYPE_CHECKING:
    from reconciler.service.restore import Lost


@click.group("store")
def store_group() -> None:
    """Look after the embedded store: verify, backup, restore, rebuild."""


@store_group.command("verify")
@service_option
@format_option("text", "json")
def verify_command(service: str, form: str) -> int:
    """Check every chain, number and object of the store against its log."""
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


@store_group.command("backup")
@service_option
@click.argument("target", metavar="FILE")
def backup_command(service: str, target: str) -> None:
    """Copy the store into a new FILE, also while it is in use."""
    with open_service(Connection(service), read_only=True) as opened:
        opened.store.backup(Path(target))
    _show_done([f"Saved to {visible(target)}. The seal key is not in it."])


@store_group.command("restore")
@service_option
@click.argument("backup", metavar="FILE")
@auto_approve_option
def restore_command(service: str, backup: str, *, auto_approve: bool) -> None:
    """Put a backup in the place of the store, if the backup is sound.

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


@store_group.command("rebuild")
@service_option
def rebuild_command(service: str) -> None:
    """Make everything that is derived from the log anew."""
    from reconciler.service.projections.maintenance import rebuild

    with open_service(Connection(service)) as opened:
        count = rebuild(opened.store)
    click.echo(f"Rebuilt {count} objects from the log.")
