"""Files that appear whole or not at all, for their owner alone, and stay."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.resources import files
from reconciler.resources.files import (
    keep_out_of_git,
    make_folder,
    publish,
    publish_over,
    remove_in,
    replace_in,
    temporary_file,
    write_private,
)
from tests.on_disk import files_of_at_most, watch_the_disk


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder for its owner alone."""
    made = tmp_path / "secrets"
    make_folder(made)
    return made


def test_files_are_written_whole_and_for_their_owner_alone(folder: Path) -> None:
    """Nobody else on the machine may read a secret, whatever the umask of the run."""
    contents = {"a": b"one", "b": b"x" * 100_000, "c": b""}
    before = os.umask(0)
    try:
        for name, content in contents.items():
            write_private(folder / name, content)
    finally:
        os.umask(before)

    assert {path.name: (path.read_bytes(), mode_of(path)) for path in folder.iterdir()} == {
        name: (content, 0o600) for name, content in contents.items()
    }
    assert mode_of(folder) == 0o700


def test_a_file_is_on_the_disk_before_it_has_its_name_and_then_the_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut must find it under its name, and whole."""
    seen = watch_the_disk(monkeypatch)

    write_private(folder / "a", b"one")

    temporary = seen[0][1]
    assert temporary.startswith(".a.")
    assert seen == [("synced", temporary), ("named", "a"), ("synced", "secrets")]


@pytest.mark.parametrize("put", [publish, publish_over])
def test_a_finished_file_has_its_name_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path, Path], None]
) -> None:
    """Its content is on the disk before it has the name, and the name before anybody is told."""
    target = tmp_path / "identity.db"
    with temporary_file(target) as (unfinished, _):
        unfinished.write_bytes(b"whole")
        seen = watch_the_disk(monkeypatch)
        put(unfinished, target)

    assert seen == [
        ("synced", unfinished.name),
        ("named", "identity.db"),
        ("synced", tmp_path.name),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["identity.db"]


def test_a_new_file_takes_no_name_that_is_taken(folder: Path) -> None:
    """Of two processes that make a key at once, both use the one that was there first."""
    write_private(folder / "a", b"first", publish)

    with pytest.raises(FileExistsError):
        write_private(folder / "a", b"second", publish)

    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a": b"first"}


def test_a_file_that_others_could_read_is_replaced_by_one_they_cannot(folder: Path) -> None:
    """A copy from a backup may have lost its mode."""
    old = folder / "a"
    old.write_bytes(b"a much longer one")
    old.chmod(0o644)
    with old.open("rb") as reader:
        write_private(folder / "a", b"new")

        assert reader.read() == b"a much longer one", "who has it open sees all of the old one"
    assert (old.read_bytes(), mode_of(old)) == (b"new", 0o600)


def test_what_a_crash_left_behind_is_removed(folder: Path) -> None:
    """No copy of a secret stays in a file that nobody looks at, nor in one that others can read."""
    left = folder / ".a.0123456789abcdef"
    left.write_bytes(b"half of a secret, and longer than the new one")
    left.chmod(0o644)

    write_private(folder / "a", b"new")

    assert [(path.name, path.read_bytes(), mode_of(path)) for path in folder.iterdir()] == [
        ("a", b"new", 0o600)
    ]


def test_two_that_write_the_same_file_do_not_disturb_each_other(folder: Path) -> None:
    """Two jobs may save their plan under one name."""
    with temporary_file(folder / "a") as (unfinished, _):
        unfinished.write_bytes(b"first, and longer")
        write_private(folder / "a", b"second")
        publish_over(unfinished, folder / "a")

    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "a": b"first, and longer"
    }


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    """Whoever could place one would choose the file that a secret goes to."""
    target = tmp_path / "elsewhere"
    target.write_bytes(b"precious")
    (folder / "a").symlink_to(target)

    write_private(folder / "a", b"new")

    assert ((folder / "a").is_symlink(), (folder / "a").read_bytes()) == (False, b"new")
    assert target.read_bytes() == b"precious"


def test_what_cannot_be_removed_keeps_nothing_else_that_was_left_behind(tmp_path: Path) -> None:
    """A pipe, and in a shared folder a file of another user, have such a name as well."""
    names = [tmp_path / f".identity.db.{name * 16}" for name in "0123456789"]
    pipes = {path.name for path in (names[0], names[-1])}  # folders are listed in any order
    for path in names:
        (os.mkfifo if path.name in pipes else Path.touch)(path)

    with temporary_file(tmp_path / "identity.db"):
        pass

    assert {path.name for path in tmp_path.iterdir()} == pipes


def is_a_folder(folder: Path) -> None:
    (folder / "a").mkdir()


def is_gone(folder: Path) -> None:
    folder.rmdir()


@pytest.mark.parametrize("spoil", [is_a_folder, is_gone])
def test_what_cannot_be_written_is_an_error_and_leaves_nothing_half(
    folder: Path, spoil: Callable[[Path], None]
) -> None:
    """The journal keeps the create open, so that the next run delivers its secret."""
    spoil(folder)

    with pytest.raises((IsADirectoryError, FileNotFoundError)):
        write_private(folder / "a", b"new")

    assert list(folder.parent.rglob(".a.*")) == []


def test_a_full_disk_leaves_the_file_as_it_was(folder: Path) -> None:
    """Half a secret would replace a whole one."""
    write_private(folder / "a", b"old")

    with files_of_at_most(1000), pytest.raises(OSError, match="File too large"):
        write_private(folder / "a", b"x" * 5000)

    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a": b"old"}


def test_folders_are_made_for_their_owner_alone_and_the_state_folder_stays_out_of_git(
    tmp_path: Path,
) -> None:
    """The store, the journal and the secrets in it must never be committed by habit."""
    before = os.umask(0)
    try:
        made = make_folder(tmp_path / "new" / ".reconciler" / "secrets")
        again = make_folder(tmp_path / "new" / ".reconciler" / "secrets")
    finally:
        os.umask(before)

    assert (made, again) == (True, False)
    assert [mode_of(path) for path in (tmp_path / "new").rglob("*") if path.is_dir()] == [
        0o700,
        0o700,
    ]
    ignore = tmp_path / "new" / ".reconciler" / ".gitignore"
    assert ignore.read_text(encoding="ascii") == "*\n"
    assert not (tmp_path / "new" / ".gitignore").exists()


def test_a_state_folder_that_somebody_else_made_is_kept_out_of_git_too(tmp_path: Path) -> None:
    """A mount of a container makes it, and so does a run that is killed right after."""
    state = tmp_path / ".reconciler"
    state.mkdir()

    make_folder(state / "secrets")

    assert (state / ".gitignore").read_text(encoding="ascii") == "*\n"


@pytest.mark.parametrize("is_link", [False, True])
def test_what_has_the_name_of_the_list_of_ignored_files_stays(
    tmp_path: Path, *, is_link: bool
) -> None:
    """A team may have one of its own; a link that came with a pull request is not followed."""
    state, elsewhere = tmp_path / ".reconciler", tmp_path / "elsewhere"
    state.mkdir()
    own = state / ".gitignore"
    if is_link:
        own.symlink_to(elsewhere)
    else:
        own.write_text("*.db\n", encoding="ascii")

    make_folder(state)

    assert own.is_symlink() or own.read_text(encoding="ascii") == "*.db\n"
    assert not elsewhere.exists()


def test_the_list_of_ignored_files_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty one ignores nothing, and it would stay."""

    def end(descriptor: int, content: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_whole", end)
        with pytest.raises(KeyboardInterrupt):
            keep_out_of_git(tmp_path)
    assert list(tmp_path.iterdir()) == []

    keep_out_of_git(tmp_path)
    assert (tmp_path / ".gitignore").read_bytes() == b"*\n"
    assert mode_of(tmp_path / ".gitignore") == 0o644, "Git may run as another user"


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def test_a_file_of_an_open_folder_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    """A file that others may read stays one; a new one is as the umask says."""
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o754)
    other = (tmp_path / "a").stat().st_ino
    before = os.umask(0o027)
    try:
        with opened(tmp_path) as folder:
            replace_in(folder, "a", b"new")
            replace_in(folder, "b", b"more", is_new=True)
            with pytest.raises(FileExistsError):
                replace_in(folder, "a", b"x", is_new=True)
    finally:
        os.umask(before)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a": b"new",
        "b": b"more",
    }
    assert [mode_of(tmp_path / name) for name in "ab"] == [0o754, 0o640]
    assert (tmp_path / "a").stat().st_ino != other
    with opened(tmp_path) as folder:
        remove_in(folder, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_full_disk_leaves_a_replaced_file_as_it_was(folder: Path) -> None:
    """And what a killed process left goes, but not what another one is writing."""
    (folder / "a").write_bytes(b"old")
    left, busy = (folder / f".reconciler-{digit * 16}.tmp" for digit in "01")
    left.write_bytes(b"half")
    busy.write_bytes(b"half")

    with opened(folder) as handle, busy.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with files_of_at_most(1000), pytest.raises(OSError, match="File too large"):
            replace_in(handle, "a", b"x" * 5000)

    assert {path.name for path in folder.iterdir()} == {"a", busy.name}
    assert (folder / "a").read_bytes() == b"old"
