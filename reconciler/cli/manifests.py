"""The manifests that PATHS name: read and judged, and the commit that they are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from reconciler.cli.configured import (
    Configured,
    chosen_capabilities,
    judging_capabilities,
    with_first_step,
)
from reconciler.cli.git import TRACKED_ONLY, commit_of, is_edited
from reconciler.cli.output import timed
from reconciler.cli.process import keep_until_exit
from reconciler.diagnostics import Diagnostic
from reconciler.errors import InvalidManifestsError, UsageError
from reconciler.manifests.discovery import in_one_order
from reconciler.manifests.extent import is_within
from reconciler.manifests.loader import load
from reconciler.plan.model import Scope
from reconciler.report.plan_document import EDITED
from reconciler.resources.ref import Shard
from reconciler.state import COMMIT, DesiredState
from reconciler.validation.desired import judge, unmet_needs

if TYPE_CHECKING:
    from reconciler.loop import Look
    from reconciler.manifests.manifest import Manifest
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


def revision_of(paths: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the commit that manifests are of, with a remark if they were edited; or nothing.

    It is kept with what is written, and nothing depends on it.
    """
    if not paths:
        return ""
    first = Path(in_one_order(paths)[0])
    given = (environ.get(variable, "") for variable in CI_VARIABLES)
    commit = next(filter(COMMIT.fullmatch, given), "") or commit_of(first)
    return f"{commit}{EDITED}" if commit and is_edited(paths, first) else commit


def clean_commit(paths: Sequence[str], desired: DesiredState) -> str:
    """Return the commit that is checked out, if it is certain that the paths are as it has them.

    The files of scripts are in the commit as well, and no other file of it is edited: what the
    manifests take in may be anywhere. Nothing is returned where Git does not show it.
    """
    if not paths:
        return ""
    first = Path(in_one_order(paths)[0])
    commit = commit_of(first)
    if not commit:
        return ""
    manifests = (cast("Manifest", each.source) for each in desired.resources.values())
    scripts = {origin.script for each in manifests for origin in each.origins.values()}
    own = is_edited(paths, first, scripts=scripts - {""})
    found = (own, is_edited((), first, TRACKED_ONLY))
    return commit if found == (False, False) else ""
