"""The revision of the manifests: what CI says, or the commit that Git has checked out.

Git's files are read as they are; no program is run. Whatever cannot be read leaves the revision
out, which is a remark about a write and never a condition of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from reconciler.manifests.discovery import in_one_order

CI_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_REF = re.compile(r"ref: (refs/[A-Za-z0-9._/+@-]{1,200})", re.ASCII)
_MAX_PACKED = 16 * 1024 * 1024


def revision_of(paths: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the commit that manifests are of, or nothing."""
    for variable in CI_VARIABLES:
        if _COMMIT.fullmatch(environ.get(variable, "")):
            return environ[variable]
    return commit_of(Path(in_one_order(paths)[0])) if paths else ""


def commit_of(path: Path) -> str:
    """Return the commit that is checked out where a path is, or nothing."""
    try:
        git = _git_folder(path.resolve())
        return _head(git) if git else ""
    except (OSError, ValueError):
        return ""


def _git_folder(path: Path) -> Path | None:
    for folder in (path, *path.parents):
        git = folder / ".git"
        if git.is_dir():
            return git
        if git.is_file():  # a worktree or a submodule: the file says where
            named = _read(git).removeprefix("gitdir:").strip()
            return folder / named
    return None


def _head(git: Path) -> str:
    head = _read(git / "HEAD").strip()
    found = _REF.fullmatch(head)
    if found is None:
        return head if _COMMIT.fullmatch(head) else ""
    ref = found.group(1)
    if ".." in ref:
        return ""
    common = git / "commondir"
    places = [git, git / _read(common).strip()] if common.is_file() else [git]
    for place in places:
        loose = place / ref
        if loose.is_file():
            commit = _read(loose).strip()
            return commit if _COMMIT.fullmatch(commit) else ""
    return _packed(places[-1] / "packed-refs", ref)


def _packed(path: Path, ref: str) -> str:
    if not path.is_file() or path.stat().st_size > _MAX_PACKED:
        return ""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        commit, _, name = line.partition(" ")
        if name == ref and _COMMIT.fullmatch(commit):
            return commit
    return ""


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(4096)
