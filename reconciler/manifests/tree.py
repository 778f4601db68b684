"""Telling a whole tree from a part of one that was read on its own.

To prune by a part would delete what the other parts declare.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from reconciler.manifests.discovery import EXTENSIONS, MAX_FILE, is_folder
from reconciler.manifests.opening import OpeningError, open_folder, read_file

_MARK = b"apiVersion: reconciler/"


def is_whole(paths: Sequence[str]) -> bool:
    """Return whether the paths are folders above which there are no manifests."""
    if not all(map(is_folder, paths)):
        return False
    try:
        roots = {Path(path).resolve() for path in paths}
        return not any(_holds_manifests(folder) for path in roots for folder in _above(path, roots))
    except OSError:
        return False  # a folder went away in the meantime, the current one perhaps


def _above(path: Path, roots: Collection[Path]) -> Iterator[Path]:
    """Yield the folders above a path, up to the top of the repository or the current folder."""
    top = _top_of(path)
    for folder in path.parents if path != top else ():
        if folder in roots:
            return  # it is read anyway, and looks further up itself
        yield folder
        if folder == top:
            return


def _top_of(path: Path) -> Path:
    """Return the highest folder that can belong to the same tree."""
    for folder in (path, *path.parents):
        if os.path.lexists(folder / ".git"):
            return folder
    here = Path.cwd()
    return here if here in path.parents else path.parent


def _holds_manifests(folder: Path) -> bool:
    try:
        with open_folder(str(folder), follow=True) as handle, os.scandir(handle) as listing:
            names = [entry.name for entry in listing if entry.name.endswith(EXTENSIONS)]
            return any(_is_manifest(name, handle) for name in names)
    except (OpeningError, OSError):
        return False


def _is_manifest(name: str, folder: int) -> bool:
    try:
        return _MARK in read_file(name, folder, MAX_FILE)
    except OpeningError:
        return False
