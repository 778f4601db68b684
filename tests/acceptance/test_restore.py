"""What cannot be undone asks for the word yes, and says what it costs."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Place, Run, an_action, write
from tests.program import environment


def typed(folder: Path, answer: str, *arguments: str) -> tuple[int, str]:
    """Run the program in a terminal in which an answer is typed; return exit code and stderr."""
    here, there = pty.openpty()
    os.write(here, f"{answer}\n".encode())
    try:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", *arguments],
            cwd=folder, env=environment(), stdin=there, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(here)
        os.close(there)
    return done.returncode, done.stderr


def secret_of(folder: Path) -> bytes:
    return (folder / ".reconciler" / "secrets" / "acme.shop.web.json").read_bytes()


def kept_in(folder: Path) -> list[Path]:
    """Return the stores that restores have replaced."""
    found = sorted((folder / ".reconciler").glob("identity.db.replaced-*"))
    assert all(re.search(r"\.replaced-\d{8}T\d{6}\.\d{6}Z$", path.name) for path in found)
    return found


def test_a_rotation_asks_for_the_word_yes(place: Place) -> None:
    """Without a terminal it refuses; nothing was written."""
    assert place.run("apply", "--auto-approve").code == 0
    before = secret_of(place.folder)

    refused = place.run("secret", "rotate", "acme/shop/web")

    assert refused.code == 1
    assert "there is no terminal to ask whether to replace this client secret" in refused.err
    assert "Give --auto-approve" in refused.err
    assert secret_of(place.folder) == before
    assert place.run("secret", "rotate", "acme/shop/web", "--auto-approve").code == 0
    assert secret_of(place.folder) != before


@pytest.mark.parametrize(("answer", "code"), [("no", 1), ("y", 1), ("", 1), ("yes", 0)])
def test_only_the_word_yes_will_do(run: Run, small: Path, answer: str, code: int) -> None:
    """The question says which application, and what ends."""
    assert run("apply", "--auto-approve").code == 0
    before = secret_of(small.parent)

    left, told = typed(small.parent, answer, "secret", "rotate", "acme/shop/web")

    assert left == code, told
    assert "OidcApplication acme/shop/web  (client id " in told
    assert "Its client secret ends at once" in told
    assert "Replace this client secret? Only the word yes will do:" in told
    assert (secret_of(small.parent) == before) is (code == 1)


def test_what_a_killed_restore_left_is_removed_by_the_next(run: Run, small: Path) -> None:
    """A copy of a store is as large as the store, and holds what the store holds."""
    folder = small.parent / ".reconciler"
    assert run("apply", "--auto-approve").code == 0
    assert run("store", "backup", "copy.db").code == 0
    restoring = ("store", "restore", "copy.db", "--auto-approve")
    before = {path.name for path in folder.iterdir()}
    assert run(*restoring, RECONCILER_CRASHPOINT="S13").code == -signal.SIGKILL
    (left,) = {path.name for path in folder.iterdir()} - before
    (folder / f"{left}-journal").touch()
    writing = folder / f".identity.db.{'0' * 16}"
    others = [folder / ".identity.db.x", folder / ".other.db.0123456789abcdef"]
    for path in (writing, *others):
        path.touch()

    with writing.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run(*restoring).code == 0
        names = {path.name for path in folder.iterdir()}

    assert left not in names
    assert f"{left}-journal" not in names
    assert {writing.name, *(path.name for path in others)} <= names
    assert run("store", "verify").code == 0


def test_a_restore_tells_what_is_lost_asks_and_keeps_the_store_before(
    run: Run, small: Path
) -> None:
    """Events since the backup, and the secrets with which the sink no longer fits."""
    folder = small.parent
    assert run("apply", "--auto-approve").code == 0
    assert run("store", "backup", "saved.db").code == 0
    write(small / "late.yaml", an_action("late"))
    assert run("apply", "--auto-approve").code == 0
    assert run("secret", "rotate", "acme/shop/web", "--auto-approve").code == 0
    count = run("store", "verify", "--format", "json").json["events"]

    refused = run("store", "restore", "saved.db")
    left, told = typed(folder, "no", "store", "restore", "saved.db")

    assert (refused.code, left) == (1, 1)
    assert "there is no terminal to ask whether to restore this backup" in refused.err
    assert "Lost: 2 event(s) that the store has and the backup lacks." in refused.err + told
    assert kept_in(folder) == []
    assert run("store", "verify", "--format", "json").json["events"] == count

    restored = run("store", "restore", "saved.db", "--auto-approve")

    (kept,) = kept_in(folder)
    assert restored.code == 0
    assert "Lost: 2 event(s)" in restored.err
    assert "Sinks no longer fit" in restored.err
    assert "\n  acme/shop/web\n" in restored.err
    assert f"The store before is kept in .reconciler/{kept.name}." in restored.out
    before = run("store", "verify", "--format", "json", "--service", f"sqlite:{kept}")
    assert before.json == {"sound": True, "events": count, "findings": []}
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_restore_that_takes_nothing_back_says_so(run: Run, small: Path) -> None:
    """The backup has every event, and every sink fits."""
    assert run("apply", "--auto-approve").code == 0
    assert run("store", "backup", "saved.db").code == 0

    restored = run("store", "restore", "saved.db", "--auto-approve")

    assert restored.code == 0
    assert "Lost: 0 event(s)" in restored.err
    assert "Sinks" not in restored.err


def test_a_restore_names_who_is_let_in_again_and_who_no_longer(run: Run, small: Path) -> None:
    """A token that leaked and was revoked counts again, which no event of the log tells."""
    assert run("apply", "--auto-approve").code == 0
    token = ("token", "create", "--role", "viewer", "--name")
    rule = ("trust", "add", "--preset", "gitlab", "--role", "viewer", "--claim", "project_id=1")
    machine = ("machine", "add", "--role", "viewer", "--key-out")
    for name in ("leaked", "stays", "replaced"):
        assert run(*token, name).code == 0
    assert run(*rule, "old").code == 0
    assert run(*machine, "m.json", "robot").code == 0
    assert run("store", "backup", "saved.db").code == 0
    for name in ("leaked", "replaced"):
        assert run("token", "revoke", name).code == 0
    for name in ("replaced", "later"):
        assert run(*token, name).code == 0
    assert run("trust", "remove", "old").code == 0
    assert run("machine", "remove", "robot").code == 0
    assert run(*rule, "new").code == 0

    restored = run("store", "restore", "saved.db", "--auto-approve")

    assert restored.code == 0, restored.all
    assert restored.err.splitlines()[1:] == [
        "These were ended since the backup, and let callers in again. To end them once more:",
        "  reconciler machine remove robot",
        "  reconciler token revoke leaked",
        "  reconciler token revoke replaced",
        "  reconciler trust remove old",
        "These were made since the backup, and no longer count:",
        "  token later",
        "  token replaced",
        "  trust new",
    ]


def test_a_backup_of_another_instance_is_told(run: Run, small: Path) -> None:
    """Restoring staging over production loses everything that production has."""
    assert run("apply", "--auto-approve").code == 0
    other = ("--service", "sqlite:other/identity.db")
    assert run("apply", "--auto-approve", *other).code == 0
    assert run("store", "backup", "saved.db", *other).code == 0
    count = run("store", "verify", "--format", "json").json["events"]

    restored = run("store", "restore", "saved.db", "--auto-approve")

    assert restored.code == 0
    assert "The backup is of another instance of the service" in restored.err
    assert f"Lost: {count} event(s)" in restored.err


def test_a_damaged_store_is_replaced_and_kept(run: Run, small: Path) -> None:
    """What is lost cannot be told; the file is there for whoever can."""
    assert run("apply", "--auto-approve").code == 0
    assert run("store", "backup", "saved.db").code == 0
    store = small.parent / ".reconciler" / "identity.db"
    store.write_bytes(store.read_bytes()[:9000])
    damaged = store.read_bytes()

    restored = run("store", "restore", "saved.db", "--auto-approve")

    assert restored.code == 0, restored.all
    assert "cannot be read, so it is not known what is lost" in restored.err
    assert kept_in(small.parent)[0].read_bytes() == damaged
    assert run("store", "verify").code == 0


def test_where_there_was_no_store_a_restore_asks_nothing(run: Run, small: Path) -> None:
    """Nothing is lost."""
    assert run("apply", "--auto-approve").code == 0
    assert run("store", "backup", "saved.db").code == 0

    restored = run("store", "restore", "saved.db", "--service", "sqlite:new.db")

    assert restored.code == 0, restored.all
    assert "kept" not in restored.out
