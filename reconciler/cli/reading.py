"""Reading and judging for every command that takes PATHS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from reconciler.cli.output import timed
from reconciler.cli.process_exit import hold
from reconciler.diagnostics import Diagnostic
from reconciler.errors import InvalidManifestsError, UsageError
from reconciler.manifests.loader import load
from reconciler.plan.model import Scope
from reconciler.resources.shard import Shard
from reconciler.state import DesiredState
from reconciler.validation.desired import judge

if TYPE_CHECKING:
    from reconciler.manifests.repository import Repository

DEFAULT_PATHS = ("manifests",)


def read_whole(
    paths: Sequence[str], scope: Scope
) -> tuple[DesiredState, tuple[Diagnostic, ...], Scope]:
    """Return what the manifests declare, the warnings, and the scope with its folders resolved.

    What is declared can tell what the rest of the repository declares, but for other trees.

    Raises:
        InvalidManifestsError: with every finding, warnings included.
        UsageError: a folder of another tree cannot be one.
    """
    desired, warnings = read_desired(paths, scope.shard)
    if not (scope.prune or scope.prune_unmanaged or scope.other_tree):
        return desired, warnings, scope
    from reconciler.manifests.repository import repository_of

    repository = repository_of(paths or DEFAULT_PATHS)
    names = tuple(sorted({_other_tree(repository, path) for path in scope.other_tree}))
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
    paths: Sequence[str], shard: Shard | None = None
) -> tuple[DesiredState, tuple[Diagnostic, ...]]:
    """Return what the manifests declare, or a shard of them, and the warnings about them.

    Raises:
        InvalidManifestsError: with every finding, warnings included.
    """
    with timed("read and validate the manifests"):
        judgement = judge(load(paths or DEFAULT_PATHS, shard))
    hold(judgement)
    if any(finding.is_error for finding in judgement.diagnostics):
        raise InvalidManifestsError(judgement.diagnostics)
    return judgement.desired, judgement.diagnostics
