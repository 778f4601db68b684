"""Folders of secrets that several services and runs share, or that hold something else."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.apply import secret_folder
from reconciler.apply.folder_sinks import (
    FileSink,
)
from reconciler.apply.secret_folder import AT_ONCE, make_private_folder
from reconciler.apply.sink import Application, Kept, content_of
from reconciler.errors import LocalFileError
from tests.builders import WEB, a_ref
from tests.on_disk import watch_the_disk
from tests.unit.apply.secret_files import (
    BESIDE,
    PLAIN,
    PORTAL,
    Sink,
    delivered,
    delivery,
    secrets_in,
)
from tests.unit.resources.test_files import mode_of


def no_locks(*_: object) -> bool:
    """Be a file system that has none."""
    return False


def test_every_secret_of_many_is_on_the_disk_before_one_takes_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written several at once; a name never stands for what a power cut would take."""
    many = [delivery(a_ref(name=f"app-{number}"), str(number)) for number in range(3 * AT_ONCE + 1)]
    delivered(FileSink(folder), delivery())  # the folder is kept out of Git from now on
    seen = watch_the_disk(monkeypatch)

    delivered(FileSink(folder), *many)

    assert {step for step, _ in seen[: len(many)]} == {"synced"}
    assert [step for step, _ in seen[len(many) : -1]] == ["named"] * len(many)
    assert seen[-1] == ("synced", folder.name)


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


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777, 0o704])
def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path, mode: int) -> None:
    """Nothing is changed silently: the mode may be what somebody wanted for another reason."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)

    with pytest.raises(LocalFileError) as refused:
        make_private_folder(folder)

    assert refused.value.problem == f"{folder} can be read by others (mode {mode:04o})"
    assert refused.value.remedy == (
        "Secrets go there: name a new folder, which is made for its owner alone. If this one is "
        f"for secrets alone, run `chmod 700 {folder}`."
    )
    assert mode_of(folder) == mode


@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_what_is_not_a_folder_is_refused_as_that(tmp_path: Path, mode: int) -> None:
    """Root who is told to run chmod on /dev/null would take it from every other user."""
    file = tmp_path / "file"
    file.touch()
    file.chmod(mode)

    with pytest.raises(LocalFileError, match="is not a folder") as refused:
        make_private_folder(file)

    assert "chmod" not in refused.value.remedy


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    """A file is where it should be."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(LocalFileError, match=r"cannot make the folder .*: Not a directory"):
        make_private_folder(tmp_path / "file" / "secrets")


def test_secrets_that_the_disk_has_no_room_for_leave_nothing_behind(folder: Path) -> None:
    """What was written of them is under names that no run would look for."""
    folder.mkdir(mode=0o700, exist_ok=True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            secret_folder._staged(folder, [b"short", b"x" * 101])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert list(folder.iterdir()) == []
