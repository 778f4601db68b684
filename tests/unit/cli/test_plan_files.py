"""Files of plans: how they are told from manifests, and words that a shell reads again."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from reconciler.cli import plan_files
from reconciler.cli.plan_files import is_plan_file, open_plan_file
from reconciler.errors import LocalFileError


def test_a_plan_file_is_told_from_manifests(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    (tmp_path / "web.yaml").write_text("kind: Action\n")

    assert is_plan_file(str(tmp_path / "plan.json"))
    assert not is_plan_file(str(tmp_path / "web.yaml"))
    assert not is_plan_file(str(tmp_path))
    for name in ("missing", "missing.yaml", "missing.yml", "a.b/missing"):
        assert not is_plan_file(str(tmp_path / name))
    for name in ("missing.json", "missing.plan"):
        assert is_plan_file(str(tmp_path / name))


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("manifests/acme", "manifests/acme"),
        ("my files", "'my files'"),
        (os.fsdecode(b"caf\xe9/a b"), r"$'caf\xe9/a\x20b'"),
    ],
)
def test_a_shell_reads_a_word_as_it_was_given(word: str, written: str) -> None:
    assert plan_files._quoted(word) == written


def test_a_file_that_is_no_plan_cannot_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    path.write_text("{}")

    with pytest.raises(LocalFileError, match="cannot be used"):
        open_plan_file(str(path))


def test_a_plan_is_not_saved_over_a_folder(tmp_path: Path) -> None:
    with pytest.raises(LocalFileError, match="is a folder"):
        plan_files._save(str(tmp_path), b"")


def a_link(path: Path) -> None:
    path.symlink_to("/dev/null")


def a_link_to_a_file(path: Path) -> None:
    path.with_name("elsewhere").write_bytes(b"precious")
    path.symlink_to("elsewhere")


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to("missing")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name)  # a socket's path has at most 107 characters


@pytest.mark.parametrize("place", [a_link, a_link_to_a_file, a_link_to_nothing, a_pipe, a_socket])
def test_only_a_regular_file_is_replaced(tmp_path: Path, place: Callable[[Path], None]) -> None:
    """Root would replace /dev/stdout, which is a link, or /dev/null for the whole machine."""
    path = tmp_path / "plan"
    place(path)
    before = path.lstat()

    with pytest.raises(LocalFileError) as refused:
        plan_files._save(str(path), b"{}")

    assert refused.value.problem == f"{path} is not a regular file"
    assert (path.lstat().st_mode, path.lstat().st_ino) == (before.st_mode, before.st_ino)


def test_a_file_that_is_removed_meanwhile_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan"
    path.write_bytes(b"an earlier plan")
    look = Path.lstat

    def remove_and_look(self: Path) -> os.stat_result:
        if self == path:
            path.unlink(missing_ok=True)
        return look(self)

    monkeypatch.setattr(Path, "lstat", remove_and_look)
    plan_files._save(str(path), b"{}")

    assert path.read_bytes() == b"{}"


def test_a_regular_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "plan"
    path.write_bytes(b"an earlier plan")

    plan_files._save(str(path), b"{}")

    assert path.read_bytes() == b"{}"


def test_what_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    """The plan was made and shown; only its file is missing."""
    folder = tmp_path / "missing"

    with pytest.raises(LocalFileError) as refused:
        plan_files._save(str(folder / "plan.bin"), b"{}")

    assert refused.value.problem == f"cannot write into {folder}: No such file or directory"
    assert refused.value.remedy == "Make it a folder this user may write to, with room on the disk."
