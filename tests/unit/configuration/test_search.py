"""The search for ``reconciler.yaml``: upwards, and never out of the repository."""

from __future__ import annotations

from pathlib import Path

from reconciler.configuration.search import find_configuration


def test_the_nearest_file_up_to_the_git_root_is_found(tmp_path: Path) -> None:
    """A folder of the repository may have a configuration of its own."""
    outer, root = tmp_path / "reconciler.yaml", tmp_path / "root"
    inner = root / "team" / "deep"
    inner.mkdir(parents=True)
    outer.touch()

    assert find_configuration(inner) is None
    assert find_configuration(tmp_path) == outer
    (root / ".git").touch()
    assert find_configuration(inner) is None
    (root / "reconciler.yaml").touch()
    assert find_configuration(inner) == root / "reconciler.yaml"
    (root / "team" / "reconciler.yaml").symlink_to(outer)
    assert find_configuration(inner) == root / "team" / "reconciler.yaml"
