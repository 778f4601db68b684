"""Which files are read, in which order, and what happens to everything that is no plain file."""

from __future__ import annotations

import gc
import os
import socket
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from reconciler.diagnostics import Severity, SourceLocation
from reconciler.manifests.discovery import DEEPEST, MAX_FILE, MAX_FOLDERS, MOST
from reconciler.manifests.files import OpeningError, open_folder, read_file
from reconciler.manifests.loader import load
from reconciler.manifests.manifest import Loaded
from tests.unit.manifests.trees import a_project, codes, write_tree


def names(loaded: Loaded) -> list[str]:
    return [manifest.file.name for manifest in loaded.manifests]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder ``tree`` with a manifest in it, seen from the folder above."""
    monkeypatch.chdir(tmp_path)
    return write_tree(tmp_path / "tree", {"shop.yaml": a_project()})


def test_folders_are_walked_by_name_whatever_the_disk_says(tree: Path) -> None:
    """Two machines give the same order."""
    files = ["b.yaml", "a.yml", "Z.yaml", "é.yaml", "a/x.yaml", "a.b/x.yaml"]
    write_tree(tree, {name: a_project(name) for name in files})

    assert names(load(["tree"])) == [
        *("tree/Z.yaml", "tree/a/x.yaml", "tree/a.b/x.yaml", "tree/a.yml", "tree/b.yaml"),
        *("tree/shop.yaml", "tree/é.yaml"),
    ]


def test_only_manifests_are_read(tree: Path) -> None:
    write_tree(
        tree,
        {
            ".hidden.yaml": "a: [",
            ".git/config.yaml": "a: [",
            "script.js": "(",
            "notes.txt": "a: [",
            "backup.yaml~": "a: [",
        },
    )

    loaded = load(["tree"])

    assert names(loaded) == ["tree/shop.yaml"]
    assert loaded.diagnostics == ()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Q.YAML", "tree/Q.YAML"),
        ("x.yml.txt", "tree/x.yml.txt"),
        ("a/web.yaml.bak", "tree/a/web.yaml.bak"),
        (".web.yaml", "tree/.web.yaml"),
        (".old/acme/web.yaml", "tree/.old/"),
        (".old/web.YML", "tree/.old/"),
        (".git/web.yaml", ""),
        ("notes.txt", ""),
        (".web.yaml.swp", ""),
    ],
)
def test_what_looks_like_a_manifest_and_is_not_read_is_named(
    tree: Path, name: str, shown: str
) -> None:
    """Silence would look as if it had been read."""
    write_tree(tree, {name: a_project("lost")})

    loaded = load(["tree"])

    assert names(loaded) == ["tree/shop.yaml"]
    assert [str(finding.location) for finding in loaded.diagnostics] == ([shown] if shown else [])
    assert {finding.severity for finding in loaded.diagnostics} <= {Severity.NOTE}


def test_a_hidden_folder_is_not_searched_for_ever(tree: Path) -> None:
    """Only so many entries and levels; a link in it is not followed."""
    write_tree(tree, {f".many/n{at}.txt": "" for at in range(MOST + 1)})
    write_tree(tree, {".deep/" + "a/" * DEEPEST + "web.yaml": a_project("lost")})
    (tree / ".linked").mkdir()
    (tree / ".linked" / "web.yaml").symlink_to(tree / "shop.yaml")
    (tree / ".link").symlink_to(tree)

    assert load(["tree"]).diagnostics == ()


def test_a_file_that_is_named_is_read_whatever_its_extension(tree: Path) -> None:
    write_tree(tree, {"shop.txt": a_project()})

    assert names(load(["tree/shop.txt"])) == ["tree/shop.txt"]


@pytest.mark.parametrize(
    ("paths", "shown"),
    [
        pytest.param(["tree"], "tree/shop.yaml", id="a folder"),
        pytest.param(["tree/"], "tree/shop.yaml", id="a folder with a slash"),
        pytest.param(["./tree"], "./tree/shop.yaml", id="a folder with a dot"),
        pytest.param(["tree/shop.yaml"], "tree/shop.yaml", id="a file"),
        pytest.param([Path("tree")], "tree/shop.yaml", id="a path object"),
    ],
)
def test_names_are_shown_as_they_were_typed(
    tree: Path, paths: list[str | Path], shown: str
) -> None:
    assert tree.is_dir()
    assert names(load(paths)) == [shown]


def test_the_current_folder_has_no_name(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)

    assert names(load(["."])) == ["shop.yaml"]
    assert names(load(["shop.yaml"])) == ["shop.yaml"]


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param(["tree", "tree"], id="a folder twice"),
        pytest.param(["tree", "./tree/"], id="a folder in two spellings"),
        pytest.param(["tree", "tree/shop.yaml"], id="a folder and a file in it"),
        pytest.param(["tree/../tree", "tree"], id="a folder by a detour"),
    ],
)
def test_a_file_reached_twice_is_read_once(tree: Path, paths: list[str]) -> None:
    assert tree.is_dir()

    loaded = load(paths)

    assert len(loaded.manifests) == 1
    assert loaded.diagnostics == ()


def test_a_folder_without_manifests_is_told(tree: Path) -> None:
    """To an empty tree everything in the service would be unmanaged."""
    (tree / "shop.yaml").unlink()
    write_tree(tree, {"inner/readme.md": "nothing"})

    loaded = load(["tree"])

    assert codes(loaded.diagnostics) == ["FILE-NONE"]
    assert not loaded.whole


@pytest.mark.parametrize("content", ["", "# nothing\n", "---\n"])
def test_a_file_without_manifests_is_a_warning(tree: Path, content: str) -> None:
    write_tree(tree, {"empty.yaml": content})

    [finding] = load(["tree"]).diagnostics

    assert (finding.code, finding.is_error) == ("FILE-EMPTY", False)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("missing", "FILE-MISSING", id="missing"),
        pytest.param("tree/missing.yaml", "FILE-MISSING", id="a missing file"),
        pytest.param("missing/a.yaml", "FILE-MISSING", id="a file of a missing folder"),
        pytest.param("tree/shop.yaml/a.yaml", "FILE-NOT-A-FOLDER", id="a file used as a folder"),
        pytest.param("tree\0", "FILE-MISSING", id="a NUL"),
        pytest.param("", "FILE-MISSING", id="nothing"),
        pytest.param("x" * 5000, "FILE-UNREADABLE", id="a name too long"),
        pytest.param("/dev/null", "FILE-NOT-REGULAR", id="a device"),
    ],
)
def test_a_path_that_cannot_be_read_is_told(tree: Path, path: str, code: str) -> None:
    assert tree.is_dir()

    loaded = load([path])

    assert codes(loaded.diagnostics) == [code]
    assert not loaded.whole


def test_pipes_sockets_and_devices_never_make_us_wait(tree: Path) -> None:
    os.mkfifo(tree / "pipe.yaml")
    with socket.socket(socket.AF_UNIX) as server:
        with chdir(tree):
            server.bind("socket.yaml")  # a socket's path has at most 107 characters
        before = time.monotonic()

        loaded = load(["tree"])

    assert time.monotonic() - before < 2
    assert codes(loaded.diagnostics) == ["FILE-NOT-REGULAR", "FILE-NOT-REGULAR"]
    assert names(loaded) == ["tree/shop.yaml"]


def test_links_are_told_and_not_followed(tree: Path) -> None:
    """A pull request could point them at anything on the machine."""
    outside = write_tree(tree.parent / "outside", {"secret.yaml": a_project("secret")})
    (tree / "file.yaml").symlink_to(outside / "secret.yaml")
    (tree / "folder").symlink_to(outside)
    (tree / "folder.yaml").symlink_to(outside)
    (tree / "loop.yaml").symlink_to(tree / "loop.yaml")
    (tree / "broken.yaml").symlink_to("nowhere")
    (tree / "environment.yaml").symlink_to("/proc/self/environ")
    (tree / "readme").symlink_to("shop.yaml")

    loaded = load(["tree"])

    assert codes(loaded.diagnostics) == ["FILE-SYMLINK"] * 6
    assert names(loaded) == ["tree/shop.yaml"]
    assert not loaded.whole


def test_a_path_that_is_a_link_is_not_followed_either(tree: Path) -> None:
    """The path is usually the default, and what stands there is the pull request's."""
    (tree.parent / "manifests").symlink_to(tree)

    assert codes(load(["manifests"]).diagnostics) == ["FILE-SYMLINK"]
    assert codes(load(["manifests/"]).diagnostics) == ["FILE-SYMLINK"]


