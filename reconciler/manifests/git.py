"""The root of a Git repository, found without Git."""

from __future__ import annotations

import os
from pathlib import Path


def git_root(path: Path) -> Path | None:
    """Return the nearest folder at or above a path that holds ``.git``, or None."""
    return next((top for top in (path, *path.parents) if os.path.lexists(top / ".git")), None)
