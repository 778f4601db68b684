"""Files of the service that appear whole or not at all, and stay."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.service.eventstore.errors import StoreUnusableError
from reconciler.service.eventstore.files import is_there, publish, publish_over, temporary_file
from tests.on_disk import watch_the_disk


@pytest.mark.parametrize("put", [publish, publish_over])
def test_a_finished_file_has_its_name_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path, Path], None]
) -> None:
    """Its content is on the disk before it has the name, and the name before anybody is told."""
    target = tmp_path / "identity.db"
    with temporary_file(target) as unfinished:
        unfinished.write_bytes(b"whole")
        seen = watch_the_disk(monkeypatch)
        put(unfinished, target)

    assert seen == [
        ("synced", unfinished.name),
        ("named", "identity.db"),
        ("synced", tmp_path.name),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["identity.db"]


def test_what_cannot_be_removed_keeps_nothing_else_that_was_left_behind(tmp_path: Path) -> None:
    """A pipe, and in a shared folder a file of another user, have such a name as well."""
    names = [tmp_path / f".identity.db.{name * 16}" for name in "0123456789"]
    pipes = {path.name for path in (names[0], names[-1])}  # folders are listed in any order
    for path in names:
        (os.mkfifo if path.name in pipes else Path.touch)(path)

    with temporary_file(tmp_path / "identity.db"):
        pass

    assert {path.name for path in tmp_path.iterdir()} == pipes


def test_a_file_is_there_or_it_is_not(tmp_path: Path) -> None:
    """Also where a link leads to nothing, or a file stands in the place of the folder."""
    (tmp_path / "identity.db").touch()
    (tmp_path / "link").symlink_to("missing")

    assert is_there(tmp_path / "identity.db")
    assert not is_there(tmp_path / "missing" / "identity.db")
    assert not is_there(tmp_path / "link")
    assert not is_there(tmp_path / "identity.db" / "identity.db")


def test_a_file_that_cannot_be_looked_for_is_not_taken_for_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan against an empty store in its place would create everything a second time."""

    def stat(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", stat)

    with pytest.raises(StoreUnusableError, match="cannot be opened: Permission denied"):
        is_there(tmp_path / "identity.db")
