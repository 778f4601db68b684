"""The place of ``reconciler.yaml``: in the current folder, or above it in the same repository."""

from __future__ import annotations

import os
from pathlib import Path

from reconciler.manifests.git import git_root

FILE = "reconciler.yaml"


def find_configuration(start: Path) -> Path | None:
    """Return the nearest ``reconciler.yaml`` at or above a folder, or None.

    The search ends at the Git root. Without Git only the folder itself is looked at: what lies
    above it may belong to another user.
    """
    top = git_root(start)
    folders = [start] if top is None else [start, *start.parents]
    for folder in folders:
        if os.path.lexists(folder / FILE):
            return folder / FILE
        if folder == top:
            break
    return None
