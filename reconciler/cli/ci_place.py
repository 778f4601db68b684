"""The place that CI set-ups are for: a repository, its default branch, the folder of one tree.

GitHub and GitLab read their files at the top of a repository. In a folder of a monorepo, ``init``
writes to the top as well. The jobs of each folder have names, files and environments of their own,
so that several trees are side by side; they share the folder that the tool is installed from.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from reconciler.cli.git import default_branch
from reconciler.errors import UsageError
from reconciler.manifests.files import find_configuration, git_root
from reconciler.report.visible import visible

_FOLDER = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._/-]*", re.ASCII)


class Place(NamedTuple):
    """The place of set-ups, and the tree that their jobs are for.

    Attributes:
        top: The top of the repository, from the current folder.
        folder: The folder of the tree, from the top; empty where it is the top.
        branch: The branch whose manifests are applied.
    """

    top: Path
    folder: str
    branch: str

    @property
    def tree(self) -> Path:
        """Return the folder of the tree, from the current folder."""
        return Path(os.path.relpath(self.top / self.folder))

    @property
    def name(self) -> str:
        """Return the folder as a part of names."""
        return self.folder.replace("/", "-")

    @property
    def ours(self) -> str:
        """Return the start of the names of its jobs, files and environments."""
        return f"reconciler-{self.name}" if self.folder else "reconciler"


def place_here() -> Place:
    """Return the place of the tree in the current folder.

    The tree is in the folder of the nearest ``reconciler.yaml``, or in the current one.

    Raises:
        UsageError: the folder has a name that would not be safe in a script.
    """
    here = Path.cwd()
    found = find_configuration(here)
    tree = found.parent if found else here
    root = git_root(here) or tree
    folder = "" if tree == root else tree.relative_to(root).as_posix()
    if folder:
        check_safe("folder", folder)
    return Place(Path(os.path.relpath(root, here)), folder, default_branch(root) or "main")


def check_safe(what: str, name: str, do: str = "Give it a name") -> None:
    """Refuse a name that is not safe in a script, leads out of the repository, or is all of it."""
    if not _FOLDER.fullmatch(name) or name == "." or ".." in name.split("/"):
        raise UsageError(
            f"no jobs can be written for the {what} {visible(name)}",
            remedy=f"{do} of letters, digits and . _ - /: it stands in their scripts.",
        )
