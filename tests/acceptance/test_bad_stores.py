"""Stores that cannot be used: a clear error, exit 1, and the file untouched."""

from __future__ import annotations

import re
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.eventstore.rows import event_hash
from reconciler.service.eventstore.sqlite import SqliteReadOnlyStore
from tests.acceptance.conftest import Run, an_action, write
from tests.program import environment

COMMANDS = [
    pytest.param(["plan"], id="plan"),
    pytest.param(["apply", "--auto-approve"], id="apply"),
    pytest.param(["store", "verify"], id="verify"),
    pytest.param(["outputs"], id="outputs"),
    pytest.param(["serve", "--listen", "127.0.0.1:0"], id="serve"),
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("is_ours", [True, False], ids=["half a store", "a text file"])
def test_what_is_no_sound_store_is_refused_and_left_as_it_is(
    run: Run, small: Path, command: list[str], *, is_ours: bool
) -> None:
    """Nobody's file is overwritten, and no half of a store is trusted."""
    store = write(small.parent / ".reconciler" / "identity.db", "these are my notes\n" * 500)
    if is_ours:
        store.unlink()
        run("apply", "--auto-approve")
        store.write_bytes(store.read_bytes()[: store.stat().st_size // 2])
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
def test_a_store_that_may_not_grow_is_told_and_stays_sound(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """Nothing is half written, and once it may grow again everything goes on.

    SQLite calls a limit of the process an I/O error. What it says of a full disk is tried where
    that is made: in the unit tests of the store's files, and by the row of failing disks.
    """
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
    assert "Check the disk" in full.stdout + full.stderr
    assert run("store", "verify").code == 0
    assert run("apply", "--auto-approve").code == 0
    assert run("plan", "--detailed-exitcode").code == 0


def _long_script(number: int) -> str:
    return f"function a{number}() {{ /* {'x' * 1500} */ }}"


def test_a_log_of_a_newer_version_is_not_rebuilt(run: Run, small: Path) -> None:
    """Its events are not known here; what the newer version derived from them stays."""
    write(small / "greet.yaml", an_action("greet"))
    assert run("apply", "--auto-approve").code == 0
    path = small.parent / ".reconciler" / "identity.db"
    with closing(SqliteReadOnlyStore(path)) as store, store.snapshot() as view:
        last = view.read_all()[-1]._replace(type="action.praised")
    with closing(sqlite3.connect(path)) as file:  # of which the chain is sound
        end = (event_hash(last), last.hash)
        file.execute("UPDATE heads SET hash = ? WHERE hash = ?", end)
        file.execute("UPDATE events SET type = 'action.praised', hash = ? WHERE hash = ?", end)
        file.commit()

    refused = run("store", "rebuild")

    assert (refused.code, "Traceback" in refused.err) == (1, False)
    assert "the log of this store cannot be replayed: event" in refused.err
    assert "a newer version of this tool" in refused.err
    assert "No changes." in run("plan").out


DAMAGES = {
    "another script": (
        "UPDATE {}events SET payload = replace(payload, 'ctx, api', 'mallory')",
        "is not what was written",
        "Action greet (id [0-9]+) was replaced by what the log says",
    ),
    "another name": (
        "UPDATE {}events SET payload = replace(payload, '\"greet\"', '\"mallory\"')",
        "is not what was written",
        "Action greet (id [0-9]+) was replaced by what the log says",
    ),
    "an event that cannot be read": (
        "UPDATE {}events SET payload = '{{}}' WHERE type = 'action.added'",
        "is not what was written",
        "Action greet (id [0-9]+) was left as it is: event [0-9]+ is of an unknown form",
    ),
    "an event that is gone": (
        "DELETE FROM {}events WHERE type = 'action.added'",
        "does not follow the one before it",
        "Action greet (id [0-9]+) is gone: the log does not have it",
    ),
    "a name twice": (
        "UPDATE {}events SET payload = replace(payload, '\"spa\"', '\"web\"')",
        "is not what was written",
        "OidcApplication (web|spa) (id [0-9]+) is gone: the name is also that of id [0-9]+",
    ),
}
EACH_DAMAGE = pytest.mark.parametrize(
    ("statement", "finding", "loss"), DAMAGES.values(), ids=DAMAGES.keys()
)


def spoil(store: Path, statement: str) -> None:
    """Change a store behind the program's back."""
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute(statement.format("")).rowcount > 0
        connection.commit()


def check_rebuild(run: Run, damage: tuple[str, str], loss: str, **here: str) -> None:
    """Check that a damaged log is refused, and used all the same where that is asked for.

    ``damage`` is what was held before, as an export, and a finding.
    """
    before, finding = damage
    refused = run("store", "rebuild", **here)
    untouched = run("export", **here).out
    rebuilt = run("store", "rebuild", "--damaged", **here)

    assert refused.code == 1, refused.all
    assert finding in refused.err
    assert "Error: the log of this store is damaged: " in refused.err
    assert untouched == before
    assert rebuilt.code == 0, rebuilt.all
    assert finding in rebuilt.err
    assert re.search(f"^lost  {loss.replace(' (id', ' [(]id').replace('+) ', '+[)] ')}$",
                     rebuilt.err, re.MULTILINE), rebuilt.err  # fmt: skip
    assert "objects from the log." in rebuilt.out
    assert run("store", "verify", **here).code == 1
    assert run("plan", **here).code == 0


@EACH_DAMAGE
def test_a_damaged_log_is_not_made_the_truth(
    run: Run, small: Path, statement: str, finding: str, loss: str
) -> None:
    """The objects are right, and what is left of the log would replace them."""
    assert run("apply", "--auto-approve").code == 0
    before = run("export").out
    spoil(small.parent / ".reconciler" / "identity.db", statement)

    check_rebuild(run, (before, finding), loss)


def test_objects_that_are_not_what_the_log_says_are_rebuilt(run: Run, small: Path) -> None:
    """Only the log is verified before: the objects are what a rebuild is for."""
    assert run("apply", "--auto-approve").code == 0
    before = run("export").out
    store = small.parent / ".reconciler" / "identity.db"
    spoil(store, "UPDATE objects SET spec = '{{}}' WHERE kind = 'Action'")
    spoil(store, "DELETE FROM objects WHERE kind = 'IdpJwtConfig'")
    assert run("store", "verify").code == 1

    rebuilt = run("store", "rebuild")

    assert (rebuilt.code, rebuilt.out, rebuilt.err) == (0, "Rebuilt 6 objects from the log.\n", "")
    assert run("store", "verify").code == 0
    assert run("export").out == before


@pytest.mark.parametrize(
    "statement",
    [*(damage[0] for damage in DAMAGES.values()), "DELETE FROM objects WHERE kind = 'Action'"],
    ids=[*DAMAGES, "an object that is gone"],
)
def test_a_damaged_store_is_not_backed_up(run: Run, small: Path, statement: str) -> None:
    """A backup that no restore takes is found out when it is needed."""
    assert run("apply", "--auto-approve").code == 0
    spoil(small.parent / ".reconciler" / "identity.db", statement)
    files = {path.name for path in small.parent.iterdir()}

    refused = run("store", "backup", "copy.db")
    left = {path.name for path in small.parent.iterdir()}
    saved = run("store", "backup", "copy.db", "--damaged")

    assert refused.code == 1
    assert refused.err.startswith("damaged  ")
    assert "Error: this store is damaged: " in refused.err
    assert left == files
    assert saved.code == 0, saved.all
    assert saved.err.startswith("damaged  ")
    assert "`store restore` refuses it" in saved.out
    assert run("store", "restore", "copy.db", "--auto-approve").code == 1
    assert run("store", "verify", "--service", "sqlite:copy.db").code == 1


def test_a_sound_store_is_told_no_damage(run: Run, small: Path) -> None:
    assert run("apply", "--auto-approve").code == 0

    rebuilt = run("store", "rebuild", "--damaged")
    saved = run("store", "backup", "copy.db", "--damaged")

    assert (rebuilt.code, rebuilt.out, rebuilt.err) == (0, "Rebuilt 6 objects from the log.\n", "")
    assert (saved.code, saved.err) == (0, "")
    assert "damaged" not in saved.out


def test_many_findings_are_counted(run: Run, small: Path) -> None:
    for number in range(30):
        write(small / f"a{number}.yaml", an_action(f"a{number}"))
    assert run("apply", "--auto-approve").code == 0
    spoil(small.parent / ".reconciler" / "identity.db", "UPDATE {}events SET writer = 'nobody'")

    refused = run("store", "backup", "copy.db")

    assert refused.err.count("damaged  ") == 20
    assert re.search("^[.]{3} and [0-9]+ more: `reconciler store verify` shows all$", refused.err,
                     re.MULTILINE)  # fmt: skip
