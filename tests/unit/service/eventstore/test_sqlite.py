"""A store whose files are deleted, moved or replaced while it is open: no write is lost unseen."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.cli.connection import Connection
from reconciler.cli.embedded import open_wire
from reconciler.errors import ServiceError
from reconciler.resources.call import Call
from reconciler.service.build import IdentityService, open_sqlite
from reconciler.service.eventstore import sqlite
from reconciler.service.eventstore.errors import (
    StoreError,
    StoreUnreachableError,
    StoreUnusableError,
)
from reconciler.service.eventstore.sqlite import SqliteReadOnlyStore
from reconciler.service.operations.dispatch import Incoming
from reconciler.service.projections.maintenance import verify
from reconciler.service.restore import restore
from tests.examples import Clock
from tests.unit.service.asking import Asking


@pytest.fixture(autouse=True)
def every_view_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no view rely on an earlier look at the files."""
    monkeypatch.setattr(sqlite, "VIEWED_FOR", -1.0)


@pytest.fixture
def path(filled_store: Path, tmp_path: Path) -> Path:
    """Return the path of a store with an organization in it."""
    (tmp_path / "held").mkdir()
    return Path(shutil.copy(filled_store, tmp_path / "held"))


@pytest.fixture
def service(path: Path) -> Iterator[IdentityService]:
    """Open the store, and write to it once, so that its log is there."""
    with closing(open_sqlite(path, now=Clock())) as service:
        Asking(service, Clock())("AddOrg", name="globex")
        yield service


