"""The revision of manifests: from CI, or from Git's own files, without running a program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reconciler.cli.git import commit_of
from reconciler.cli.manifests import revision_of

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER = "f" * 40


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "manifests" / "acme").mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    return folder


def test_the_commit_that_is_checked_out_is_found_from_any_folder_beneath(repository: Path) -> None:
    """On a branch, packed or not, and on none."""
    head = git(repository, "rev-parse", "HEAD")

    assert commit_of(repository / "manifests" / "acme") == head
    git(repository, "pack-refs", "--all")
    assert commit_of(repository) == head
    git(repository, "checkout", "--quiet", "--detach")
    assert commit_of(repository) == head


def test_a_worktree_has_a_commit_of_its_own(repository: Path, tmp_path: Path) -> None:
    """Its .git is a file that says where to look."""
    work = tmp_path / "work"
    git(repository, "worktree", "add", "--quiet", "-b", "topic", str(work))
    git(work, "commit", "--quiet", "--allow-empty", "--message", "second")

    assert commit_of(work) == git(work, "rev-parse", "HEAD")
    assert commit_of(work) != commit_of(repository)
    git(repository, "pack-refs", "--all")
    assert commit_of(work) == git(work, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    "head",
    [
        "", "ref: refs/heads/none", "ref: refs/../../secret", "ref: /etc/passwd", "x" * 40,
        COMMIT + "0", "ref: refs/heads/\u202e", "ref: refs/heads/a b",
    ],
)  # fmt: skip
def test_a_head_that_cannot_be_read_leaves_the_revision_out(tmp_path: Path, head: str) -> None:
    """It is a remark, never a condition; and never what some other file holds."""
    (tmp_path / "secret").write_text(COMMIT)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)

    assert commit_of(tmp_path) == ""


def test_without_git_there_is_no_revision(tmp_path: Path) -> None:
    """Manifests need no repository."""
    assert commit_of(tmp_path / "missing") == ""


def test_ci_knows_best(repository: Path) -> None:
    """On a pull request Git has a merge checked out that nobody else knows."""
    paths = [str(repository)]

    assert revision_of(paths, {"GITHUB_SHA": COMMIT, "CI_COMMIT_SHA": OTHER}) == COMMIT
    assert revision_of(paths, {"CI_COMMIT_SHA": OTHER}) == OTHER
    assert revision_of(paths, {"GITHUB_SHA": "$(id)"}) == commit_of(repository)
    assert revision_of([], {}) == ""
