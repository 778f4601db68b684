"""Opening files: what is no plain file is refused with a reason, and nothing is waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.manifests.files import (
    OpeningError,
    Reason,
    find_configuration,
    folder_beneath,
    git_root,
    is_read_only,
    open_folder,
    read_file,
)

LIMIT = 10


def a_link(path: Path) -> None:
    path.with_name("target").write_bytes(b"x")
    path.symlink_to("target")


def a_link_to_a_folder(path: Path) -> None:
    path.with_name("target").mkdir()
    path.symlink_to("target")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(lambda _: None, Reason.MISSING, id="nothing"),
        pytest.param(a_link, Reason.SYMLINK, id="a link"),
        pytest.param(Path.mkdir, Reason.NOT_REGULAR, id="a folder"),
        pytest.param(os.mkfifo, Reason.NOT_REGULAR, id="a pipe that nobody writes to"),
        pytest.param(lambda path: path.write_bytes(b"x" * 11), Reason.TOO_LARGE, id="large"),
    ],
)
def test_only_a_small_regular_file_is_read(
    tmp_path: Path, make: Callable[[Path], object], reason: Reason
) -> None:
    make(tmp_path / "file")

    with (
        open_folder(str(tmp_path)) as folder,
        pytest.raises(OpeningError) as refused,
    ):
        read_file("file", folder, LIMIT)

    assert refused.value.reason is reason


@pytest.mark.parametrize("content", [b"", b"x", b"x" * LIMIT])
def test_the_bytes_of_a_file_are_read_up_to_the_limit(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)

    with open_folder(str(tmp_path)) as folder:
        assert read_file("file", folder, LIMIT) == content


def test_a_file_of_the_system_that_says_no_size_is_read_up_to_the_limit() -> None:
    """Its size is 0 until it is read."""
    with open_folder("/proc/self", follow=True) as folder:
        assert read_file("comm", folder, 100).endswith(b"\n")
        with pytest.raises(OpeningError, match="at most 3 bytes"):
            read_file("comm", folder, 3)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"])
def test_a_name_that_no_file_can_have_is_missing(tmp_path: Path, name: str) -> None:
    with open_folder(str(tmp_path)) as folder, pytest.raises(OpeningError) as refused:
        read_file(name, folder, LIMIT)

    assert refused.value.reason is Reason.MISSING


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (a_link_to_a_folder, Reason.SYMLINK),
        (Path.touch, Reason.NOT_A_FOLDER),
        (lambda _: None, Reason.MISSING),
    ],
)
def test_a_folder_is_opened_without_following_a_link(
    tmp_path: Path, make: Callable[[Path], object], reason: Reason
) -> None:
    make(tmp_path / "folder")

    with pytest.raises(OpeningError) as refused, open_folder(str(tmp_path / "folder")):
        pass

    assert refused.value.reason is reason


def test_a_link_to_a_folder_is_followed_where_the_operator_named_it(tmp_path: Path) -> None:
    a_link_to_a_folder(tmp_path / "folder")

    with open_folder(str(tmp_path / "folder"), follow=True) as folder:
        assert os.fstat(folder).st_ino == (tmp_path / "target").stat().st_ino


def test_the_nearest_folder_that_holds_git_is_the_root(tmp_path: Path) -> None:
    """What is empty is not of Git. A work tree has a file; a link that leads nowhere counts too."""
    inner = tmp_path / "module" / "folder"
    inner.mkdir(parents=True)

    assert git_root(inner) is None
    (tmp_path / ".git" / "refs").mkdir(parents=True)
    (inner / ".git").mkdir()
    (inner.parent / ".git").touch()
    assert git_root(inner) == git_root(tmp_path) == tmp_path
    (inner.parent / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    assert git_root(inner) == inner.parent
    (inner / ".git").rmdir()
    (inner / ".git").symlink_to("nowhere")
    assert git_root(inner) == inner


def test_the_nearest_file_up_to_the_git_root_is_found(tmp_path: Path) -> None:
    """A folder of the repository may have a configuration of its own."""
    outer, root = tmp_path / "reconciler.yaml", tmp_path / "root"
    inner = root / "team" / "deep"
    inner.mkdir(parents=True)
    outer.touch()

    assert find_configuration(inner) is None
    assert find_configuration(tmp_path) == outer
    (root / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    assert find_configuration(inner) is None
    (root / "reconciler.yaml").touch()
    assert find_configuration(inner) == root / "reconciler.yaml"
    (root / "team" / "reconciler.yaml").symlink_to(outer)
    assert find_configuration(inner) == root / "team" / "reconciler.yaml"


def test_no_link_is_followed_on_the_way_to_a_folder(tmp_path: Path) -> None:
    """The folder that the way begins at may be reached by one."""
    (tmp_path / "top" / "a" / "b").mkdir(parents=True)
    (tmp_path / "top" / "a" / "b" / "file").write_bytes(b"x")
    (tmp_path / "top" / "a" / "link").symlink_to("b")
    (tmp_path / "here").symlink_to("top")

    with folder_beneath(tmp_path / "here", ["a", "b"]) as folder:
        assert read_file("file", folder, LIMIT) == b"x"
    for way, reason in ((["a", "link"], Reason.SYMLINK), (["a", "c"], Reason.MISSING)):
        with pytest.raises(OpeningError) as refused, folder_beneath(tmp_path / "top", way):
            pass
        assert refused.value.reason is reason


def test_a_file_that_nobody_may_write_is_read_only(tmp_path: Path) -> None:
    """Also for root, who could."""
    path = tmp_path / "file"
    path.write_bytes(b"x")
    with open_folder(str(tmp_path)) as folder:
        assert not is_read_only("file", folder)
        path.chmod(0o444)
        assert is_read_only("file", folder)
