"""Schemas beside the package, and extras that are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.kinds.fields import KINDS
from reconciler.resources import installation
from reconciler.resources.installation import (
    EXTRAS,
    WHEEL,
    how_to_install,
    is_checkout,
    missing_modules,
    schema_path,
)
from tests.rows import each_row


@each_row("name", [*(row.schema for row in KINDS.values()), "manifest", "patch"])
def test_a_schema_is_a_file_of_its_name(name: str) -> None:
    assert schema_path(name).name == f"{name}.schema.json"
    assert schema_path(name).is_file()


def test_the_way_to_install_is_that_of_this_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel carries the schemas inside; nothing is fetched for the tool itself."""
    inside, beside = tmp_path / "package", tmp_path / "checkout"
    monkeypatch.setattr(installation, "_FOLDERS", (inside, beside))
    beside.mkdir()
    assert is_checkout()
    assert how_to_install("serve").endswith("make extras")

    inside.mkdir()
    assert not is_checkout()
    assert f"./{WHEEL}[serve]" in how_to_install("serve")


def test_missing_modules_are_named_without_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "find_spec", lambda name: None if name == "h2" else name)

    assert missing_modules("serve") == ["h2"]
    assert [missing_modules(extra) for extra in EXTRAS if extra != "serve"] == [[], [], []]
