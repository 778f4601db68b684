"""Folders around the PATHS of a run. Whether PATHS are a whole tree is tested with the loader."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifests.extent import enclosing, is_configuration, is_whole, is_within
from tests.unit.manifests.trees import a_project, write_tree

CONFIGURATION = "apiVersion: reconciler/v1\nkind: Configuration\nmanifests: m\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_tree(tmp_path, {".git/HEAD": "", "m/a/b/c.yaml": a_project(), "n/a.yaml": a_project("n")})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("above", "whole"),
    [
        pytest.param(CONFIGURATION, True, id="a configuration is no manifest"),
        pytest.param(f"{CONFIGURATION}---\n{a_project('x')}", False, id="and a manifest"),
        pytest.param(f"# Configuration\n{a_project('x')}", False, id="the word alone"),
        pytest.param(f"{CONFIGURATION}a: [", False, id="what cannot be read"),
        pytest.param(a_project().encode("utf-16"), False, id="UTF-16"),
    ],
)
def test_a_configuration_above_the_manifests_does_not_make_them_a_part(
    above: str | bytes, *, whole: bool
) -> None:
    write_tree(Path(), {"reconciler.yaml": above})

    assert is_whole(["m"]) is whole


@pytest.mark.parametrize(
    ("paths", "folders"),
    [
        (["m"], []),
        (["."], []),
        (["m/a"], ["m"]),
        (["m/a/b/c.yaml"], ["m", "m/a", "m/a/b"]),
        (["m/a", "m/a/b"], ["m", "m/a"]),
        (["n"], ["."]),
        (["\0"], []),
    ],
)
def test_the_folders_from_the_root_down_to_a_path(paths: list[str], folders: list[str]) -> None:
    assert [str(Path(root, *parts)) for root, parts in enclosing("m", paths)] == folders


def test_without_a_root_they_start_at_the_top_of_the_repository() -> None:
    assert enclosing("", ["m/a/b", "m", "."]) == [
        (".", ()),
        (".", ("m",)),
        (".", ("m", "a")),
    ]


@pytest.mark.parametrize(
    ("folder", "paths", "within"),
    [("", ["m/a"], True), ("m", ["m"], True), ("m", ["."], True), ("m", ["m/a", "n"], False)],
)
def test_a_root_is_read_whole_or_in_part(folder: str, paths: list[str], *, within: bool) -> None:
    assert is_within(folder, paths) is within


def test_a_configuration_is_told_by_its_kind() -> None:
    assert is_configuration({"kind": "Configuration"})
    assert not any(map(is_configuration, [None, [], {"kind": "Project"}, {}]))
