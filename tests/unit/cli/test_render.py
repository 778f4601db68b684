"""Files of manifests that a command writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.render import as_files, as_stream, check_folder, write_files
from reconciler.errors import LocalFileError
from reconciler.manifests.export import Written
from reconciler.resources.ref import Kind, ResourceRef

ACTION: Any = {
    "apiVersion": "reconciler/v1",
    "kind": "Action",
    "metadata": {"organization": "acme", "name": "greet"},
    "spec": {"script": "function greet() {}\n"},
}
GREET = ResourceRef(Kind.ACTION, "acme", "", "greet")
BESIDE = Written(GREET, "acme/actions.yaml", ACTION, {"script": "scripts/greet.js"})
INLINE = Written(GREET, "acme.yaml", ACTION, {})


def test_a_file_begins_with_its_schema_and_names_a_long_script() -> None:
    files = as_files([BESIDE])

    assert files["acme/scripts/greet.js"] == "function greet() {}\n"
    first, *rest = files["acme/actions.yaml"].splitlines()
    assert first == "# yaml-language-server: $schema=../.schemas/action.schema.json"
    assert "  scriptFile: scripts/greet.js" in rest


def test_a_stream_holds_its_scripts() -> None:
    stream = as_stream([BESIDE, INLINE])

    assert stream.count("function greet() {}") == 2
    assert stream.count("---\n") == 1


def test_files_are_written_with_the_schemas_they_name(tmp_path: Path) -> None:
    write_files(tmp_path / "new", {"acme/a.yaml": "a\n"})

    assert (tmp_path / "new/acme/a.yaml").read_text() == "a\n"
    assert (tmp_path / "new/.schemas/action.schema.json").is_file()


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(LocalFileError, match="cannot write into"):
        write_files(tmp_path, {"a.yaml": "a\n"})
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_to_a_folder_is_not_written_through(tmp_path: Path) -> None:
    """A pull request could bring it, and no manifest behind it would be read."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "acme").symlink_to("../elsewhere")

    with pytest.raises(LocalFileError, match="new/acme is a symbolic link"):
        write_files(tmp_path / "new", {"a.yaml": "a\n", "acme/shop/a.yaml": "a\n"})
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["acme", "elsewhere", "new"]


def test_of_several_links_to_folders_the_first_is_named(tmp_path: Path) -> None:
    names = [f"{letter}{number}" for letter in "abc" for number in range(9)]
    for name in names:
        (tmp_path / name).symlink_to("elsewhere")

    with pytest.raises(LocalFileError, match="/a0 is a symbolic link"):
        write_files(tmp_path, {f"{name}/a.yaml": "a\n" for name in reversed(names)})


def test_a_path_that_cannot_be_looked_at_is_an_error_of_the_folder(tmp_path: Path) -> None:
    """As one below a folder that this user may not enter, which root always may."""
    with pytest.raises(LocalFileError, match="cannot write into"):
        write_files(tmp_path, {f"{'a' * 300}/a.yaml": "a\n"})


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "new").symlink_to("real")

    write_files(tmp_path / "new", {"acme/a.yaml": "a\n"})

    assert (tmp_path / "real/acme/a.yaml").read_text() == "a\n"


def test_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    check_folder(tmp_path, overwrite=False)
    check_folder(tmp_path / "missing", overwrite=False)
    (tmp_path / "a.yaml").touch()

    check_folder(tmp_path, overwrite=True)
    with pytest.raises(LocalFileError, match="is not an empty folder"):
        check_folder(tmp_path, overwrite=False)
