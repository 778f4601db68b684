"""Files that are no sound store: told apart, refused clearly, left byte for byte as they are."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.eventstore import sqlite_files
from reconciler.service.eventstore.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnusableError,
)
from reconciler.service.eventstore.sqlite import SqliteEventStore, SqliteReadOnlyStore
from reconciler.service.eventstore.sqlite_files import (
    CACHE_KIB,
    READER_CACHE_KIB,
    create,
    is_there,
    store_error,
    store_errors,
)
from reconciler.service.eventstore.tables import SCHEMA_VERSION
from reconciler.service.operations.request import Request
from reconciler.service.projections.maintenance import verify
from tests.examples import Clock
from tests.rows import each_row
from tests.unit.service.asking import Asking
from tests.unit.service.stored import SPOILT, contents, fill

PAGE = 4096


@pytest.fixture
def path(filled: Path) -> Path:
    """Return the path of a store with something in it."""
    return filled


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_file_that_is_no_sound_store_is_refused_and_left_alone(
    path: Path, spoilt: str, *, read_only: bool
) -> None:
    """Each with a sentence of its own, and something to do about it."""
    spoil, problem = SPOILT[spoilt]
    path.write_bytes(spoil(path.read_bytes()))
    before = contents(path.parent)

    with pytest.raises(StoreUnusableError) as caught:
        open_sqlite(path, create=True, read_only=read_only)

    assert problem in caught.value.problem
    assert str(path) in caught.value.problem
    assert caught.value.remedy
    assert contents(path.parent) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_whose_log_is_of_a_newer_version_is_refused(path: Path, *, read_only: bool) -> None:
    """The file beside the log still says what it was before a newer program changed the tables."""
    with closing(sqlite3.connect(path)) as newer:
        newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        before = path.read_bytes()

        with pytest.raises(StoreUnusableError, match="newer version"):
            open_sqlite(path, read_only=read_only)

        assert path.read_bytes() == before


def test_a_damaged_page_is_told_when_it_is_met(path: Path) -> None:
    """Reading never serves what a damaged page seems to say; verify names the damage."""
    held = path.read_bytes()
    path.write_bytes(held[:4096] + b"\xff" * (len(held) - 4096))

    with closing(SqliteReadOnlyStore(path)) as store:
        with pytest.raises(StoreUnusableError) as caught, store.snapshot() as view:
            view.read_all()
        assert "is damaged" in caught.value.problem
        assert verify(store) != []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder_or_nothing_is_no_store(tmp_path: Path, *, read_only: bool) -> None:
    """Opening makes nothing unless it is asked to."""
    for wrong in (tmp_path, tmp_path / "missing.db"):
        with pytest.raises(StoreUnusableError):
            open_sqlite(wrong, read_only=read_only)
    assert contents(tmp_path) == {}


def test_a_store_cannot_be_made_where_there_is_no_folder(tmp_path: Path) -> None:
    """The sentence names the file and the reason."""
    with pytest.raises(StoreReadOnlyError) as caught:
        create(tmp_path / "nowhere" / "identity.db")

    assert "No such file" in caught.value.problem


def test_a_new_store_is_its_owners_alone(tmp_path: Path) -> None:
    """It holds hashes of secrets and everybody's scripts. Nothing else is left beside it."""
    create(tmp_path / "identity.db")

    assert (tmp_path / "identity.db").stat().st_mode & 0o777 == 0o600
    assert list(contents(tmp_path)) == ["identity.db"]


def test_making_a_store_keeps_one_that_somebody_else_made_meanwhile(path: Path) -> None:
    """Two first runs at the same time end with one store."""
    before = path.read_bytes()

    create(path)

    assert path.read_bytes() == before


def test_a_store_that_was_closed_is_one_file(path: Path) -> None:
    """It can be copied as it lies there."""
    assert set(contents(path.parent)) == {"identity.db"}


def test_reading_makes_and_changes_no_file(path: Path) -> None:
    """A plan never writes, not even beside the store."""
    before = contents(path.parent)

    with closing(open_sqlite(path, read_only=True)) as service:
        assert len(Asking(service, Clock())("ListOrgs")["result"]) == 1
        assert contents(path.parent) == before
        with pytest.raises(StoreReadOnlyError):
            Asking(service, Clock())("AddOrg", name="globex")
        with pytest.raises(StoreReadOnlyError), service.store.transaction():
            pass

    assert contents(path.parent) == before


def test_reading_sees_what_a_writer_has_not_moved_into_the_file_yet(path: Path) -> None:
    """Somebody who has the store open keeps recent commits in a log beside it."""
    with closing(open_sqlite(path)) as writer:
        ask = Asking(writer, Clock())
        ask("AddOrg", name="globex")
        with closing(open_sqlite(path, read_only=True)) as reader:
            look = Asking(reader, Clock())
            assert len(look("ListOrgs")["result"]) == 2
            ask("AddOrg", name="initech")
            assert len(look("ListOrgs")["result"]) == 3


