"""Restoring a store from a backup: the backup is verified first, and the store before is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service.eventstore.errors import StoreError, StoreUnusableError
from reconciler.service.eventstore.port import Snapshot
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.eventstore.sqlite import SqliteReadOnlyStore
from reconciler.service.eventstore.sqlite_restore import replace
from reconciler.service.projections.maintenance import log, verify
from reconciler.service.projections.upgrade import readable


@dataclass(frozen=True, slots=True)
class Lost:
    """The losses of a restore: what the store that is replaced has and the backup lacks.

    Attributes:
        events: How many events; None where the store that is replaced cannot be read.
        is_other: Whether the backup is one of another instance of the service.
        secrets: Applications whose client secret will be another one than now.
    """

    events: int | None
    is_other: bool = False
    secrets: tuple[ResourceRef, ...] = ()


def restore(
    backup: Path, path: Path, approve: Callable[[Lost | None], None] = lambda _: None
) -> Path | None:
    """Put a sound backup in the place of a store; return where the store before is kept.

    ``approve`` is told what is lost, or None where there is no store yet, and raises where that is
    not wanted. Nothing was changed then.

    Raises:
        StoreError: the backup is not sound, or the store is in use or cannot be written.
    """
    with closing(readable(SqliteReadOnlyStore(backup))) as store:
        findings = verify(store)
    if findings:
        raise StoreUnusableError(
            f"{backup} is damaged: {findings[0]}", "Restore another backup. Nothing was changed."
        )
    approve(_lost(backup, path) if path.exists() else None)
    return replace(backup, path)


def _lost(backup: Path, path: Path) -> Lost:
    try:
        with (
            closing(readable(SqliteReadOnlyStore(backup))) as saved,
            closing(readable(SqliteReadOnlyStore(path))) as held,
            saved.snapshot() as then,
            held.snapshot() as now,
        ):
            return Lost(
                _events_without(now, then),
                then.meta("instance") != now.meta("instance"),
                _other_secrets(now, then),
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


def _other_secrets(now: Snapshot, then: Snapshot) -> tuple[ResourceRef, ...]:
    saved = {row.id: row for row in then.all_objects()}
    found = [
        row.id
        for row in now.all_objects()
        if row.secret_hash and row.id in saved and saved[row.id].secret_hash != row.secret_hash
    ]
    return tuple(sorted(_ref(saved[each], saved) for each in found))


def _ref(row: ObjectRow, rows: Mapping[str, ObjectRow]) -> ResourceRef:
    """Return the ref of an application, with the names that its owners have in the same store."""
    owner, project = rows[row.organization].name, rows[row.parent].name
    return ResourceRef(Kind.OIDC_APPLICATION, owner, project, row.name)
