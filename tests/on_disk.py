"""What is put on the disk, and in which order: what survives a power cut hangs on it."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def watch_the_disk(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return a list to which every file or folder is added when it is synced or gets its name."""
    seen: list[tuple[str, str]] = []

    def synced(sync: Callable[[int], None]) -> Callable[[int], None]:
        def watched(descriptor: int) -> None:
            seen.append(("synced", Path(f"/proc/self/fd/{descriptor}").readlink().name))
            sync(descriptor)

        return watched

    def named(name: Callable[..., None]) -> Callable[..., None]:
        def watched(source: Any, target: Any, **more: Any) -> None:
            name(source, target, **more)
            seen.append(("named", Path(target).name))

        return watched

    for sync in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, sync, synced(getattr(os, sync)))
    for name in ("replace", "link"):
        monkeypatch.setattr(os, name, named(getattr(os, name)))
    return seen


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let this process write no file that is longer, as where a disk is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
