"""Locks of a run: on its organizations in the service, and on the journal of its tree on disk.

Both are taken before the first write and kept to the end of the command.
"""

from __future__ import annotations

import hashlib
import re
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from reconciler.apply.journal import Journal, tree_of
from reconciler.apply.recovery import take_over
from reconciler.apply.sink import plain_name
from reconciler.cli.connection import Connection, is_file, store_path
from reconciler.cli.output import hint
from reconciler.errors import LockHeldError
from reconciler.plan.model import Scope
from reconciler.report.visible import visible
from reconciler.resources.ref import fold
from reconciler.service_client.port import ServiceClient

T = TypeVar("T")

RETRY_SECONDS = 0.5
JOURNAL_WAIT = 1.0  # seconds; what another run leaves open is taken over in a few milliseconds
_EXACT = "~"  # before the digest of a tree's exact name; no plain name has it
_SHARD = r"(\.\d+-of-\d+)?"


@contextmanager
def locked(client: ServiceClient, organizations: Collection[str], timeout: float) -> Iterator[None]:
    """Hold the lock of organizations, waiting for it as long as was asked.

    Raises:
        LockHeldError: another run still holds it.
    """
    wait_for_lock(lambda: client.acquire(organizations), timeout)
    try:
        yield
    finally:
        client.release()


def wait_for_lock(take: Callable[[], T], timeout: float) -> T:
    """Return what can be taken once no other run has it, waiting as long as was asked.

    Raises:
        LockHeldError: another run still has it.
    """
    deadline = time.monotonic() + timeout
    is_waiting = False
    while True:
        try:
            return take()
        except LockHeldError as failure:
            if time.monotonic() >= deadline:
                raise
            if not is_waiting:
                hint(f"Waiting, at most {timeout:g} s: {visible(failure.problem)}.")
                is_waiting = True
            time.sleep(RETRY_SECONDS)


@contextmanager
def open_journal(
    connection: Connection,
    instance: str,
    scope: Scope,
    organizations: Collection[str],
    timeout: float,
) -> Iterator[Journal]:
    """Open the journal of a run, with all that was left open in the organizations it looks after.

    Raises:
        LockHeldError: another run still uses it, after as long a wait as was asked.
        LocalFileError: it cannot be used.
    """
    path = journal_path(connection, instance, scope)
    patience = max(timeout, JOURNAL_WAIT)
    with wait_for_lock(lambda: Journal(path, scope.tree), patience) as journal:
        others = _others(
            path, journal_path(connection, instance, Scope(tree=scope.tree)), scope.tree
        )
        wait_for_lock(lambda: take_over(journal, others, organizations), patience)
        yield journal


def journal_path(connection: Connection, instance: str, scope: Scope) -> Path:
    """Return where the journal of a tree or shard against a service is kept: beside its store.

    What is in no file of this machine has its journal in the state folder of its environment.
    """
    service = connection.service
    folder = store_path(service).parent if is_file(service) else connection.state
    name = plain_name([scope.tree])
    if scope.tree != fold(scope.tree):
        # On some disks file names that differ in case alone are one file.
        name += _EXACT + hashlib.sha256(scope.tree.encode()).hexdigest()[:16]
    shard = f".{scope.shard.index}-of-{scope.shard.count}" if scope.shard else ""
    return folder / f"apply-{instance}-{name}{shard}.jsonl"


def _others(path: Path, whole: Path, tree: str) -> Sequence[Path]:
    """Return the journals of the same tree under other shards, and of the whole, but for one.

    Versions before gave trees whose names differ in case alone one journal, and no tree at its
    head. Such a journal may be of this tree, too.
    """
    stems = {whole.stem, whole.stem.partition(_EXACT)[0]}
    names = "|".join(map(re.escape, sorted(stems)))
    ours = re.compile(f"(?:{names}){_SHARD}{re.escape(whole.suffix)}", re.ASCII)
    found = (each for each in path.parent.iterdir() if ours.fullmatch(each.name))
    journals = (each for each in found if each != path and stat.S_ISREG(each.lstat().st_mode))
    return sorted(each for each in journals if tree_of(each) in {"", tree})
