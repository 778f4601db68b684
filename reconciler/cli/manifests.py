"""The manifests that PATHS name: read and judged, and the commit that they are of.

Git's files are read as they are; Git itself is run only to find out whether the manifests were
edited since. A revision is a remark about a write and never a condition of it: where it cannot be
read it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reconciler.cli.configured import (
    Configured,
    chosen_capabilities,
    judging_capabilities,
    with_first_step,
)
from reconciler.cli.output import timed
from reconciler.cli.process import keep_until_exit
from reconciler.diagnostics import Diagnostic
from reconciler.errors import InvalidManifestsError, UsageError
from reconciler.manifests.discovery import in_one_order
from reconciler.manifests.extent import is_within
from reconciler.manifests.files import git_root
from reconciler.manifests.loader import load
from reconciler.plan.model import Scope
from reconciler.report.plan_document import EDITED
from reconciler.resources.files import read_start
from reconciler.resources.ref import Shard
from reconciler.state import DesiredState
from reconciler.validation.desired import judge, unmet_needs

if TYPE_CHECKING:
    from reconciler.loop import Look
    from reconciler.manifests.repository import Repository


class Made(NamedTuple):
    """Time of a plan in seconds since the epoch, and its commit if known."""

    at: int
    revision: str


def read_whole(
    paths: Sequence[str], scope: Scope, chosen: Configured
) -> tuple[DesiredState, tuple[Diagnostic, ...], Scope, Look | None]:
    """Return what the manifests declare, the warnings, and the scope with its folders resolved.

    Last is a search in the rest of the repository, without other trees, for what a prune deletes.

    Raises:
        InvalidManifestsError: with every finding, warnings included.
        UsageError: a folder of another tree cannot be one, or a part of the tree is to be pruned.
    """
    if scope.is_partial and (scope.prune or scope.prune_unmanaged):
        raise UsageError(
            f"{'--prune' if scope.prune else '--prune-unmanaged'} is for a whole tree, and "
            f"{'--target' if scope.target else '--exclude'} selects a part",
            remedy="Leave one of them out. Nothing was written.",
        )
    desired, warnings = read_desired(paths, chosen, scope.shard)
    if not (scope.prune or scope.prune_unmanaged or scope.other_tree):
        return desired, warnings, scope, None
    from reconciler.manifests.repository import repository_of

    read, layers = paths or chosen.manifests, chosen.layers
    own = [layers.overlay] if layers.overlay else []
    # Overlays of other environments belong to other services.
    repository = repository_of([*read, *own], layers.other_overlays)
    names = tuple(sorted({_other_tree(repository, path) for path in scope.other_tree}))
    if layers.overlay and not is_within(layers.root, read):
        repository = repository.searching(layers.overlay)  # what it adds was not read
    return desired, warnings, replace(scope, other_tree=names), partial(repository.look, names)


def _other_tree(repository: Repository, path: str) -> str:
    from reconciler.manifests.repository import OtherTreeError

    try:
        return repository.other_tree(path)
    except OtherTreeError as fault:
        raise UsageError(
            f"--other-tree {path} {fault}",
            remedy="Name a folder of the same repository that holds manifests of another tree or "
            "service.",
        ) from None


def read_desired(
    paths: Sequence[str], chosen: Configured, shard: Shard | None = None
) -> tuple[DesiredState, tuple[Diagnostic, ...]]:
    """Return what the manifests of an environment declare, or a shard of them, and the warnings.

    Raises:
        InvalidManifestsError: with every finding, warnings included.
    """
    with timed("read and validate the manifests"):
        judgement = judge(load(paths or chosen.manifests, shard, chosen.layers))
    keep_until_exit(judgement)
    if any(finding.is_error for finding in judgement.diagnostics):
        raise InvalidManifestsError(with_first_step(judgement.diagnostics, paths, chosen))
    desired = replace(judgement.desired, capabilities=chosen_capabilities(chosen))
    return desired, (*chosen.findings, *judgement.diagnostics)


def read_offline(
    paths: Sequence[str], chosen: Configured
) -> tuple[DesiredState, tuple[Diagnostic, ...]]:
    """Return the same for a command that asks no service: the chosen capabilities judge as well.

    Raises:
        InvalidManifestsError: with every finding, warnings included.
    """
    desired, warnings = read_desired(paths, chosen)
    unmet = unmet_needs(desired, judging_capabilities(chosen))
    if unmet:
        raise InvalidManifestsError((*unmet, *warnings))
    return desired, warnings


CI_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_REF = re.compile(r"ref: (refs/[A-Za-z0-9._/+@-]{1,200})", re.ASCII)
_MAX_PACKED = 16 * 1024 * 1024


def revision_of(paths: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the commit that manifests are of, with a remark if they were edited; or nothing."""
    if not paths:
        return ""
    first = Path(in_one_order(paths)[0])
    given = (environ.get(variable, "") for variable in CI_VARIABLES)
    commit = next(filter(_COMMIT.fullmatch, given), "") or commit_of(first)
    return f"{commit}{EDITED}" if commit and _is_edited(first.resolve(), paths) else commit