def test_what_may_not_be_read_is_told(tree: Path) -> None:
    """Whoever runs this as root may read everything."""
    write_tree(tree, {"locked/a.yaml": a_project("a"), "b.yaml": a_project("b")})
    (tree / "b.yaml").chmod(0)
    (tree / "locked").chmod(0)
    expected = [] if os.geteuid() == 0 else ["FILE-UNREADABLE", "FILE-UNREADABLE"]
    try:
        assert codes(load(["tree"]).diagnostics) == expected
    finally:
        (tree / "locked").chmod(0o700)


def test_a_file_just_too_large_is_told(tree: Path) -> None:
    filler = "# " + "x" * 100 + "\n"
    fits = (a_project("fits") + filler * (MAX_FILE // 100))[:MAX_FILE]
    write_tree(tree, {"fits.yaml": fits, "large.yaml": fits + "\n"})

    loaded = load(["tree"])

    assert codes(loaded.diagnostics) == ["FILE-TOO-LARGE"]
    assert names(loaded) == ["tree/fits.yaml", "tree/shop.yaml"]


def test_folders_have_a_limit_too(tree: Path) -> None:
    write_tree(tree, {"a/" * MAX_FOLDERS + "x.yaml": a_project("x")})
    assert codes(load(["tree"]).diagnostics) == []

    write_tree(tree, {"a/" * (MAX_FOLDERS + 1) + "y.yaml": a_project("y")})
    assert codes(load(["tree"]).diagnostics) == ["FILE-TOO-DEEP"]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(b"line\nbreak.yaml", id="a line break"),
        pytest.param(b"\x1b[31mred.yaml", id="an escape"),
        pytest.param(b"\xff.yaml", id="a byte that is not UTF-8"),
        pytest.param("\u202e.yaml".encode(), id="a direction mark"),
    ],
)
def test_odd_names_of_files_are_names(tree: Path, name: bytes) -> None:
    """Whoever prints them makes them visible; here half characters are, that JSON would refuse."""
    (tree / os.fsdecode(name)).write_text("a: [", encoding="utf-8")

    [finding] = load(["tree"]).diagnostics

    assert finding.location is not None
    shown = os.fsdecode(name).replace("\udcff", "\\u{dcff}")
    assert finding.location.file == f"tree/{shown}"
    assert finding.location.line == 2


