"""Where the journals of a tree are, and having the right one for the length of a run."""

from __future__ import annotations

import re
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reconciler.apply.durable import STATE_FOLDER
from reconciler.apply.handover import take_over
from reconciler.apply.journal import Journal
from reconciler.apply.sink import plain_name
from reconciler.cli.addresses import is_file, store_path
from reconciler.cli.locking import patiently
from reconciler.plan.model import Scope

BRIEF = 1.0  # seconds; what another run leaves open is taken over in a few milliseconds
_SHARD = r"(\.\d+-of-\d+)?"


@contextmanager
def open_journal(
    service: str, instance: str, scope: Scope, organizations: Collection[str], timeout: float
) -> Iterator[Journal]:
    """Open the journal of a run, with all that was left open in the organizations it looks after.

    Raises:
        LockHeldError: another run still uses it, after as long a wait as was asked.
        LocalFileError: it cannot be used.
    """
    path = journal_path(service, instance, scope)
    patience = max(timeout, BRIEF)
    with patiently(lambda: Journal(path), patience) as journal:
        others = _others(path, journal_path(service, instance, Scope(tree=scope.tree)))
        patiently(lambda: take_over(journal, others, organizations), patience)
        yield journal


def journal_path(service: str, instance: str, scope: Scope) -> Path:
    """Return where the journal of a tree or shard against a service is kept: beside its store.

    What is in no file of this machine has its journal in the state folder.
    """
    folder = store_path(service).parent if is_file(service) else Path(STATE_FOLDER)
    shard = f".{scope.shard.index}-of-{scope.shard.count}" if scope.shard else ""
    return folder / f"apply-{instance}-{plain_name([scope.tree])}{shard}.jsonl"


def _others(path: Path, whole: Path) -> Sequence[Path]:
    """Return the journals of the same tree under other shards, and of the whole, but for one."""
    ours = re.compile(re.escape(whole.stem) + _SHARD + re.escape(whole.suffix), re.ASCII)
    found = (each for each in path.parent.iterdir() if ours.fullmatch(each.name))
    return sorted(each for each in found if each != path and stat.S_ISREG(each.lstat().st_mode))
