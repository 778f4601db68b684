"""The manifests that PATHS name: read and judged, and the commit that they are of.

Git's files are read as they are; no program is run. A revision is a remark about a write and never
a condition of it: where it cannot be read it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reconciler.cli.configuration_options import chosen_capabilities, judging_capabilities
from reconciler.cli.configured import Configured
from reconciler.cli.output import timed
from reconciler.cli.process import keep_until_exit
from reconciler.diagnostics import Diagnostic
from reconciler.errors import InvalidManifestsError, UsageError
from reconciler.manifests.discovery import in_one_order
from reconciler.manifests.extent import is_within
from reconciler.manifests.loader import load
from reconciler.plan.model import Scope
from reconciler.resources.ref import Shard
from reconciler.state import DesiredState
from reconciler.validation.desired import judge, unmet_needs

if TYPE_CHECKING:
    from reconciler.manifests.repository import Repository


class Made(NamedTuple):
    """Time of a plan in seconds since the epoch, and its commit if known."""

    at: int
    revision: str


def read_whole(
    paths: Sequence[str], scope: Scope, chosen: Configured
) -> tuple[DesiredState, tuple[Diagnostic, ...], Scope]:
    """Return what the manifests declare, the warnings, and the scope with its folders resolved.

    The desired state can look up what the rest of the repository declares, without other trees.

    Raises:
        InvalidManifestsError: with every finding, warnings included.
        UsageError: a folder of another tree cannot be one.
    """
    desired, warnings = read_desired(paths, chosen, scope.shard)
    if not (scope.prune or scope.prune_unmanaged or scope.other_tree):
        return desired, warnings, scope
    from reconciler.manifests.repository import repository_of

    read, layers = paths or chosen.manifests, chosen.layers
    # Overlays of other environments belong to other services.
    repository = repository_of([*read, *layers.overlays])
    names = tuple(sorted({_other_tree(repository, path) for path in scope.other_tree}))
    if layers.overlay and not is_within(layers.root, read):
        repository = repository.searching(layers.overlay)  # what it adds was not read
    desired = replace(desired, look_elsewhere=partial(repository.look, names))
    return desired, warnings, replace(scope, other_tree=names)


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
        raise InvalidManifestsError(judgement.diagnostics)
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
