"""Stores that cannot be used: a clear error, exit 1, and the file untouched."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_action, write
from tests.program import environment

COMMANDS = [
    pytest.param(["plan"], id="plan"),
    pytest.param(["apply", "--auto-approve"], id="apply"),
    pytest.param(["store", "verify"], id="verify"),
    pytest.param(["outputs"], id="outputs"),
]


def a_text_file(path: Path) -> None:
    path.write_text("these are my notes\n" * 500)


def a_database_of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
        other.commit()


def a_store_of_a_newer_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as store:
        store.execute("PRAGMA user_version = 9999")


def a_truncated_store(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def a_store_of_zeroes(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "spoil",
    [
        a_text_file,
        a_database_of_another_program,
        a_store_of_a_newer_version,
        a_truncated_store,
        a_store_of_zeroes,
    ],
)
def test_what_is_no_sound_store_is_refused_and_left_as_it_is(
    run: Run, small: Path, command: list[str], spoil: object
) -> None:
    """Nobody's database is overwritten, and no half of a store is trusted."""
    store = small.parent / ".reconciler" / "identity.db"
    store.parent.mkdir()
    if spoil in {a_store_of_a_newer_version, a_truncated_store, a_store_of_zeroes}:
        store.parent.rmdir()
        run("apply", "--auto-approve")
    assert callable(spoil)
    spoil(store)
    before = store.read_bytes()

    refused = run(*command)

    assert refused.code == 1
    assert "Error:" in refused.err
    assert store.read_bytes() == before


@pytest.mark.parametrize(
    "command",
    [
        *COMMANDS,
        pytest.param(["drift"], id="drift"),
        pytest.param(["store", "rebuild"], id="rebuild"),
        pytest.param(["token", "list"], id="token"),
        pytest.param(["serve", "--listen", "127.0.0.1:0"], id="serve"),
    ],
)
@pytest.mark.parametrize(
    "store", [pytest.param("loop/x.db", id="loop"), pytest.param("x" * 300, id="long")]
)
def test_a_store_that_cannot_be_looked_for_is_an_error_and_not_a_missing_one(
    run: Run, small: Path, command: list[str], store: str
) -> None:
    """The folder of a store is for its owner alone: another user cannot see what is in it.

    Root may enter every folder. A link to itself and a name that is too long stand for it here.
    """
    (small.parent / "loop").symlink_to("loop")

    refused = run(*command, RECONCILER_SERVICE=f"sqlite:{store}")

    assert refused.code == 1, refused.all
    assert refused.err.startswith("Error: ")
    assert "Traceback" not in refused.err


def test_a_folder_that_cannot_be_written_to_is_told(run: Run, small: Path) -> None:
    """The message names the folder, not an exception."""
    (small.parent / "file").write_text("")

    refused = run("apply", "--auto-approve", "--service", "sqlite:file/identity.db")

    assert refused.code == 1
    assert "file" in refused.err


@pytest.mark.untraced
def test_a_full_disk_is_told_and_the_store_stays_sound(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """Nothing is half written, and with room again everything goes on."""
    run("apply", "--auto-approve")
    for number in range(300):
        write(small / f"a{number}.yaml", an_action(f"a{number}", script=_long_script(number)))
    store = small.parent / ".reconciler" / "identity.db"
    room = store.stat().st_size + 40_000

    full = subprocess.run(
        [sys.executable, "-m", "reconciler", "apply", "--auto-approve"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )

    assert full.returncode in {1, 5}
    assert "Traceback" not in full.stderr
    assert "room" in full.stdout + full.stderr or "full" in full.stdout + full.stderr
    assert run("store", "verify").code == 0
    assert run("apply", "--auto-approve").code == 0
    assert run("plan", "--detailed-exitcode").code == 0


def _long_script(number: int) -> str:
    return f"function a{number}() {{ /* {'x' * 1500} */ }}"


def test_backup_and_restore_bring_back_what_was_held(run: Run, small: Path, tmp_path: Path) -> None:
    """A backup is only as good as its restore."""
    run("apply", "--auto-approve")
    assert run("store", "backup", "saved.db").code == 0
    write(small / "late.yaml", an_action("late"))
    run("apply", "--auto-approve")

    assert run("store", "backup", "saved.db").code == 1
    assert run("store", "restore", "saved.db", "--auto-approve").code == 0

    plan = run("plan", "--format", "json").json
    assert [change["ref"]["name"] for change in plan["changes"]] == ["late"]
    assert run("store", "verify").code == 0


def test_a_bad_backup_is_not_restored(run: Run, small: Path, tmp_path: Path) -> None:
    """A restore verifies first and touches nothing when the backup is unsound."""
    run("apply", "--auto-approve")
    run("store", "backup", "saved.db")
    saved = tmp_path / "saved.db"
    saved.write_bytes(saved.read_bytes()[:9000])

    assert run("store", "restore", "saved.db", "--auto-approve").code == 1
    assert run("plan", "--detailed-exitcode").code == 0


def test_a_log_of_a_newer_version_is_not_rebuilt(run: Run, small: Path) -> None:
    """Its events are not known here; what the newer version derived from them stays."""
    write(small / "greet.yaml", an_action("greet"))
    assert run("apply", "--auto-approve").code == 0
    with closing(sqlite3.connect(small.parent / ".reconciler" / "identity.db")) as store:
        store.execute("UPDATE events SET type = 'action.praised' WHERE type = 'action.added'")
        store.commit()

    refused = run("store", "rebuild")

    assert (refused.code, "Traceback" in refused.err) == (1, False)
    assert "the log of this store cannot be replayed: event" in refused.err
    assert "a newer version of this tool" in refused.err
    assert "No changes." in run("plan").out


def test_rebuild_gives_the_same_plan(run: Run, small: Path) -> None:
    """Everything shown is derived from the log."""
    run("apply", "--auto-approve")

    assert run("store", "rebuild").code == 0
    assert run("plan", "--detailed-exitcode").code == 0
