"""Files of plans: how they are told from manifests, and words that a shell reads again."""

from __future__ import annotations

import os
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
    assert not is_plan_file(str(tmp_path / "missing"))


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
