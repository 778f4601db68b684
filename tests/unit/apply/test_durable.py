"""Files that hold secrets: whole or as they were, for their owner alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from reconciler.apply import durable
from reconciler.apply.durable import make_folder, write_private_file, write_synced
from reconciler.errors import LocalFileError
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
        write_private_file(folder / "a", contents["a"])
        write_synced([(folder / name, contents[name]) for name in "bc"])
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

    write_private_file(folder / "a", b"one")

    assert seen == [("synced", ".a.tmp"), ("named", "a"), ("synced", "secrets")]


def test_a_file_that_others_could_read_is_replaced_by_one_they_cannot(folder: Path) -> None:
    """A copy from a backup may have lost its mode."""
    old = folder / "a"
    old.write_bytes(b"a much longer one")
    old.chmod(0o644)
    with old.open("rb") as reader:
        write_private_file(folder / "a", b"new")

        assert reader.read() == b"a much longer one", "who has it open sees all of the old one"
    assert (old.read_bytes(), mode_of(old)) == (b"new", 0o600)


def test_what_a_crash_left_behind_is_written_over(folder: Path) -> None:
    """No copy of a secret stays in a file that nobody looks at, nor in one that others can read."""
    left = folder / ".a.tmp"
    left.write_bytes(b"half of a secret, and longer than the new one")
    left.chmod(0o644)

    write_private_file(folder / "a", b"new")

    assert [(path.name, path.read_bytes(), mode_of(path)) for path in folder.iterdir()] == [
        ("a", b"new", 0o600)
    ]


def test_two_that_write_the_same_file_do_so_one_after_the_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs may save their plan under one name. Both write to the same temporary file."""
    second = Thread(target=write_private_file, args=(folder / "a", b"second"))

    def meanwhile(point: str) -> None:
        if point == "C8" and not second.ident:
            second.start()
            second.join(0.2)  # long enough to spoil the first, were it not kept waiting

    monkeypatch.setattr(durable, "crashpoint", meanwhile)
    write_private_file(folder / "a", b"first, and longer")
    second.join()

    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a": b"second"}


@pytest.mark.parametrize("name", ["a", ".a.tmp"], ids=["in its place", "in the way"])
def test_a_link_is_not_followed(folder: Path, tmp_path: Path, name: str) -> None:
    """Whoever could place one would choose the file that a secret goes to."""
    target = tmp_path / "elsewhere"
    target.write_bytes(b"precious")
    (folder / name).symlink_to(target)

    if name == "a":
        write_private_file(folder / "a", b"new")
        assert ((folder / "a").is_symlink(), (folder / "a").read_bytes()) == (False, b"new")
    else:
        with pytest.raises(LocalFileError, match="cannot write into"):
            write_private_file(folder / "a", b"new")
    assert target.read_bytes() == b"precious"


def is_a_folder(folder: Path) -> None:
    (folder / "a").mkdir()


def is_gone(folder: Path) -> None:
    folder.rmdir()


@pytest.mark.parametrize("spoil", [is_a_folder, is_gone])
def test_what_cannot_be_written_is_a_clear_error_and_leaves_nothing_half(
    folder: Path, spoil: Callable[[Path], None]
) -> None:
    """The journal keeps the create open, so that the next run delivers its secret."""
    spoil(folder)

    with pytest.raises(LocalFileError) as refused:
        write_private_file(folder / "a", b"new")

    assert refused.value.problem.startswith(f"cannot write into {folder}: ")
    assert refused.value.remedy == "Make it a folder this user may write to, with room on the disk."
    assert list(folder.parent.rglob("*.tmp")) == []


def test_a_full_disk_leaves_the_file_as_it_was(folder: Path) -> None:
    """Half a secret would replace a whole one."""
    write_private_file(folder / "a", b"old")

    with files_of_at_most(1000), pytest.raises(LocalFileError) as refused:
        write_private_file(folder / "a", b"x" * 5000)

    assert refused.value.problem == f"cannot write into {folder}: File too large"
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