def test_a_folder_that_looks_like_a_file_is_a_folder(tree: Path) -> None:
    write_tree(tree, {"folder.yaml/a.yaml": a_project("a")})

    assert names(load(["tree"])) == ["tree/folder.yaml/a.yaml", "tree/shop.yaml"]


@pytest.mark.parametrize(
    ("content", "place"),
    [
        pytest.param(a_project().encode("utf-16"), (1, 1), id="UTF-16"),
        pytest.param(b"a: 1\nb: \xff", (2, 4), id="a byte that is not UTF-8"),
        pytest.param("a: b\u2028c".encode(), (1, 5), id="a hidden line break"),
    ],
)
def test_a_file_that_is_no_text_is_told_and_the_others_are_read(
    tree: Path, content: bytes, place: tuple[int, int]
) -> None:
    write_tree(tree, {"a.yaml": content})

    loaded = load(["tree"])

    [finding] = loaded.diagnostics
    assert finding.location == SourceLocation("tree/a.yaml", *place)
    assert names(loaded) == ["tree/shop.yaml"]
    assert not loaded.whole


def test_a_file_that_is_removed_while_its_folder_is_looked_at_is_left_out(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor keeps its own file for a moment beside the one that it writes."""
    write_tree(tree, {"inner/own.yaml": a_project("own"), "short-lived.yaml": a_project("gone")})
    scandir = os.scandir

    @contextmanager
    def scan(folder: int) -> Iterator[list[os.DirEntry[str]]]:
        with scandir(folder) as listing:
            entries = list(listing)
        if any(entry.name == "short-lived.yaml" for entry in entries):
            (tree / "short-lived.yaml").unlink()
        yield entries

    (tree / ".git" / "refs").mkdir(parents=True)
    monkeypatch.setattr(os, "scandir", scan)
    loaded = load(["tree/inner"])

    assert names(loaded) == ["tree/inner/own.yaml"]
    assert loaded.diagnostics == ()


def test_a_file_whose_size_is_made_up_is_read_to_its_end(tree: Path) -> None:
    """Such as one that is still being written; here, one of the kernel's, of size 0."""
    assert tree.is_dir()
    with open_folder("/proc/self", follow=True) as handle:
        assert b"Name:" in read_file("status", handle, MAX_FILE)
        with pytest.raises(OpeningError, match="too large"):
            read_file("status", handle, 10)


def test_loading_leaves_the_collector_as_it_was(tree: Path) -> None:
    assert tree.is_dir()
    gc.disable()
    try:
        load(["tree"])
        assert not gc.isenabled()
    finally:
        gc.enable()
    load(["tree"])
    assert gc.isenabled()


@pytest.mark.slow
def test_one_bad_file_among_ten_thousand_is_the_one_that_is_named(tmp_path: Path) -> None:
    for folder in range(100):
        (tmp_path / f"{folder:02}").mkdir()
    for number in range(10_000):
        path = tmp_path / f"{number % 100:02}" / f"{number:05}.yaml"
        path.write_text(a_project(f"p-{number}"), encoding="utf-8")
    bad = tmp_path / "50" / "05050.yaml"
    bad.write_text(a_project("p-5050") + "spec: {a: 1, a: 2}\n", encoding="utf-8")

    loaded = load([tmp_path])

    [finding] = loaded.diagnostics
    assert len(loaded.manifests) == 9999
    assert finding.code == "YAML-DUPLICATE-KEY"
    assert finding.location == SourceLocation(str(bad), 6, 14)
