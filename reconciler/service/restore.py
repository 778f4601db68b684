"""Restoring a store from a backup: the backup is verified first, and the store before is kept.

A copy takes the place of a store as a whole or not at all, and never of one in use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from reconciler.resources.files import publish, publish_over, temporary_file
from reconciler.resources.process import crashpoint
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service.domain.trust import MACHINE
from reconciler.service.eventstore import sqlite_files
from reconciler.service.eventstore.errors import StoreError, StoreReadOnlyError, StoreUnusableError
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.eventstore.sqlite import SqliteReadOnlyStore
from reconciler.service.projections.maintenance import log, verify
from reconciler.service.projections.objects import project_of


class Entrance(NamedTuple):
    """A way for callers to sign in: a token, a rule of keyless login (``trust``), or a machine.

    Attributes:
        group: The command's word for its kind.
        key: Distinguishes it from a later one of its name.
    """

    group: str
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The losses of a restore: what the store that is replaced has and the backup lacks.

    Attributes:
        events: How many events; None where the store that is replaced cannot be read.
        is_other: Whether the backup is one of another instance of the service.
        secrets: Applications whose client secret will be another one than now.
        let_in_again: What was ended since the backup, and counts with it.
        shut_out: What counts now, and is not in the backup.
    """

    events: int | None
    is_other: bool = False
    secrets: tuple[ResourceRef, ...] = ()
    let_in_again: tuple[Entrance, ...] = ()
    shut_out: tuple[Entrance, ...] = ()


def restore(
    backup: Path, path: Path, approve: Callable[[Lost | None], None] = lambda _: None
) -> Path | None:
    """Put a sound backup in the place of a store; return where the store before is kept.

    Where the path is a link, the file that it leads to is replaced and kept.

    ``approve`` gets what is lost, or None where there is no store yet, and raises where that is not
    wanted. Nothing was changed then.

    Raises:
        StoreError: the backup is not sound, or the store is in use or cannot be written.
    """
    with closing(SqliteReadOnlyStore(backup)) as store:
        findings = verify(store)
    if findings:
        raise StoreUnusableError(
            f"{backup} is damaged: {findings[0]}", "Restore another backup. Nothing was changed."
        )
    approve(_lost(backup, path) if sqlite_files.has_file(path) else None)
    return _replace(backup, path.resolve() if path.is_symlink() else path)


def _lost(backup: Path, path: Path) -> Lost:
    try:
        with (
            closing(SqliteReadOnlyStore(backup)) as saved,
            closing(SqliteReadOnlyStore(path)) as held,
            saved.snapshot() as then,
            held.snapshot() as now,
        ):
            entrances, before = _entrances(now), _entrances(then)
            return Lost(
                _events_without(now, then),
                then.meta("instance") != now.meta("instance"),
                _other_secrets(now, then),
                tuple(sorted(before - entrances)),
                tuple(sorted(entrances - before)),
            )
    except (StoreError, TypeError, ValueError):  # a damaged row may hold anything
        return Lost(None)


def _events_without(now: Snapshot, then: Snapshot) -> int:
    """Return how many events one store has that another lacks.

    An event is known by its hash, which covers the chain before it. Chains that end in the same
    hash are equal.
    """
    if sorted(now.heads()) == sorted(then.heads()):
        return 0
    saved = {event.hash for event in log(then)}
    return sum(event.hash not in saved for event in log(now))


def _entrances(view: Snapshot) -> set[Entrance]:
    """Return what lets callers in, but for what has expired or was revoked."""
    moment = time.time_ns() // 1000
    tokens = [row for row in view.tokens() if not row.revoked_at]
    found = {("token", row.name, repr(row.sha256), row.expires_at) for row in tokens}
    found |= {
        ("machine" if row.kind == MACHINE else "trust", row.name, row.id, row.expires_at)
        for row in view.trusts()
    }
    return {Entrance(*each) for *each, ends in found if not ends or ends > moment}


def _other_secrets(now: Snapshot, then: Snapshot) -> tuple[ResourceRef, ...]:
    saved = {row.id: row for row in then.all_objects()}
    found = [
        row.id
        for row in now.all_objects()
        if row.secret_hash and row.id in saved and saved[row.id].secret_hash != row.secret_hash
    ]
    return tuple(sorted(_ref(saved[each], saved) for each in found))


def _ref(row: ObjectRow, rows: Mapping[str, ObjectRow]) -> ResourceRef:
    """Return the ref of an object, with the names that its owners have in the same store."""
    project = project_of(row)
    owners = rows[row.organization].name, rows[project].name if project else ""
    return ResourceRef(Kind(row.kind), *owners, row.name)


def _replace(backup: Path, target: Path) -> Path | None:
    """Put a copy of a sound store in the place of another, or at a free place.

    Return the file that keeps the store before, beside it; None where there was none.

    Raises:
        StoreError: the target is in use, is not a store of ours, or cannot be written. It was
            not touched.
    """
    if sqlite_files.has_file(target) and not sqlite_files.is_ours(target):
        raise StoreUnusableError(
            f"{target} is not a store of the identity service",
            "Name another file. This one was left as it is.",
        )
    try:
        with temporary_file(target) as (unfinished, _):
            # A crash leaves one whole store: the copy is complete before the old file gets its
            # second name, and then takes its place in one step.
            with closing(sqlite_files.connect_to_read(backup)) as source:
                sqlite_files.copy_into(unfinished, backup, source)
            crashpoint("S13")
            # A damaged store, or none, is left as it is: no process can be working with it.
            with suppress(StoreUnusableError):
                sqlite_files.recognise(target)
                sqlite_files.quiesce(target)
            kept = _keep(target)
            publish_over(unfinished, target)
            return kept
    except OSError as error:
        raise StoreReadOnlyError(
            f"{target} cannot be written: {error.strerror}",
            "Make the file and its folder writable for this user.",
        ) from error


def _keep(target: Path) -> Path | None:
    """Give a store a second name with the time in it, and take its log there, too.

    A log is left only beside a damaged store, or where the file itself was deleted; beside
    another store it would be replayed into it.
    """
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    kept = target.with_name(f"{target.name}.replaced-{moment}")
    was_there = target.exists()
    if was_there:
        publish(target, kept)
    log = sqlite_files.log_of(target)
    if log.exists():
        log.rename(kept.with_name(kept.name + sqlite_files.LOG))
    # SQLite makes the index anew.
    target.with_name(target.name + sqlite_files.INDEX).unlink(missing_ok=True)
    return kept if was_there else None
