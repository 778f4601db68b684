"""Whether a folder is a whole tree, or just a part of one that was read on its own.

To prune by a part would delete what the other parts declare.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence

from reconciler.manifests.discovery import EXTENSIONS, MAX_FILE, is_folder
from reconciler.manifests.opening import OpeningError, open_folder, read_file

_MARK = b"apiVersion: reconciler/"


def is_whole(paths: Sequence[str]) -> bool:
    """Say whether the paths are folders above which there are no manifests."""
    roots = {os.path.abspath(path) for path in paths}
    return all(is_folder(path) for path in paths) and not any(
        _holds_manifests(folder) for path in roots for folder in _above(path, roots)
    )


def _above(path: str, roots: Collection[str]) -> Iterator[str]:
    """Yield the folders above a path, up to the top of the repository or the current folder."""
    top = _top_of(path)
    folder = os.path.dirname(path)
    while folder not in roots:
        yield folder
        if folder == top or folder == os.path.dirname(folder):
            return
        folder = os.path.dirname(folder)


def _top_of(path: str) -> str:
    folder = path
    while folder != os.path.dirname(folder):
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        folder = os.path.dirname(folder)
    here = os.getcwd()
    return here if path.startswith(here.rstrip("/") + "/") else os.path.dirname(path)


def _holds_manifests(folder: str) -> bool:
    try:
        with open_folder(folder, follow=True) as handle:
            names = [name for name in os.listdir(handle) if name.endswith(EXTENSIONS)]
            return any(_is_manifest(name, handle) for name in names)
    except (OpeningError, OSError):
        return False


def _is_manifest(name: str, folder: int) -> bool:
    try:
        return _MARK in read_file(name, folder, MAX_FILE)
    except OpeningError:
        return False
