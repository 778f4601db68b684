"""The journals of a tree: where they are, opened for a run, and read for a plan."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.apply.journal import Journal, left_open, take_over
from reconciler.apply.sink import plain_name
from reconciler.cli.clients import wait_for_lock
from reconciler.cli.connection import Connection, is_file, store_path
from reconciler.cli.git import is_tracked
from reconciler.errors import LocalFileError
from reconciler.plan.model import Scope
from reconciler.resources.fields import Spec
from reconciler.resources.ref import ResourceRef, fold
from reconciler.state import ObservedState

JOURNAL_WAIT = 1.0  # seconds; what another run leaves open is taken over in a few milliseconds
NEW_FOR = timedelta(days=1)  # an object made within it may be the interrupted run's
_EXACT = "~"  # before the digest of a tree's exact name; no plain name has it
_SHARD = r"(\.\d+-of-\d+)?"


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
        LocalFileError: it cannot be used, or is of the repository.
    """
    path = journal_path(connection, instance, scope)
    patience = max(timeout, JOURNAL_WAIT)
    with wait_for_lock(lambda: Journal(path), patience) as journal:
        others = _others(path, journal_path(connection, instance, Scope(scope.tree)))
        for each in (path, *others):
            _refuse_tracked(each)
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


def _others(path: Path, whole: Path) -> Sequence[Path]:
    """Return the journals of the same tree under other shards, and of the whole, but for one."""
    ours = re.compile(f"{re.escape(whole.stem)}{_SHARD}{re.escape(whole.suffix)}", re.ASCII)
    found = (each for each in path.parent.iterdir() if ours.fullmatch(each.name))
    return sorted(
        each for each in found if each != path and each.is_file() and not each.is_symlink()
    )


def _refuse_tracked(path: Path) -> None:
    """Refuse a journal that a commit can bring, if it leaves something open.

    A pull request could write one, and so have the next apply move or remove secrets in the sink.
    """
    if left_open(path) and is_tracked(path):
        name = shlex.quote(str(path))
        raise LocalFileError(
            f"the journal {path} is a file of the repository",
            remedy="A journal says what a run on this machine left open, and no commit may say "
            f"that. If it is of this machine, run `git rm --cached {name}`; otherwise remove it.",
        )


def begun(connection: Connection, scope: Scope, observed: ObservedState) -> Mapping[str, Spec]:
    """Return the specs of inactive objects that a run was about to make when it was killed, by id.

    Only of objects that were made within a day: people may rely on an older one, and a journal may
    have come with the files of a repository, which are no reason to switch that one off. A journal
    that cannot be read or used has none; the apply that opens it says so.
    """
    path = journal_path(connection, observed.instance, scope)
    whole = journal_path(connection, observed.instance, Scope(scope.tree))
    specs: dict[ResourceRef, Spec] = {}
    with suppress(OSError, LocalFileError):
        for each in (*_others(path, whole), path):
            _refuse_tracked(each)
            for intent in left_open(each):
                if intent.spec is not None:
                    specs[intent.ref.key] = intent.spec
    # A journal has no id of what was still to be made, and several objects may have its name.
    return {
        held.id: specs[held.ref.key]
        for held in observed.everything
        if held.ref.key in specs and _is_new(held.created_at)
    }


def _is_new(created_at: str) -> bool:
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(created_at)
    except (ValueError, TypeError):  # the service reports no time, or none with a zone
        return False
    return age < NEW_FOR
