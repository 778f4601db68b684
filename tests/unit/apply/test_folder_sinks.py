"""Folders of secrets that several services, runs and names of one application share."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pyrage
import pytest

from reconciler.apply import secret_folder
from reconciler.apply.folder_sinks import (
    AgeSink,
    FileSink,
    file_name,
    file_name_beside,
    sealed_name,
)
from reconciler.apply.sink import Application, Delivery, Kept, Move, content_of
from reconciler.diagnostics import Diagnostic
from reconciler.errors import LocalFileError
from reconciler.resources.ref import ResourceRef
from reconciler.resources.secret import Secret
from tests.builders import WEB, a_ref

Sink: TypeAlias = FileSink | AgeSink

PORTAL = a_ref(name="portal")
KEY = pyrage.x25519.Identity.generate()
PLAIN, BESIDE = "acme.shop.storefront.json", "acme.shop.storefront.7.json"


def delivery(ref: ResourceRef = WEB, client_id: str = "7", value: str = "geheim") -> Delivery:
    return Delivery(ref, client_id, Secret(value))


def a_file_sink(folder: Path) -> Sink:
    return FileSink(folder)


def an_age_sink(folder: Path) -> Sink:
    return AgeSink(folder, [str(KEY.to_public())])


def delivered(sink: Sink, *deliveries: Delivery) -> list[Kept]:
    """Deliver; every secret must be kept."""
    results = sink.deliver(deliveries)
    kept = [result for result in results if isinstance(result, Kept)]
    assert len(kept) == len(deliveries), results
    return kept


def secrets_in(folder: Path) -> dict[str, tuple[str, str, str]]:
    """Return client id, secret and the name in the ref of every file, by file name."""
    files = {}
    for path in folder.iterdir():
        content = path.read_bytes()
        content = pyrage.decrypt(content, [KEY]) if path.suffix == ".age" else content
        said = json.loads(content)
        files[path.name] = (said["client_id"], said["client_secret"], said["ref"]["name"])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return files


def codes(followed: Sequence[tuple[Diagnostic, ...] | LocalFileError]) -> list[str]:
    """Return the codes of all findings; no error may be among them."""
    assert not [one for one in followed if isinstance(one, LocalFileError)], followed
    return [note.code for one in followed if not isinstance(one, LocalFileError) for note in one]


def no_locks(*_: object) -> bool:
    """Be a file system that has none."""
    return False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that only its owner can read."""
    made = tmp_path / "secrets"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture(params=[a_file_sink, an_age_sink])
def sink(request: pytest.FixtureRequest, folder: Path) -> Sink:
    """Return a sink of each kind."""
    make: Callable[[Path], Sink] = request.param
    return make(folder)


# Another file is under the name.


def test_the_secret_of_another_client_id_is_kept(folder: Path) -> None:
    """Two services hold an application of the same name; both secrets are needed."""
    delivered(FileSink(folder), delivery(client_id="8", value="theirs"))

    (kept,) = delivered(FileSink(folder), delivery())

    assert secrets_in(folder) == {
        PLAIN: ("8", "theirs", "storefront"), BESIDE: ("7", "geheim", "storefront"),
    }  # fmt: skip
    assert kept.at == str(folder / BESIDE)
    assert [note.code for note in kept.notes] == ["SECRET-KEPT-BESIDE"]
    assert str(folder / PLAIN) in kept.notes[0].summary
    assert kept.at in kept.notes[0].remedy


def test_each_of_two_applications_stays_in_its_own_file(folder: Path) -> None:
    """A secret that is delivered again, or is new, replaces the one of the same client id."""
    sink = FileSink(folder)
    delivered(sink, delivery(client_id="8", value="theirs"), delivery())

    again = delivered(sink, delivery(value="new"), delivery(client_id="8", value="new too"))

    assert secrets_in(folder) == {
        PLAIN: ("8", "new too", "storefront"), BESIDE: ("7", "new", "storefront"),
    }  # fmt: skip
    assert [kept.notes for kept in again] == [(), ()]


def no_json(path: Path) -> None:
    path.write_bytes(b"old")


def a_link(path: Path) -> None:
    (path.parent.parent / "elsewhere").write_bytes(b"precious")
    path.symlink_to(path.parent.parent / "elsewhere")


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to("nowhere")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def unreadable(path: Path) -> None:
    path.write_bytes(content_of(delivery()))
    path.chmod(0)
    if os.access(path, os.R_OK):  # the superuser reads everything
        path.write_bytes(b"sealed")


def a_folder(path: Path) -> None:
    path.mkdir()


STRANGE = [no_json, a_link, a_link_to_nothing, a_pipe, unreadable, a_folder]