def clean_commit(paths: Sequence[str]) -> str:
    """Return the commit that is checked out, if it is certain that the paths are as it has them.

    No other file of the commit is edited either: what the manifests take in may be anywhere.
    Nothing is returned where Git does not show it.
    """
    if not paths:
        return ""
    first = Path(in_one_order(paths)[0])
    commit, place = commit_of(first), _place(first.resolve())
    if not commit or place is None:
        return ""
    from reconciler.cli.git import TRACKED_ONLY, is_edited

    git, top = place
    found = (is_edited(paths, git, top), is_edited([str(top)], git, top, TRACKED_ONLY))
    return commit if found == (False, False) else ""


def _is_edited(first: Path, paths: Sequence[str]) -> bool:
    place = _place(first)
    if place is None:
        return False
    from reconciler.cli.git import is_edited

    return bool(is_edited(paths, *place))


def _place(path: Path) -> tuple[Path, Path] | None:
    """Return the folder of Git for a path, and the top of its work tree."""
    try:
        top, git = git_root(path), git_folder(path)
    except (OSError, ValueError):
        return None
    return (git, top) if git is not None and top is not None else None


def commit_of(path: Path) -> str:
    """Return the commit that is checked out where a path is, or nothing."""
    return _of_git(path, _head)


def branch_of(path: Path) -> str:
    """Return the branch that is checked out where a path is; empty for none, or without Git."""
    return _of_git(path, _branch)


_HEADS = "ref: refs/heads/"
_OF_ORIGIN = "ref: refs/remotes/origin/"


def default_branch(path: Path) -> str:
    """Return the default branch of the repository that a path is in; empty where it is not known.

    It is the one that ``origin`` was cloned with, else ``main`` or ``master`` if there is one, else
    the branch that is checked out.
    """
    return _of_git(path, _default_branch)


def _of_git(path: Path, read: Callable[[Path], str]) -> str:
    """Return what is read in the folder of Git for a path; nothing where it cannot be read."""
    try:
        git = git_folder(path.resolve())
        return read(git) if git else ""
    except (OSError, ValueError):
        return ""


def _branch(git: Path) -> str:
    found = _REF.fullmatch(_read(git / "HEAD").strip())
    return found.group(1).removeprefix("refs/heads/") if found else ""


def _default_branch(git: Path) -> str:
    top = git / _read(git / "commondir").strip() if (git / "commondir").is_file() else git
    of_origin = top / "refs" / "remotes" / "origin" / "HEAD"
    if of_origin.is_file() and (head := _read(of_origin).strip()).startswith(_OF_ORIGIN):
        return head.removeprefix(_OF_ORIGIN)
    for name in ("main", "master"):
        refs = (f"refs/heads/{name}", f"refs/remotes/origin/{name}")
        if any((top / ref).is_file() or _packed(top / "packed-refs", ref) for ref in refs):
            return name
    head = _read(git / "HEAD").strip()
    return head.removeprefix(_HEADS) if head.startswith(_HEADS) else ""


def git_folder(path: Path) -> Path | None:
    """Return the folder of Git for a path; in a worktree or a submodule a file says where it is."""
    top = git_root(path)
    if top is None:
        return None
    git = top / ".git"
    return git if git.is_dir() else top / _read(git).removeprefix("gitdir:").strip()


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
    for line in _read(path, _MAX_PACKED).splitlines():
        commit, _, name = line.partition(" ")
        if name == ref and _COMMIT.fullmatch(commit):
            return commit
    return ""


def _read(path: Path, most: int = 4096) -> str:
    content, _ = read_start(path, most)
    return content.decode("utf-8", "replace")