def delete(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def replace(path: Path) -> None:
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    copy.replace(path)


def delete_the_log(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


def delete_the_index(path: Path) -> None:
    path.with_name(path.name + "-shm").unlink()


def delete_the_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def rename_the_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


WAYS = [
    delete,
    rename,
    replace,
    delete_the_log,
    delete_the_index,
    delete_the_folder,
    rename_the_folder,
]


@pytest.mark.parametrize("way", WAYS)
def test_a_store_whose_files_are_gone_takes_no_write_and_makes_no_file(
    path: Path, service: IdentityService, way: Callable[[Path], None]
) -> None:
    """Neither from a new reader nor from the writer: an empty file would be taken for the store."""
    way(path)
    before = sorted(path.parent.iterdir()) if path.parent.exists() else None

    for operation, fields in (("AddOrg", {"name": "initech"}), ("ListOrgs", {})):
        with pytest.raises(StoreUnreachableError) as caught:
            Asking(service, Clock())(operation, **fields)
        assert str(path) in caught.value.problem
        assert "restart" in caught.value.remedy

    assert before == (sorted(path.parent.iterdir()) if path.parent.exists() else None)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_goes_during_a_write_is_noticed_before_the_write_is_acknowledged(
    path: Path, service: IdentityService, way: Callable[[Path], None]
) -> None:
    """The commit went to a file that the next start will not find."""
    with pytest.raises(StoreUnreachableError), service.store.transaction():
        way(path)


def test_a_command_that_works_on_the_file_itself_is_told_the_same(path: Path) -> None:
    """As an error of the command, with what to do."""
    with open_wire(Connection(f"sqlite:{path}"), read_only=False) as wire:
        delete(path)
        with pytest.raises(ServiceError, match="was deleted, moved or replaced") as caught:
            wire.send([Call("AddOrg", {"name": "initech"})])
        assert "restart" in caught.value.remedy


def test_a_new_reader_never_opens_another_file_than_the_writer_has(
    path: Path, service: IdentityService
) -> None:
    """Readers are opened when needed: both at once need a second one."""
    with service.store.snapshot() as first:
        replace(path)
        with pytest.raises(StoreUnreachableError), service.store.snapshot():
            pass
        assert len(first.heads()) == 2


def test_views_look_now_and_then_and_each_time_once_something_is_wrong(
    path: Path, service: IdentityService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view acknowledges nothing: what was there a moment ago is shown a moment longer."""
    monkeypatch.setattr(sqlite, "VIEWED_FOR", 1e12)  # longer than any machine has run
    ask = Asking(service, Clock())
    ask("ListOrgs")  # there is a reader from now on
    rename(path)
    ask("ListOrgs")
    with pytest.raises(StoreUnreachableError), service.store.transaction():
        pass
    with pytest.raises(StoreUnreachableError):
        ask("ListOrgs")


def test_readiness_looks_each_time(
    path: Path, service: IdentityService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was taken away is not told to be one that may not be written."""
    monkeypatch.setattr(sqlite, "VIEWED_FOR", 1e12)
    assert service.dispatcher.is_ready()
    rename(path)

    assert not service.dispatcher.is_ready()


def test_a_file_that_is_put_back_is_used_again(path: Path, service: IdentityService) -> None:
    """It is the very file: nothing is lost, and no restart is needed."""
    rename(path)
    with pytest.raises(StoreUnreachableError):
        Asking(service, Clock())("AddOrg", name="initech")
    path.with_name("moved.db").rename(path)

    Asking(service, Clock())("AddOrg", name="initech")

    assert len(Asking(service, Clock())("ListOrgs")["result"]) == 3
    assert verify(service.store) == []


def test_a_copy_that_a_restore_puts_in_the_place_of_a_damaged_store_is_not_mixed_up(
    path: Path, service: IdentityService
) -> None:
    """A sound store in use is not replaced; a damaged one is, under the server that has it."""
    saved = path.with_name("saved.db")
    service.store.backup(saved)
    with pytest.raises(StoreError, match="another program"):
        restore(saved, path)
    with path.open("r+b") as file:
        file.truncate(5000)

    restore(saved, path)

    with pytest.raises(StoreUnreachableError):
        Asking(service, Clock())("AddOrg", name="initech")
    with closing(open_sqlite(path)) as restored:
        assert verify(restored.store) == []


def test_a_reader_of_a_store_at_rest_is_told_that_it_is_gone(path: Path) -> None:
    """With a sentence of the store, not an exception of the system."""
    with closing(SqliteReadOnlyStore(path)) as store:
        delete(path)
        with pytest.raises(StoreUnusableError, match="cannot be opened"), store.snapshot():
            pass


def test_a_log_without_its_store_is_not_played_into_a_new_one(path: Path) -> None:
    """A server was killed, and then its file deleted: what is in the log belongs to that file."""
    with closing(open_sqlite(path, now=Clock())) as service:
        Asking(service, Clock())("AddOrg", name="globex")
        saved = path.with_name("saved.db")
        service.store.backup(saved)
        log = path.with_name(path.name + "-wal")
        shutil.copy(log, path.with_name("log"))
    delete(path)
    path.with_name("log").rename(log)

    with pytest.raises(StoreUnusableError, match="is missing") as caught:
        open_sqlite(path, create=True)
    assert str(log) in caught.value.remedy
    assert not path.exists()

    restore(saved, path)

    assert not log.exists()
    assert list(path.parent.glob("*.replaced-*-wal"))
    with closing(open_sqlite(path)) as restored:
        assert verify(restored.store) == []


def test_a_path_that_is_no_text_is_opened(tmp_path: Path) -> None:
    """Paths are bytes; SQLite is given them as such, and no part of one is taken for an option."""
    for name in (b"caf\xe9.db", b"a b%20c?mode=memory#d.db"):
        path = tmp_path / os.fsdecode(name)
        with closing(open_sqlite(path, create=True)) as service:
            Asking(service, Clock()).prepare()
        with closing(open_sqlite(path, read_only=True)) as service:
            assert len(Asking(service, Clock())("ListOrgs")["result"]) == 1
    assert len(list(tmp_path.iterdir())) == 2


def test_the_log_of_the_operator_says_it_once_and_that_it_is_over(
    path: Path, service: IdentityService, caplog: pytest.LogCaptureFixture
) -> None:
    """What happened and what to do; not again for every call that comes meanwhile."""
    call = Incoming("ListOrgs", {}, {})
    caplog.set_level(logging.INFO, "reconciler.service")
    rename(path)

    for _ in range(3):
        assert not service.dispatcher.is_ready()
        service.dispatcher.receive([call, call])

    (told,) = [record.getMessage() for record in caplog.records]
    assert "was deleted, moved or replaced" in told
    assert "restart" in told
    path.with_name("moved.db").rename(path)
    assert service.dispatcher.is_ready()
    assert [record.getMessage() for record in caplog.records][1:] == ["the store can be used again"]


def test_a_server_whose_file_may_not_be_written_is_not_ready(
    path: Path, service: IdentityService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers reads, as over a database that was made read only."""
    assert service.dispatcher.is_ready()
    read_only = {str(path)}
    allowed = os.access
    monkeypatch.setattr(
        os, "access", lambda file, mode: str(file) not in read_only and allowed(file, mode)
    )

    assert not service.dispatcher.is_ready()
    assert Asking(service, Clock())("ListOrgs")["result"]
    with closing(open_sqlite(path, now=Clock())) as opened_meanwhile:
        read_only.clear()
        assert service.dispatcher.is_ready()
        # SQLite has opened the file to read it, and goes on so.
        assert not opened_meanwhile.dispatcher.is_ready()
