"""Whether what was read is a whole tree. Pruning by a part would delete what others declare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.loader import KnownFiles, load
from reconciler.manifests.manifest import SourceFile
from reconciler.manifests.placeholders import Layers, VariableValue
from reconciler.manifests.yaml_source import Trace
from tests.unit.manifests.trees import a_project, write_tree

PROJECT = a_project()


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository, with manifests above it that do not count."""
    write_tree(tmp_path, {"above.yaml": PROJECT, "repository/.git/HEAD": ""})
    repository = tmp_path / "repository"
    monkeypatch.chdir(repository)
    return repository


@pytest.mark.parametrize(
    ("files", "paths", "whole"),
    [
        pytest.param({"m/a.yaml": PROJECT}, ["m"], True, id="a folder alone"),
        pytest.param({"m/a/b.yaml": PROJECT}, ["m/a"], True, id="a folder of a folder"),
        pytest.param({"a.yaml": PROJECT}, ["."], True, id="the repository itself"),
        pytest.param({"m/a.yaml": PROJECT}, ["m/a.yaml"], False, id="one file"),
        pytest.param(
            {"m/a.yaml": PROJECT, "n/a.yaml": a_project("b")},
            ["m", "n/a.yaml"],
            False,
            id="a folder and one file",
        ),
        pytest.param(
            {"m/a.yaml": PROJECT, "m/b/c.yaml": a_project("c")},
            ["m/b"],
            False,
            id="a folder beneath manifests",
        ),
        pytest.param(
            {"a.yaml": PROJECT, "m/b/c.yaml": a_project("c")},
            ["m/b"],
            False,
            id="a folder two levels beneath manifests",
        ),
        pytest.param(
            {"a.yml": PROJECT, "m/c.yaml": a_project("c")}, ["m"], False, id="the other extension"
        ),
        pytest.param(
            {"ci.yaml": "jobs: {}\n", "m/c.yaml": PROJECT}, ["m"], True, id="other YAML above"
        ),
        pytest.param(
            {"a.txt": PROJECT, "m/c.yaml": PROJECT}, ["m"], True, id="another extension above"
        ),
        pytest.param(
            {"a.json": PROJECT, "m/c.yaml": PROJECT}, ["m"], False, id="a manifest in JSON above"
        ),
        pytest.param(
            {"m/a.yaml": PROJECT, "m/b/c.yaml": a_project("c")},
            ["m", "m/b"],
            True,
            id="a folder and a folder in it",
        ),
        pytest.param({"m/a.yaml": "a: ["}, ["m"], False, id="a file that cannot be read"),
        pytest.param({"m/a.yaml": PROJECT, "m/b.yaml": ""}, ["m"], True, id="an empty file"),
        pytest.param({"m/a.yaml": PROJECT}, ["m", "missing"], False, id="a missing path"),
    ],
)
def test_a_tree_is_whole_where_there_is_nothing_above_it(
    repository: Path, files: dict[str, str], paths: list[str], *, whole: bool
) -> None:
    write_tree(repository, files)

    assert load(paths).whole is whole


def test_without_a_repository_the_current_folder_is_the_top(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, {"work/m/n/a.yaml": PROJECT, "work/b.yaml": a_project("b")})
    monkeypatch.chdir(tmp_path / "work" / "m")
    assert load(["n"]).whole
    monkeypatch.chdir(tmp_path / "work")
    assert not load(["m/n"]).whole


def test_outside_of_both_the_folder_above_counts(tmp_path: Path) -> None:
    write_tree(tmp_path, {"other/m/a.yaml": PROJECT, "part/b.yaml": PROJECT})

    assert load([tmp_path / "other" / "m"]).whole
    assert not load([tmp_path / "part"]).whole


def test_a_current_folder_that_is_gone_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, {"other/m/a.yaml": PROJECT, "gone/x": ""})
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone" / "x").unlink()
    (tmp_path / "gone").rmdir()

    loaded = load([tmp_path / "other" / "m"])

    assert len(loaded.manifests) == 1
    assert not loaded.whole


def test_a_configuration_among_the_manifests_is_none(repository: Path) -> None:
    """``reconciler.yaml`` may lie in the folder that it names, and is judged elsewhere."""
    text = "apiVersion: reconciler/v1\nkind: Configuration\nvariables: {a: {default: '${b}'}}\n"
    write_tree(repository, {"m/reconciler.yaml": text, "m/a.yaml": PROJECT})

    loaded = load(["m"])

    assert [manifest.file.name for manifest in loaded.manifests] == ["m/a.yaml"]
    assert (loaded.diagnostics, loaded.whole) == ((), True)


TREE = {
    "a.yaml": "kind: X\nspec: {a: ['${host}', 1], b: {c: '${nope}'}}\n---\nspec: ${host}\n",
    "b.yaml": "kind: X\nspec: {a: true}\n",
    "wrong.yaml": "a: [",
}


def in_environment(host: str, known: KnownFiles | None) -> tuple[Any, ...]:
    value = VariableValue(host, SourceLocation("reconciler.yaml", 1, 1))
    loaded = load(["."], None, Layers(variables={"host": value}), known)
    places = [each.place("spec") for each in loaded.manifests]
    return [each.document for each in loaded.manifests], loaded.diagnostics, places


def test_every_environment_reads_as_if_it_were_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, findings and places; each text is taken apart once, unless it is wrong."""
    monkeypatch.chdir(write_tree(tmp_path, TREE))
    alone = [in_environment(host, None) for host in ("one", "two")]
    texts: list[str] = []
    read = SourceFile.read

    def noted(file: SourceFile) -> Trace:
        texts.append(file.text)
        return read(file)

    monkeypatch.setattr(SourceFile, "read", noted)
    known = KnownFiles()

    assert [in_environment(host, known) for host in ("one", "two")] == alone
    assert [texts.count(text) for text in TREE.values()] == [1, 1, 2]