def test_reading_follows_a_writer_who_comes_later(path: Path) -> None:
    """A reader who opened a store at rest does not stay with what it saw then."""
    with closing(open_sqlite(path, read_only=True)) as reader:
        look = Asking(reader, Clock())
        assert len(look("ListOrgs")["result"]) == 1
        with closing(open_sqlite(path)) as writer:
            Asking(writer, Clock())("AddOrg", name="globex")
            assert len(look("ListOrgs")["result"]) == 2
        assert len(look("ListOrgs")["result"]) == 2


def test_reading_that_a_writer_tore_is_not_believed(path: Path) -> None:
    """What changed under a reader may be torn, so the reader is told to read again."""
    with closing(SqliteReadOnlyStore(path)) as store:
        reading = store.snapshot()
        reading.__enter__()
        with closing(open_sqlite(path)) as writer:
            Asking(writer, Clock())("AddOrg", name="globex")

        with pytest.raises(StoreBusyError):
            reading.__exit__(None, None, None)


def test_a_crashed_writers_log_is_read(path: Path) -> None:
    """After a kill the log lies beside the file; reading sees it and leaves both alone."""
    folder = path.parent / "crashed"
    folder.mkdir()
    with closing(open_sqlite(path)) as writer:
        Asking(writer, Clock())("AddOrg", name="globex")
        for name, held in contents_of_store(path).items():
            (folder / name).write_bytes(held)
    before = contents(folder)
    assert "identity.db-wal" in before

    with closing(open_sqlite(folder / path.name, read_only=True)) as reader:
        assert len(Asking(reader, Clock())("ListOrgs")["result"]) == 2
        assert verify(reader.store) == []

    after = contents(folder)
    for name in ("identity.db", "identity.db-wal"):
        assert after[name] == before[name]


def contents_of_store(path: Path) -> dict[str, bytes]:
    return {
        name: held for name, held in contents(path.parent).items() if name.startswith(path.name)
    }


def test_a_store_that_is_busy_for_too_long_is_told(path: Path) -> None:
    """Waiting ends, with a sentence about who is in the way."""
    with closing(SqliteEventStore(path, Clock())) as store, closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        store._connection.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(StoreBusyError) as caught, store.transaction():
            pass
        other.rollback()
        assert "another program is writing" in caught.value.problem
        with store.transaction() as tx:
            assert len(tx.heads()) == 1


def test_two_writers_on_one_file_lose_nothing(path: Path) -> None:
    """Each waits for the other; the chain stays whole."""
    with closing(open_sqlite(path)) as one, closing(open_sqlite(path)) as two:
        first, second = Asking(one, Clock()), Asking(two, Clock())
        organization = first("ListOrgs")["result"][0]["id"]
        for number in range(10):
            first.an_action(f"one{number}", organization=organization)
            second.an_action(f"two{number}", organization=organization)
        assert verify(one.store) == []
        assert len(first("ListActions", organization=organization)["result"]) == 40


def test_what_is_committed_is_synced_before_it_is_acknowledged(path: Path) -> None:
    """With anything less than FULL, a power cut takes back what a caller was told is kept."""
    with closing(SqliteEventStore(path, Clock())) as store:
        (level,) = store._connection.execute("PRAGMA synchronous").fetchone()

    assert level == 2


def test_a_full_disk_refuses_the_write_and_keeps_the_rest(path: Path) -> None:
    """Nothing is half written; with room again everything goes on."""
    with closing(open_sqlite(path)) as service:
        ask = Asking(service, Clock())
        ask.organization = ask("ListOrgs")["result"][0]["id"]
        store = service.store
        assert isinstance(store, SqliteEventStore)
        store._connection.execute("PRAGMA max_page_count = 1")  # as many as there are, at least

        with pytest.raises(StoreFullError) as caught:
            ask.service.call_many([many_actions(ask, number) for number in range(100)])

        assert "no room" in caught.value.problem
        assert verify(store) == []
        held = ask.event_count()
        store._connection.execute("PRAGMA max_page_count = 1000000")
        ask.an_action("again")
        assert ask.event_count() == held + 1
        assert verify(store) == []


def many_actions(ask: Asking, number: int) -> Request:
    fields = {"organization": ask.organization, "name": f"b{number}", "script": "x" * 2000}
    return ask.request("CreateAction", fields)


