"""Files that look like manifests and are not read: a note names them, because silence misleads.

Only ``.yaml`` and ``.yml`` in small letters are read, and nothing whose name begins with a dot. A
file or folder is named where its name is nearly that of a manifest and it holds the
``apiVersion`` of one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from reconciler.manifests.opening import OpeningError, open_folder, read_file

LARGEST = 64 * 1024
"""Bytes; a larger file is not looked at."""

MOST = 200
"""Entries of a hidden folder that are looked at."""

DEEPEST = 4
"""Levels of a hidden folder that are looked at."""

_NEARLY = re.compile(r"\.ya?ml(?:$|\.(?!sw[a-z]$))", re.IGNORECASE | re.ASCII)
_FIELD = re.compile(rb"""\bapiVersion["']?\s*:\s*["']?reconciler/v""")
_NEVER = frozenset({".git", ".reconciler", ".venv"})


def skipped_file(name: str, folder: int) -> bool:
    """Return whether a file in an open folder looks like a manifest."""
    if not _NEARLY.search(name):
        return False
    try:
        return _FIELD.search(read_file(name, folder, LARGEST)) is not None
    except OpeningError:
        return False


def skipped_folder(name: str, parent: int) -> bool:
    """Return whether a hidden folder in an open one holds something that looks like a manifest."""
    return name not in _NEVER and next(_manifests(name, parent, DEEPEST, [MOST]), False)


def _manifests(name: str, parent: int, levels: int, left: list[int]) -> Iterator[bool]:
    """Yield True for each manifest in a folder, until so many entries were looked at."""
    try:
        with open_folder(name, parent) as folder, os.scandir(folder) as entries:
            for entry in entries:
                left[0] -= 1
                if left[0] < 0:
                    return
                if entry.is_dir(follow_symlinks=False):
                    if levels > 1:
                        yield from _manifests(entry.name, folder, levels - 1, left)
                elif skipped_file(entry.name, folder):
                    yield True
    except (OpeningError, OSError):
        return
