"""The extent of a tree: whether PATHS are all of it, and which folders enclose them.

To prune by a part of a tree would delete what the other parts declare. A part takes the Defaults of
the folders that enclose it up to the configured folder of manifests, or else up to the top of the
repository.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from reconciler.diagnostics import FindingError
from reconciler.manifests.discovery import (
    EXTENSIONS,
    JSON,
    MAX_FILE,
    Enclosing,
    is_folder,
    is_json_manifest,
)
from reconciler.manifests.files import OpeningError, git_root, open_folder, read_file
from reconciler.manifests.text import YamlValue, decode, holds_text
from reconciler.manifests.yaml_source import read_documents
from reconciler.resources.schemas import CONFIGURATION

_MARK = "apiVersion: reconciler/"


def is_whole(paths: Sequence[str]) -> bool:
    """Return whether the paths are folders above which there are no manifests."""
    if not all(map(is_folder, paths)):
        return False
    try:
        roots = {Path(path).resolve() for path in paths}
        return not any(_holds_manifests(folder) for path in roots for folder in _above(path, roots))
    except OSError:
        return False  # a folder went away in the meantime, the current one perhaps


def is_within(folder: str, paths: Sequence[str | Path]) -> bool:
    """Return whether a folder is one of the paths or in one; every run holds the empty one."""
    if not folder:
        return True
    try:
        inner = Path(folder).resolve()
        return any(inner.is_relative_to(Path(path).resolve()) for path in paths)
    except (OSError, ValueError):  # it cannot be a path
        return False


def enclosing(root: str, paths: Sequence[str | Path]) -> list[Enclosing]:
    """Return the folders from a root down to each path, the path itself left out.

    For a path outside of the root, or without a root, they start at the top of the path's tree. A
    path that holds the root has none.
    """
    found: dict[Enclosing, None] = {}
    for path in paths:
        try:
            found |= dict.fromkeys(_around(root, Path(path).resolve()))
        except (OSError, ValueError):
            continue  # it cannot be a path; the search for files reports it
    return list(found)


def _around(root: str, path: Path) -> Iterator[Enclosing]:
    """Yield the folders around a resolved path, the outermost first."""
    top = Path(root).resolve()
    if root and path.is_relative_to(top):
        yield from _from(root, path.relative_to(top))
    elif not (root and top.is_relative_to(path)):
        top = _top_of(path)
        for folder in _from(os.path.relpath(top), path.relative_to(top)):
            # A folder above, which is not configured, can be that of another user.
            if os.access(Path(top, *folder.parts), os.R_OK):
                yield folder


def _from(root: str, path: Path) -> Iterator[Enclosing]:
    return (Enclosing(root, path.parts[:length]) for length in range(len(path.parts)))


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
    if top := git_root(path):
        return top
    here = Path.cwd()
    return here if here in path.parents else path.parent


def _holds_manifests(folder: Path) -> bool:
    try:
        with open_folder(str(folder), follow=True) as handle, os.scandir(handle) as listing:
            names = [entry.name for entry in listing if entry.name.endswith((*EXTENSIONS, JSON))]
            return any(_is_manifest(name, handle) for name in names)
    except (OpeningError, OSError):
        return False


def _is_manifest(name: str, folder: int) -> bool:
    try:
        data = read_file(name, folder, MAX_FILE)
    except OpeningError:
        return False
    if name.endswith(JSON):
        return is_json_manifest(data) and not _is_configuration_file(data)
    return holds_text(data, _MARK) and not _is_configuration_file(data)


def _is_configuration_file(data: bytes) -> bool:
    if CONFIGURATION.encode() not in data:
        return False
    try:
        documents, findings, _ = read_documents(decode(data))
    except FindingError:
        return False
    return not findings and all(map(is_configuration, documents))


def is_configuration(document: YamlValue) -> bool:
    """Return whether a document is a configuration of this tool."""
    return isinstance(document, dict) and document.get("kind") == CONFIGURATION
