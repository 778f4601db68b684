"""The nearest folder with ``.git`` is the root, whatever ``.git`` is."""

from __future__ import annotations

from pathlib import Path

from reconciler.manifests.git import git_root


def test_the_nearest_folder_that_holds_git_is_the_root(tmp_path: Path) -> None:
    """A work tree has a file of this name, and a link that leads nowhere counts too."""
    inner = tmp_path / "module" / "folder"
    inner.mkdir(parents=True)

    assert git_root(inner) is None
    (tmp_path / ".git").mkdir()
    assert git_root(inner) == git_root(tmp_path) == tmp_path
    (inner.parent / ".git").write_text("gitdir: elsewhere", encoding="utf-8")
    assert git_root(inner) == inner.parent
    (inner / ".git").symlink_to("nowhere")
    assert git_root(inner) == inner
