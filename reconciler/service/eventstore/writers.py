"""The version of the programs that write to a store.

A program that would write what an earlier one does not know, or takes for damage, has a higher
number. Its first write to a store raises the number that the store keeps, in the same transaction.
Every commit compares: a program whose number is lower than the store's writes nothing more, also
one that had the store open before. It may go on reading.
"""

from __future__ import annotations

from reconciler.service.eventstore.errors import StoreReadOnlyError

WRITERS_VERSION = 1
WRITERS = "writers"  # the name under which a store keeps the number


def require_current(found: str, own: int = WRITERS_VERSION) -> None:
    """Check that no program of a higher version than ``own`` has written to a store.

    Raises:
        StoreReadOnlyError: one has.
    """
    if int(found or 0) > own:
        raise StoreReadOnlyError(
            "a newer version of this program has written to the store (its writers have version"
            f" {found}, this program has {own})",
            "Install the newest version of this program that is used on the store. Until then it"
            " can only be read. Nothing was written.",
        )
