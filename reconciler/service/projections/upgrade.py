"""Stores of earlier versions: upgraded before they are written to, and read as if upgraded.

What the tables of an earlier version lack is derived from the log, which every version keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from reconciler.service.domain.held import ImpossibleHistoryError
from reconciler.service.eventstore.errors import StoreUnusableError
from reconciler.service.eventstore.port import EventStore, Snapshot, Transaction
from reconciler.service.projections.rebuild import log, replace_objects, replayed


def upgrade(store: EventStore) -> None:
    """Bring a store of an earlier version up to this one, in one transaction.

    Raises:
        StoreError: its log cannot be replayed, or it cannot be written to; it was left as it is.
    """
    if not store.is_outdated():
        return
    with store.transaction() as tx, _in_words():
        if tx.upgrade():  # otherwise another process has just done it
            replace_objects(tx)


class UpgradedView:
    """A store of an earlier version, read as this version would have it. Nothing is written."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._copy: EventStore | None = None

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """Read a copy in memory, which is made at the first look.

        Raises:
            StoreError: the store cannot be read, or its log cannot be replayed.
        """
        if self._copy is None:
            with self._store.snapshot() as view, _in_words():
                self._copy = _copy_of(view)
        with self._copy.snapshot() as copied:
            yield copied

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Refuse to write, as the store does.

        Raises:
            StoreReadOnlyError: always.
        """
        return self._store.transaction()

    def is_outdated(self) -> bool:
        """Return False: what is read here is of this version."""
        return False

    def damage(self) -> list[str]:
        """Return what the store itself finds wrong with its own structure."""
        return list(self._store.damage())

    def backup(self, target: Path) -> None:
        """Copy the store, as it is, into a new file.

        Raises:
            StoreError: the file exists or cannot be written.
        """
        self._store.backup(target)

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def readable(store: EventStore) -> EventStore:
    """Return a store that is only looked at, as this version reads it."""
    return UpgradedView(store) if store.is_outdated() else store


def _copy_of(view: Snapshot) -> EventStore:
    from reconciler.service.eventstore.memory import MemoryEventStore

    copy = MemoryEventStore(lambda: 0)
    copy.load(view, list(log(view)), list(replayed(view).values()))
    return copy


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, ImpossibleHistoryError) as error:
        raise StoreUnusableError(
            f"the log of this store, which an earlier version made, cannot be replayed: {error}",
            "Restore a backup. The store was left as it is.",
        ) from error
