"""The commits of a repository as manifests: written into a fresh folder, read and judged once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from reconciler.cli.configured import (
    NOT_CONFIGURED,
    Configured,
    Need,
    other_service,
    read_configured,
)
from reconciler.cli.manifests import read_whole
from reconciler.cli.policies import policies_of
from reconciler.cli.process import forget_kept
from reconciler.cli.run.form import RunForm
from reconciler.cli.run.memory import Purpose
from reconciler.diagnostics import Diagnostic, SourceLocation, error, name_as_text
from reconciler.errors import (
    InvalidManifestsError,
    PolicyError,
    ReconcilerError,
    RepositoryError,
    UsageError,
    writing,
)
from reconciler.git.mirror import Entry, Mirror
from reconciler.manifests.files import configuration_here
from reconciler.plan.model import Scope
from reconciler.policy.waivers import PolicySet
from reconciler.state import DesiredState

if TYPE_CHECKING:
    from reconciler.configuration.model import Configuration
    from reconciler.loop import Look


@dataclass(frozen=True, slots=True)
class Reading:
    """A commit that was read.

    Attributes:
        configuration: None where it has none, or one that cannot be read.
        desired: None where the commit is not valid; then ``problem`` says why.
        policies: Its policies and waivers; None where they cannot be read.
        look: Searches the rest of the commit for what a prune would delete.
    """

    commit: str
    scope: Scope
    configuration: Configuration | None = None
    is_protected: bool = False
    desired: DesiredState | None = None
    policies: PolicySet | None = None
    look: Look | None = None
    problem: ReconcilerError | None = None


class Commits:
    """Reads commits of a mirror, and keeps what was read of those in use."""

    def __init__(self, mirror: Mirror, purpose: Purpose, form: RunForm) -> None:
        """Make a new folder in that of the state: commits are written into it.

        Raises:
            LocalFileError: that folder cannot be made.
        """
        self._mirror = mirror
        self._service, self._form = purpose.service, form
        self._scope = Scope(tree=purpose.tree, prune=form.prune, environment=purpose.environment)
        self._read: dict[str, Reading] = {}
        state = form.state_folder
        for left in state.glob("commits-*"):  # of a run that was killed
            shutil.rmtree(left, ignore_errors=True)
        remedy = "Name a folder with --state that this user may write to."
        with writing(f"make a folder in {state}", remedy):
            self._folder = Path(tempfile.mkdtemp(prefix="commits-", dir=state))

    def close(self) -> None:
        """Remove what was written."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def folder_of(self, commit: str) -> Path:
        """Return the folder that a commit was written into."""
        return self._folder / commit

    def keep(self, commits: Collection[str]) -> None:
        """Forget all other commits."""
        for commit in self._read.keys() - {*commits}:
            del self._read[commit]
            shutil.rmtree(self.folder_of(commit), ignore_errors=True)

    def read(self, commit: str) -> Reading:
        """Return a commit as it was read; one whose files cannot be had is tried again.

        Raises:
            LocalFileError: the disk does not take them.
        """
        if commit not in self._read:
            folder = self.folder_of(commit)
            shutil.rmtree(folder, ignore_errors=True)  # of a try that ended in the middle
            try:
                left_out = self._mirror.write_out(commit, folder)
            except RepositoryError as problem:
                return Reading(commit, self._scope, problem=problem)
            with chdir(folder):
                self._read[commit] = self._judged(commit, left_out)
            forget_kept()
        return self._read[commit]

    def _judged(self, commit: str, left_out: Sequence[Entry]) -> Reading:
        """Judge what lies in the current folder."""
        paths, scope, configuration, policies = self._form.paths, self._scope, None, None
        try:
            chosen = self._configured()
            configuration = chosen.configuration
            tree = scope.tree or (chosen.declares.tree if chosen.declares else "")
            scope = replace(scope, tree=tree or Scope().tree)
            _refuse_left_out(left_out, paths, chosen)
            if fault := other_service(chosen, self._service):
                raise fault
            policies = policies_of(chosen) or PolicySet()
            desired, _, scope, look = read_whole(paths, scope, chosen)
        except (InvalidManifestsError, PolicyError, UsageError) as problem:
            return Reading(commit, scope, configuration, policies=policies, problem=problem)
        is_protected = chosen.is_protected
        return Reading(commit, scope, configuration, is_protected, desired, policies, look)

    def _configured(self) -> Configured:
        environment, given = self._scope.environment, self._form.variables
        if path := self._form.config_file or configuration_here():
            return read_configured(path, environment, given, Need.ONE)
        if environment or given:
            raise UsageError(
                "the commit has no reconciler.yaml for --env and --var",
                remedy="Add it to the repository, or name it with --config FILE.",
            )
        return NOT_CONFIGURED


def _refuse_left_out(left_out: Sequence[Entry], paths: Sequence[str], chosen: Configured) -> None:
    """Refuse a commit with links or submodules where manifests or policies are read.

    A manifest behind one would be missing, and so would count as no longer declared; a policy
    behind one would not judge.

    Raises:
        InvalidManifestsError: there are some.
    """
    overlay = [chosen.layers.overlay] if chosen.layers.overlay else []
    policies = chosen.configuration.policy_folders if chosen.configuration else ()
    folders = (*(paths or chosen.manifests), *overlay, *policies)
    read = [PurePosixPath(path) for path in folders]
    found = [*_among(left_out, read)]
    if found:
        raise InvalidManifestsError(found)


def _among(left_out: Sequence[Entry], read: Sequence[PurePosixPath]) -> Iterator[Diagnostic]:
    for each in left_out:
        path = PurePosixPath(each.path)
        if any(path.is_relative_to(root) or root.is_relative_to(path) for root in read):
            yield error(
                "GIT-LEFT-OUT",
                f"this {each.kind} is not read, and manifests or policies may be behind it",
                "Put the files themselves here, or move it out of these folders.",
                SourceLocation(name_as_text(each.path)),
            )


def checked_path(flag: str, written: str) -> str:
    """Return a path from the root of the repository in its normal form.

    Raises:
        UsageError: it leads out of the repository.
    """
    path = PurePosixPath(written)
    if not written or path.is_absolute() or ".." in path.parts or "\0" in written:
        raise UsageError(
            f"{flag} {written} is not a path in the repository",
            remedy="Write it from the root of the repository, such as manifests.",
        )
    return str(path)
