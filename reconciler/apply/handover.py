"""Taking over what a run of another shard left open.

The number of shards changes, and a run may be made without any. What an interrupted run left
open would be forgotten with its journal if only a run of the very same shard looked at it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from reconciler.apply.journal import Intent, Journal, left_open
from reconciler.resources.crashpoint import crashpoint
from reconciler.resources.ref import fold


def take_over(journal: Journal, others: Iterable[Path], organizations: Collection[str]) -> None:
    """Move what other journals of the tree leave open of these organizations into this one.

    Whoever calls holds the lock of the organizations, so no run that could still end them is on
    its way. A crash in between leaves an intent in both, which is ended twice and done once.

    Raises:
        LockHeldError: such a journal is in use.
        LocalFileError: a journal cannot be read or written.
    """
    names = {fold(name) for name in organizations}

    def ours(intents: Iterable[Intent]) -> list[Intent]:
        return [intent for intent in intents if intent.ref.key.organization in names]

    for path in others:
        if not ours(left_open(path)):
            continue
        with Journal(path) as other:
            found = ours(other.open_intents)
            journal.begin(found)
            crashpoint("C14")
            other.end([intent.key for intent in found])