@pytest.mark.parametrize("put", STRANGE)
def test_what_is_no_file_of_ours_is_never_replaced(
    folder: Path, put: Callable[[Path], None]
) -> None:
    """Whoever put it there may need it."""
    put(folder / PLAIN)
    before = (folder / PLAIN).lstat()

    (kept,) = delivered(FileSink(folder), delivery())

    assert kept.at == str(folder / BESIDE)
    assert (folder / BESIDE).read_bytes() == content_of(delivery())
    after = (folder / PLAIN).lstat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino, before.st_size, before.st_mtime_ns,
    )  # fmt: skip
    assert (
        not (folder.parent / "elsewhere").exists()
        or (folder.parent / "elsewhere").read_bytes() == b"precious"
    )


@pytest.mark.parametrize("put", [a_link, a_folder])
def test_a_name_that_is_taken_keeps_only_its_own_secret_back(
    sink: Sink, folder: Path, put: Callable[[Path], None]
) -> None:
    """What is in the sink is told as such: a service can then forget it."""
    *_, last = sink.names(Application(WEB, "7"))
    for name in tuple(sink.names(Application(WEB, "7")))[:-1]:
        a_folder(folder / name)
    put(folder / last)

    first, second = sink.deliver([delivery(), delivery(PORTAL, "8")])

    assert isinstance(first, LocalFileError)
    assert first.problem == f"cannot write {folder / last}: something else is there"
    assert isinstance(second, Kept)
    assert sink.held([Application(WEB, "7"), Application(PORTAL, "8")]) == [False, True]


