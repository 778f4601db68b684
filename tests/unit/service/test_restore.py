"""Backups are restored whole, verified before, and never under the users of a store."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.eventstore.errors import StoreBusyError, StoreUnusableError
from reconciler.service.eventstore.sqlite import SqliteReadOnlyStore
from reconciler.service.projections.maintenance import verify
from reconciler.service.restore import restore
from tests.examples import Clock
from tests.unit.service.asking import Asking
from tests.unit.service.stored import SPOILT, contents


@pytest.fixture
def path(filled: Path) -> Path:
    """Return the path of a store with something in it."""
    return filled


def test_a_backup_is_taken_while_the_store_is_in_use_and_restores_it(path: Path) -> None:
    """What was written after the backup is gone, and everything else is there."""
    saved = path.with_name("saved.db")
    with closing(open_sqlite(path)) as service:
        ask = Asking(service, Clock())
        before = ask("ListOrgs")
        service.store.backup(saved)
        ask("AddOrg", name="globex")
    assert saved.stat().st_mode & 0o777 == 0o600

    kept = restore(saved, path)

    assert kept is not None
    with closing(open_sqlite(path)) as service:
        assert Asking(service, Clock())("ListOrgs") == before
        assert verify(service.store) == []
    assert set(contents(path.parent)) == {"identity.db", "saved.db", kept.name}


def test_a_read_only_store_can_be_backed_up_and_restored_where_there_was_none(path: Path) -> None:
    """A backup needs no right to write to what it saves."""
    with closing(SqliteReadOnlyStore(path)) as store:
        store.backup(path.with_name("saved.db"))

    restore(path.with_name("saved.db"), path.with_name("new.db"))

    with closing(SqliteReadOnlyStore(path.with_name("new.db"))) as store:
        assert verify(store) == []


def test_a_restore_behind_a_link_replaces_the_file_and_not_the_link(path: Path) -> None:
    """A server that names the file itself would go on with the store before."""
    saved, link = path.with_name("saved.db"), path.with_name("link.db")
    with closing(open_sqlite(path)) as service:
        service.store.backup(saved)
        Asking(service, Clock())("AddOrg", name="globex")
    link.symlink_to(path)

    kept = restore(saved, link)

    assert kept is not None
    assert kept.parent == path.parent
    assert kept.name.startswith(f"{path.name}.replaced-")
    assert not kept.is_symlink()
    assert link.readlink() == path
    assert path.read_bytes() == saved.read_bytes()


@pytest.mark.parametrize("spoilt", [*SPOILT, "a changed script", "a forgotten event"])
def test_a_backup_that_is_not_sound_is_not_restored(path: Path, spoilt: str) -> None:
    """The store it should replace is not touched."""
    saved = path.with_name("saved.db")
    with closing(SqliteReadOnlyStore(path)) as store:
        store.backup(saved)
    if spoilt in SPOILT:
        saved.write_bytes(SPOILT[spoilt][0](saved.read_bytes()))
    else:
        tamper(saved, TAMPERED[spoilt])
    before = contents(path.parent)

    with pytest.raises(StoreUnusableError):
        restore(saved, path)

    assert contents(path.parent) == before


TAMPERED = {
    "a changed script": "UPDATE events SET payload = replace(payload, 'xxx', 'xyx')",
    "a forgotten event": "DELETE FROM events WHERE position = 9",
}


def tamper(path: Path, statement: str) -> None:
    """Change a store as one could who may write the file; close it so that it is one file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(statement)
        connection.commit()


@pytest.mark.slow
def test_a_store_in_use_is_not_replaced_under_its_users(path: Path) -> None:
    """Whoever has it open would go on writing into a file that is no longer there."""
    saved = path.with_name("saved.db")
    with closing(SqliteReadOnlyStore(path)) as store:
        store.backup(saved)
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    other.stdout.readline()

    with pytest.raises(StoreBusyError):
        restore(saved, path)

    other.communicate(b"")
    restore(saved, path)
    with closing(SqliteReadOnlyStore(path)) as store:
        assert verify(store) == []


HOLD = """
import sys
from pathlib import Path
from reconciler.service.build import open_sqlite
service = open_sqlite(Path(sys.argv[1]))
with service.store.snapshot() as view:
    view.heads()
    sys.stdout.write("open\\n")
    sys.stdout.flush()
    sys.stdin.read()
service.close()
"""


def test_a_damaged_store_can_be_replaced_and_a_strangers_file_cannot(path: Path) -> None:
    """Restoring is for when the store is broken; it is not a way to overwrite anything."""
    saved = path.with_name("saved.db")
    with closing(SqliteReadOnlyStore(path)) as store:
        store.backup(saved)
    path.write_bytes(path.read_bytes()[:5000])
    restore(saved, path)
    with closing(SqliteReadOnlyStore(path)) as store:
        assert verify(store) == []

    stranger = path.with_name("notes.txt")
    stranger.write_text("precious")
    with pytest.raises(StoreUnusableError):
        restore(saved, stranger)
    assert stranger.read_text() == "precious"
