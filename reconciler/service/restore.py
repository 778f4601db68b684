"""Restoring a store from a backup: the backup is verified first."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from reconciler.service.eventstore.errors import StoreUnusableError
from reconciler.service.eventstore.sqlite import SqliteReadOnlyStore
from reconciler.service.eventstore.sqlite_restore import replace
from reconciler.service.projections.upgrade import readable
from reconciler.service.projections.verify import verify


def restore(backup: Path, path: Path) -> None:
    """Put a backup in the place of a store, if the backup is sound; otherwise touch nothing.

    Raises:
        StoreError: the backup is not sound, or the store is in use or cannot be written.
    """
    with closing(SqliteReadOnlyStore(backup)) as store:
        findings = verify(readable(store))
    if findings:
        raise StoreUnusableError(
            f"{backup} is damaged: {findings[0]}", "Restore another backup. Nothing was changed."
        )
    replace(backup, path)
