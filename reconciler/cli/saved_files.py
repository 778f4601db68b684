"""Plan files and snapshots on the disk: read without following links, written whole or not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from reconciler.apply.durable import write_private_files
from reconciler.errors import LocalFileError
from reconciler.manifests.discovery import EXTENSIONS, is_folder
from reconciler.manifests.opening import OpeningError, open_folder, read_file
from reconciler.plan.planfile import PlanFile, looks_like_plan_file, read_plan_file
from reconciler.plan.sealed import MAX_SIZE, SavedFileError
from reconciler.plan.snapshot import SnapshotFile, read_snapshot

T = TypeVar("T")


def is_plan_file(path: str) -> bool:
    """Return whether a path is meant as a plan file, and not as a file of manifests.

    Manifests end in .yaml or .yml. A plan file may end so, too; then its beginning tells.
    """
    if is_folder(path) or not os.path.lexists(path):
        return False
    if not path.endswith(EXTENSIONS):
        return True
    try:
        return looks_like_plan_file(_content(path))
    except OpeningError:
        return False


def open_plan_file(path: str) -> PlanFile:
    """Return the plan file at a path.

    Raises:
        LocalFileError: it cannot be read, or was changed.
    """
    return _opened(path, read_plan_file, "Make a new one: reconciler plan --out FILE.")


def open_snapshot(path: str) -> SnapshotFile:
    """Return the snapshot at a path.

    Raises:
        LocalFileError: it cannot be read, or was changed.
    """
    return _opened(path, read_snapshot, "Take a new one: reconciler export --snapshot FILE.")


def save(path: str, content: bytes) -> None:
    """Write a file for its owner alone, whole or not at all.

    Raises:
        LocalFileError: it cannot be written.
    """
    target = Path(path)
    if is_folder(path) or not target.name:
        raise LocalFileError(f"{path} is a folder", remedy="Name a file that may be written.")
    write_private_files(target.parent, [(target.name, content)])


def _opened(path: str, read: Callable[[bytes], T], remedy: str) -> T:
    try:
        return read(_content(path))
    except OpeningError as fault:
        raise LocalFileError(f"{path} {fault}", remedy=remedy) from None
    except SavedFileError as fault:
        raise LocalFileError(
            f"{path} cannot be used: it {fault}", remedy=f"{remedy} Nothing was written."
        ) from None


def _content(path: str) -> bytes:
    folder, name = os.path.split(path)
    with open_folder(folder or ".", follow=True) as handle:
        return read_file(name, handle, MAX_SIZE)