READ_AS_NOBODY = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
from reconciler.service.build import open_sqlite
from reconciler.service.eventstore.errors import StoreError
from reconciler.service.operations import callers, lists, request
from reconciler.service.eventstore import sqlite, sqlite_files
from reconciler.service import seal
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
path = Path(sys.argv[1])
service = open_sqlite(path, read_only=True)
ask = request.Request("ListOrgs", {}, caller=callers.EMBEDDED)
sys.stdout.write(service.call(ask)["result"][0]["name"] + "\\n")
try:
    open_sqlite(path).call(request.Request("AddOrg", {"name": "x"}, caller=callers.EMBEDDED))
except StoreError as error:
    sys.stdout.write(type(error).__name__ + "\\n")
try:
    sqlite_files.create(path.with_name("other.db"))
except StoreError as error:
    sys.stdout.write(type(error).__name__ + "\\n")
"""


@pytest.fixture
def everybodys_folder() -> Iterator[Path]:
    """Yield a folder that every user may look into, which those of pytest are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.untraced
def test_a_store_that_may_only_be_read_is_read(everybodys_folder: Path) -> None:
    """Neither file nor folder can be written to: reading works, writing is refused."""
    path = everybodys_folder / "identity.db"
    fill(path)
    path.chmod(0o444)
    everybodys_folder.chmod(0o555)

    run = subprocess.run(
        [sys.executable, "-c", READ_AS_NOBODY, str(path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[4],
    )
    everybodys_folder.chmod(0o755)

    assert run.stderr == ""
    assert run.stdout.split() == ["acme", "StoreReadOnlyError", "StoreReadOnlyError"]
    assert set(contents(everybodys_folder)) == {"identity.db"}


@pytest.mark.parametrize("read_only", [False, True])
def test_a_crash_while_the_log_is_copied_into_the_file_leaves_a_sound_store(
    path: Path, tmp_path: Path, *, read_only: bool
) -> None:
    """The first page says how long the file will be; the rest of it is still in the log alone."""
    crashed = tmp_path / "crashed.db"
    with closing(open_sqlite(path)) as service:
        organization = Asking(service, Clock())("AddOrg", name="late")["id"]
        for number in range(20):
            Asking(service, Clock(), organization).an_action(f"b{number}", script="x" * 1500)
        rest = path.read_bytes()[PAGE:]
        log = path.with_name("identity.db-wal").read_bytes()
    crashed.write_bytes(path.read_bytes()[:PAGE] + rest)
    assert crashed.stat().st_size < path.stat().st_size
    crashed.with_name("crashed.db-wal").write_bytes(log)

    with closing(open_sqlite(crashed, read_only=read_only)) as service:
        assert verify(service.store) == []
        with service.store.snapshot() as view:
            assert len(view.heads()) == 2


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_cut_short_is_not_made_whole_by_any_log(
    path: Path, *, read_only: bool
) -> None:
    """A log that lacks the missing pages is no excuse."""
    with closing(open_sqlite(path)) as service:
        Asking(service, Clock())("AddOrg", name="late")
        log = path.with_name("identity.db-wal").read_bytes()
        held = path.read_bytes()
    path.write_bytes(held[: len(held) // 2])
    path.with_name("identity.db-wal").write_bytes(log)

    with pytest.raises(StoreUnusableError, match=r"is cut short|is damaged"):
        open_sqlite(path, read_only=read_only)


def test_readers_keep_fewer_pages_in_memory_than_the_writer(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are several readers, and each would keep as many pages as the writer."""
    connections: list[sqlite3.Connection] = []
    connect = sqlite_files.connect

    def seen(*arguments: Any) -> sqlite3.Connection:
        connections.append(connect(*arguments))
        return connections[-1]

    monkeypatch.setattr(sqlite_files, "connect", seen)
    with closing(SqliteEventStore(path, lambda: 1)) as store, ExitStack() as views:
        for _ in range(3):
            views.enter_context(store.snapshot())
        sizes = [each.execute("PRAGMA cache_size").fetchone()[0] for each in connections]

    assert sizes == [-CACHE_KIB, *[-READER_CACHE_KIB] * 3]


def test_a_backup_overwrites_nothing(path: Path) -> None:
    """The file that is there may be the only good backup."""
    saved = path.with_name("saved.db")
    saved.write_text("precious")

    with closing(open_sqlite(path)) as service, pytest.raises(StoreError) as caught:
        service.store.backup(saved)

    assert "exists" in caught.value.problem
    assert saved.read_text() == "precious"
    for folder in (Path(), path.parent):
        with closing(open_sqlite(path)) as service, pytest.raises(StoreError, match="exists"):
            service.store.backup(folder)
    with closing(open_sqlite(path)) as service, pytest.raises(StoreReadOnlyError):
        service.store.backup(path.with_name("nowhere") / "saved.db")


PATH = Path("identity.db")


def an_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("the library's sentence")
    error.sqlite_errorcode = code
    return error


@each_row(
    ("error", "kind"),
    [
        (an_error(sqlite3.SQLITE_NOTADB), StoreUnusableError),
        (an_error(sqlite3.SQLITE_CORRUPT), StoreUnusableError),
        (an_error(sqlite3.SQLITE_CORRUPT | 1 << 8), StoreUnusableError),
        (an_error(sqlite3.SQLITE_READONLY), StoreReadOnlyError),
        (an_error(sqlite3.SQLITE_READONLY_DBMOVED), StoreReadOnlyError),
        (an_error(sqlite3.SQLITE_CANTOPEN), StoreUnusableError),
        (an_error(sqlite3.SQLITE_FULL), StoreFullError),
        (an_error(sqlite3.SQLITE_IOERR_FSYNC), StoreError),
        (an_error(sqlite3.SQLITE_BUSY_SNAPSHOT), StoreBusyError),
        (an_error(sqlite3.SQLITE_LOCKED), StoreBusyError),
        (an_error(sqlite3.SQLITE_MISMATCH), StoreError),
        (sqlite3.ProgrammingError("no code"), StoreError),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "damage"), StoreUnusableError),
    ],
)
def test_an_error_says_what_it_means_for_the_file(
    error: sqlite3.Error | UnicodeDecodeError, kind: type[StoreError]
) -> None:
    """Extended codes mean what their primary code means; no sentence of the library shows."""
    told = store_error(PATH, error)

    assert type(told) is kind
    assert "identity.db" in told.problem
    assert "sentence" not in told.problem + told.remedy
    assert told.remedy.endswith(".")


def test_what_a_block_raises_is_told_and_its_cause_is_kept() -> None:
    with pytest.raises(StoreUnusableError) as caught, store_errors(PATH):
        raise an_error(sqlite3.SQLITE_CORRUPT)

    assert isinstance(caught.value.__cause__, sqlite3.Error)


def test_what_is_no_error_of_the_library_passes() -> None:
    with pytest.raises(ZeroDivisionError), store_errors(PATH):
        raise ZeroDivisionError


@pytest.mark.parametrize(("room", "kind"), [(0, StoreFullError), (1 << 30, StoreError)])
def test_a_disk_without_room_for_shared_memory_is_full_and_does_not_fail(
    monkeypatch: pytest.MonkeyPatch, path: Path, room: int, kind: type[StoreError]
) -> None:
    """SQLite reports both alike, and only one of them is mended by making room."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=room, f_frsize=1))
    failure = sqlite3.OperationalError("disk I/O error")
    failure.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE

    assert type(store_error(path, failure)) is kind


def test_a_file_is_there_or_it_is_not(tmp_path: Path) -> None:
    """Also where a link leads to nothing, or a file stands in the place of the folder."""
    (tmp_path / "identity.db").touch()
    (tmp_path / "link").symlink_to("missing")

    assert is_there(tmp_path / "identity.db")
    assert not is_there(tmp_path / "missing" / "identity.db")
    assert not is_there(tmp_path / "link")
    assert not is_there(tmp_path / "identity.db" / "identity.db")


def test_a_file_that_cannot_be_looked_for_is_not_taken_for_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan against an empty store in its place would create everything a second time."""

    def stat(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", stat)

    with pytest.raises(StoreUnusableError, match="cannot be opened: Permission denied"):
        is_there(tmp_path / "identity.db")


def test_a_store_behind_a_link_is_read_with_its_log(path: Path, tmp_path: Path) -> None:
    """SQLite keeps the log beside the file, not beside the link, which stands elsewhere."""
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    saved = tmp_path / "saved.db"
    with closing(open_sqlite(link)) as service:
        Asking(service, Clock())("AddOrg", name="globex")
        with closing(SqliteReadOnlyStore(link)) as looking:
            with looking.snapshot() as view:
                heads = sorted(view.heads())
            looking.backup(saved)
        with service.store.snapshot() as view:
            assert sorted(view.heads()) == heads

    with closing(SqliteReadOnlyStore(saved)) as copy, copy.snapshot() as view:
        assert sorted(view.heads()) == heads


def test_a_link_whose_store_is_gone_leads_to_the_log_that_stayed(path: Path) -> None:
    """It would be replayed into an empty store."""
    link = path.with_name("link.db")
    link.symlink_to(path)
    path.unlink()
    path.with_name(path.name + "-wal").write_bytes(b"x")

    for look in (is_there, create):
        with pytest.raises(StoreUnusableError, match="its log is still there") as caught:
            look(link)
        assert str(path.with_name(path.name + "-wal")) in caught.value.remedy
