"""Files that hold secrets: whole or as they were, for their owner alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.apply.durable import (
    AT_ONCE,
    make_folder,
    make_private_folder,
    write_private_files,
)
from reconciler.errors import LocalFileError
from tests.on_disk import watch_the_disk


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder as the sink makes it."""
    made = tmp_path / "secrets"
    make_private_folder(made)
    return made


def test_files_are_written_whole_and_for_their_owner_alone(folder: Path) -> None:
    """Nobody else on the machine may read a secret, whatever the umask of the run."""
    before = os.umask(0)
    try:
        write_private_files(folder, [("a", b"one"), ("b", b"x" * 100_000), ("c", b"")])
    finally:
        os.umask(before)

    assert {path.name: (path.read_bytes(), mode_of(path)) for path in folder.iterdir()} == {
        "a": (b"one", 0o600),
        "b": (b"x" * 100_000, 0o600),
        "c": (b"", 0o600),
    }
    assert mode_of(folder) == 0o700


def test_a_secret_is_on_the_disk_before_it_has_its_name_and_then_the_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal forgets it next: a power cut must find the secret under its name, and whole."""
    seen = watch_the_disk(monkeypatch)

    write_private_files(folder, [("a", b"one"), ("b", b"two")])

    assert sorted(seen[:2]) == [("synced", ".a.tmp"), ("synced", ".b.tmp")]
    assert seen[2:] == [("named", "a"), ("named", "b"), ("synced", "secrets")]


def test_every_file_of_many_is_on_the_disk_before_one_takes_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written several at once; a name never stands for what a power cut would take."""
    names = [f"app-{number}" for number in range(3 * AT_ONCE + 1)]
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        sync(descriptor)
        steps.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    def renamed(path: Path, target: Path) -> Path:
        steps.append(target.name)
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)

    write_private_files(folder, [(name, name.encode()) for name in names])

    many = len(names)
    assert sorted(steps[:many]) == sorted(f".{name}.tmp" for name in names)
    assert steps[many:] == [*names, folder.name]
    assert {path.name: path.read_text() for path in folder.iterdir()} == {n: n for n in names}


def test_a_file_that_others_could_read_is_replaced_by_one_they_cannot(folder: Path) -> None:
    """A copy from a backup may have lost its mode."""
    old = folder / "a"
    old.write_bytes(b"a much longer one")
    old.chmod(0o644)
    with old.open("rb") as reader:
        write_private_files(folder, [("a", b"new")])

        assert reader.read() == b"a much longer one", "who has it open sees all of the old one"
    assert (old.read_bytes(), mode_of(old)) == (b"new", 0o600)


def test_what_a_crash_left_behind_is_written_over(folder: Path) -> None:
    """No copy of a secret stays in a file that nobody looks at, nor in one that others can read."""
    left = folder / ".a.tmp"
    left.write_bytes(b"half of a secret, and longer than the new one")
    left.chmod(0o644)

    write_private_files(folder, [("a", b"new")])

    assert [(path.name, path.read_bytes(), mode_of(path)) for path in folder.iterdir()] == [
        ("a", b"new", 0o600)
    ]


@pytest.mark.parametrize("name", ["a", ".a.tmp"], ids=["in its place", "in the way"])
def test_a_link_is_not_followed(folder: Path, tmp_path: Path, name: str) -> None:
    """Whoever could place one would choose the file that a secret goes to."""
    target = tmp_path / "elsewhere"
    target.write_bytes(b"precious")
    (folder / name).symlink_to(target)

    if name == "a":
        write_private_files(folder, [("a", b"new")])
        assert ((folder / "a").is_symlink(), (folder / "a").read_bytes()) == (False, b"new")
    else:
        with pytest.raises(LocalFileError, match="cannot write into"):
            write_private_files(folder, [("a", b"new")])
    assert target.read_bytes() == b"precious"


def is_a_folder(folder: Path) -> None:
    (folder / "b").mkdir()


def is_gone(folder: Path) -> None:
    folder.rmdir()


@pytest.mark.parametrize("spoil", [is_a_folder, is_gone])
def test_what_cannot_be_written_is_a_clear_error_and_leaves_nothing_half(
    folder: Path, spoil: Callable[[Path], None]
) -> None:
    """The journal keeps the create open, so that the next run delivers its secret."""
    spoil(folder)

    with pytest.raises(LocalFileError) as refused:
        write_private_files(folder, [("a", b"new"), ("b", b"new")])

    assert refused.value.problem.startswith(f"cannot write into {folder}: ")
    assert refused.value.remedy == "Make it a folder this user may write to, with room on the disk."
    assert list(folder.parent.rglob("*.tmp")) == []


FULL = """
import resource, sys
from pathlib import Path
from reconciler.apply.durable import write_private_files
from reconciler.errors import LocalFileError

folder = Path(sys.argv[1])
write_private_files(folder, [("a", b"old")])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_private_files(folder, [("b", b"fits"), ("a", b"x" * 5000)])
except LocalFileError as failure:
    print(failure.problem)
print({path.name: path.read_bytes() for path in folder.iterdir()})
"""


@pytest.mark.untraced
def test_a_full_disk_leaves_every_file_as_it_was(folder: Path) -> None:
    """Half a secret would replace a whole one."""
    result = subprocess.run(
        [sys.executable, "-c", FULL, folder], capture_output=True, text=True, check=False
    )

    assert (result.stderr, result.stdout.splitlines()) == (
        "",
        [f"cannot write into {folder}: File too large", "{'a': b'old'}"],
    )


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777, 0o704])
def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path, mode: int) -> None:
    """Nothing is changed silently: the mode may be what somebody wanted for another reason."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)

    with pytest.raises(LocalFileError) as refused:
        make_private_folder(folder)

    assert (refused.value.problem, refused.value.remedy) == (
        f"{folder} can be read by others (mode {mode:04o})",
        f"Secrets go there: run `chmod 700 {folder}`, or choose another folder.",
    )
    assert mode_of(folder) == mode


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    """A file is where it should be."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(LocalFileError, match=r"cannot make the folder .*: Not a directory"):
        make_private_folder(tmp_path / "file" / "secrets")


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