def test_a_name_that_is_taken_at_the_last_moment_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without locks: another run names its file between our look and our write."""
    monkeypatch.setattr(secret_folder, "_lock", no_locks)
    link = os.link

    def late(source: Path, target: Path) -> None:
        if target.name == PLAIN and not target.exists():
            target.write_bytes(content_of(delivery(client_id="8", value="theirs")))
            target.chmod(0o600)
        link(source, target)

    monkeypatch.setattr(os, "link", late)

    delivered(FileSink(folder), delivery())

    assert secrets_in(folder) == {
        PLAIN: ("8", "theirs", "storefront"), BESIDE: ("7", "geheim", "storefront"),
    }  # fmt: skip


def test_a_file_system_without_hard_links_will_do(
    sink: Sink, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network folders have none. A name that is taken is left alone there, too."""

    def refused(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr(os, "link", refused)
    a_folder(folder / PLAIN)

    delivered(sink, delivery(), delivery(PORTAL, "8"))

    assert sink.held([Application(WEB, "7"), Application(PORTAL, "8")]) == [True, True]
    assert not list(folder.glob(".*"))


# Applications that are renamed or deleted.


def test_a_secret_follows_a_renamed_application(sink: Sink, folder: Path) -> None:
    """It is the same secret; what reads it has to be told the new place."""
    delivered(sink, delivery())

    followed = sink.moved([Move(WEB, PORTAL, "7")])

    (now,) = secrets_in(folder)
    assert now == next(sink.names(Application(PORTAL, "7")))
    name = "portal" if isinstance(sink, FileSink) else "storefront"
    assert secrets_in(folder)[now] == ("7", "geheim", name)
    assert codes(followed) == ["SECRET-MOVED"]
    assert codes(sink.moved([Move(WEB, PORTAL, "7")])) == ["SECRET-MOVED"], "and is said again"
    assert sink.moved([Move(WEB, PORTAL, "8")]) == [()]


def test_a_new_application_may_have_the_old_name_then(folder: Path) -> None:
    """The plain name goes to the application that has it now."""
    sink = FileSink(folder)
    delivered(sink, delivery())
    sink.moved([Move(WEB, PORTAL, "7")])

    (kept,) = delivered(sink, delivery(client_id="8", value="other"))

    assert (kept.at, kept.notes) == (str(folder / PLAIN), ())
    assert secrets_in(folder) == {
        "acme.shop.portal.json": ("7", "geheim", "portal"), PLAIN: ("8", "other", "storefront"),
    }  # fmt: skip


def test_a_rename_leaves_the_files_of_other_client_ids_where_they_are(folder: Path) -> None:
    """Both names are taken by another service's applications."""
    sink = FileSink(folder)
    delivered(sink, delivery(client_id="8"), delivery(PORTAL, "9"), delivery())

    followed = sink.moved([Move(WEB, PORTAL, "7")])

    assert secrets_in(folder) == {
        PLAIN: ("8", "geheim", "storefront"),
        "acme.shop.portal.json": ("9", "geheim", "portal"),
        "acme.shop.portal.7.json": ("7", "geheim", "portal"),
    }
    assert codes(followed) == ["SECRET-MOVED", "SECRET-KEPT-BESIDE"]


def test_a_new_case_of_a_name_is_written_into_the_file(folder: Path) -> None:
    """The name of the file is the same."""
    delivered(FileSink(folder), delivery())
    upper = a_ref(name="StoreFront")

    assert codes(FileSink(folder).moved([Move(WEB, upper, "7")])) == ["SECRET-MOVED"]
    assert secrets_in(folder) == {PLAIN: ("7", "geheim", "StoreFront")}


def test_a_newer_secret_under_the_new_name_stays(folder: Path) -> None:
    """A run was killed before the file moved, and the secret was made anew meanwhile."""
    sink = FileSink(folder)
    delivered(sink, delivery(value="old"), delivery(PORTAL, "7", "new"))

    sink.moved([Move(WEB, PORTAL, "7")])

    assert secrets_in(folder) == {"acme.shop.portal.json": ("7", "new", "portal")}


def test_a_rename_that_was_cut_short_is_found_and_ended(sink: Sink, folder: Path) -> None:
    """The service has the new name, the folder still the old one."""
    delivered(sink, delivery(), delivery(a_ref(name="other"), "8"))

    assert sink.held([Application(PORTAL, "7"), Application(PORTAL, "9")]) == [True, False]
    assert sink.held([Application(PORTAL, "7")])[0] is True
    third = a_ref(name="third")
    assert codes(sink.moved([Move(PORTAL, third, "7")])) == ["SECRET-MOVED"]
    assert sink.own(Application(third, "7")) is not None


@pytest.mark.parametrize("more", [[], ["before"]], ids=["once", "under two names"])
def test_the_secret_of_a_deleted_application_is_removed(
    sink: Sink, more: list[str], folder: Path
) -> None:
    """And no other."""
    delivered(sink, delivery(), delivery(client_id="8"), delivery(PORTAL, "9"))
    delivered(sink, *[delivery(a_ref(name=name)) for name in more])

    followed = sink.removed([Application(WEB, "7"), Application(WEB, "77")])

    assert {client for client, _, _ in secrets_in(folder).values()} == {"8", "9"}
    assert codes(followed) == ["SECRET-REMOVED"] * (1 + len(more))


def test_a_folder_that_is_not_there_holds_nothing(sink: Sink, folder: Path) -> None:
    """An empty folder on a new machine is no error."""
    folder.rmdir()

    assert sink.held([Application(WEB, "7")])[0] is False
    assert codes(sink.moved([Move(WEB, PORTAL, "7")])) == []
    assert codes(sink.removed([Application(WEB, "7")])) == []


def test_a_secret_is_not_moved_over_something_else(folder: Path) -> None:
    """With both names taken it stays where it is, and the reason is told."""
    sink = FileSink(folder)
    delivered(sink, delivery())
    for name in sink.names(Application(PORTAL, "7")):
        (folder / name).mkdir()

    (failure,) = sink.moved([Move(WEB, PORTAL, "7")])

    assert isinstance(failure, LocalFileError)
    assert "something else is there" in failure.problem
    assert sink.held([Application(PORTAL, "7")])[0] is True


# What a killed run leaves, and what a live one has.


def test_what_a_killed_run_left_is_removed(sink: Sink, folder: Path) -> None:
    """The files of a person stay, however they are named."""
    mine = [folder / ".notes.tmp", folder / ".secret-x.tmp", folder / ".probe"]
    left = [folder / f".secret-{'0' * 16}-{end}.tmp" for end in ("0", "12", "probe")]
    for path in [*mine, *left]:
        path.write_bytes(b"half of a secret")

    sink.prove()

    assert sorted(folder.iterdir()) == sorted(mine)


def test_without_locks_only_old_files_are_taken_for_left(
    sink: Sink, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A young one may be of a run that is still at work."""
    monkeypatch.setattr(secret_folder, "_lock", no_locks)
    young, old = (folder / f".secret-{number:016x}-0.tmp" for number in (1, 2))
    for path in (young, old):
        path.write_bytes(b"x")
    hours_ago = time.time() - 2 * secret_folder.STALE_SECONDS
    os.utime(old, (hours_ago, hours_ago))

    sink.prove()

    assert list(folder.iterdir()) == [young]


def test_a_run_waits_for_another_that_writes_into_the_folder(
    sink: Sink, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says so when that takes too long."""
    monkeypatch.setattr(secret_folder, "LOCK_SECONDS", 0.05)
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(LocalFileError, match="another run has kept"):
            sink.prove()
        (failure,) = sink.deliver([delivery()])
    finally:
        os.close(descriptor)

    assert isinstance(failure, LocalFileError)
    assert isinstance(sink.deliver([delivery()])[0], Kept)


def test_names_are_as_documented() -> None:
    """Scripts build them."""
    assert file_name(WEB) == PLAIN
    assert file_name_beside(WEB, "7") == BESIDE
    assert sealed_name(WEB, "7") == "acme.shop.storefront.7.json.age"
