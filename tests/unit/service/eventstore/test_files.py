"""Files of the service that appear whole or not at all, and stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.service.eventstore.files import publish, publish_over, temporary_file
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
