"""Files that several environments share are taken apart once, and read as if each were alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.known_files import KnownFiles
from reconciler.manifests.layers import Layers, VariableValue
from reconciler.manifests.loader import load
from reconciler.manifests.manifest import SourceFile
from tests.unit.manifests.trees import write_tree

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

    def noted(file: SourceFile) -> list[Any] | None:
        texts.append(file.text)
        return read(file)

    monkeypatch.setattr(SourceFile, "read", noted)
    known = KnownFiles()

    assert [in_environment(host, known) for host in ("one", "two")] == alone
    assert [texts.count(text) for text in TREE.values()] == [1, 1, 2]
