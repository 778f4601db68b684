"""Locks of a run, by a clock that nothing sets; and the journals that a run looks at."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.journal import Intent, Journal, tree_of
from reconciler.cli import locks
from reconciler.cli.connection import Connection
from reconciler.cli.locks import journal_path, locked, open_journal
from reconciler.errors import LockHeldError
from reconciler.plan.model import Scope
from reconciler.resources.ref import Kind, ResourceRef, Shard


class Held:
    """A service whose lock somebody gives back after so many tries; None is never."""

    def __init__(self, tries: int | None = None) -> None:
        self.left = tries
        self.log: list[str] = []

    def acquire(self, organizations: Any) -> None:
        self.log.append("acquire")
        if self.left == 0:
            return
        self.left = None if self.left is None else self.left - 1
        raise LockHeldError("acme is locked by\x1b[2J somebody", remedy="Wait.")

    def release(self) -> None:
        self.log.append("release")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again soon."""
    monkeypatch.setattr(locks, "RETRY_SECONDS", 0.01)


def wait_for(client: Any, timeout: float) -> None:
    with locked(client, ["acme"], timeout):
        client.log.append("work")


def test_a_lock_that_is_held_is_not_waited_for_unasked() -> None:
    """The default is to say who holds it, and to go."""
    client = Held()

    with pytest.raises(LockHeldError):
        wait_for(client, 0)

    assert client.log == ["acquire"]


def test_a_lock_is_waited_for_and_given_back(capsys: pytest.CaptureFixture[str]) -> None:
    """Who waits is told once for whom; what that is called cannot command the terminal."""
    client = Held(tries=3)

    wait_for(client, 60)

    assert client.log == [*["acquire"] * 4, "work", "release"]
    assert (
        capsys.readouterr().err == "Waiting, at most 60 s: acme is locked by\\u{1b}[2J somebody.\n"
    )


@pytest.mark.parametrize("step", [-3600.0, 3600.0], ids=["back", "on"])
def test_a_clock_that_is_set_changes_nothing_about_the_waiting(
    monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """Set back, the command would hang for an hour; set on, it would give up at once."""
    hours = itertools.accumulate(itertools.repeat(step), initial=time.time())
    monkeypatch.setattr(time, "time", lambda: next(hours))
    client = Held(tries=100)
    began = time.monotonic()

    with pytest.raises(LockHeldError):
        wait_for(client, 0.1)

    assert 0.1 <= time.monotonic() - began < 10
    assert len(client.log) > 1


def test_the_lock_is_given_back_whatever_happens() -> None:
    """A command that fails does not keep the next one out."""
    client: Any = Held(tries=0)

    with pytest.raises(ZeroDivisionError), locked(client, ["acme"], 0):
        raise ZeroDivisionError

    assert client.log == ["acquire", "release"]


REF = ResourceRef(Kind.ACTION, "acme", "", "greet")
INTENT = Intent("create", "key", REF, owes_secret=False, spec={})


@pytest.fixture
def service(tmp_path: Path) -> Connection:
    return Connection(f"sqlite:{tmp_path}/identity.db")


def left_to(service: Connection, scope: Scope) -> list[str]:
    """Return the keys that a run of this scope finds open, and leave them there."""
    with open_journal(service, "1", scope, ["acme"], 0) as journal:
        return [intent.key for intent in journal.open_intents]


def test_trees_that_differ_in_case_have_journals_of_their_own(service: Connection) -> None:
    """Also on a disk that ignores the case of file names."""
    trees = ["prod", "Prod", "PROD", "pr\u00f6d", "Pr\u00f6d", "prod~x", "default"]
    paths = {journal_path(service, "1", Scope(tree=tree)).name.casefold() for tree in trees}

    assert len(paths) == len(trees)
    with open_journal(service, "1", Scope("Prod"), ["acme"], 0) as journal:
        journal.begin([INTENT])
    assert left_to(service, Scope("prod")) == []
    assert left_to(service, Scope("PROD")) == []
    assert left_to(service, Scope("Prod", shard=Shard(1, 1))) == ["key"]


@pytest.mark.parametrize("shard", [None, Shard(1, 1)])
def test_what_a_shared_journal_of_an_older_version_holds_open_is_not_lost(
    service: Connection, shard: Shard | None
) -> None:
    """It has no tree at its head, so it may be of either tree: the next run ends it."""
    with Journal(journal_path(service, "1", Scope("prod", shard=shard))) as journal:
        journal.begin([INTENT])
    assert tree_of(journal_path(service, "1", Scope("prod", shard=shard))) == ""

    assert left_to(service, Scope("Prod")) == ["key"]
    assert left_to(service, Scope("prod", shard=shard)) == []


@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b"[1]\n", b'{"tree": 1}', b"\xff" * 9])
def test_a_head_that_cannot_be_read_names_no_tree(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(content)

    assert tree_of(path) == ""
    assert tree_of(tmp_path / "missing") == ""
