"""Which files are manifests, in an order that does not depend on the machine.

Folders are walked by open handles, so a folder that is swapped for a link while we walk leads
nowhere. Links are never followed: a pull request could point them at anything.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from reconciler.diagnostics import Diagnostic, SourceLocation, error
from reconciler.manifests.opening import OpeningError, Reason, open_folder, read_file
from reconciler.manifests.source_file import Root

MAX_FILE = 1024 * 1024  # reads in well under a second; a manifest has about a kilobyte
MAX_FOLDERS = 32  # each level holds a handle while it is walked
EXTENSIONS = (".yaml", ".yml")

_REMEDIES = {
    Reason.SYMLINK: "Links are not followed. Put the file or folder itself here, "
    "or give its own path.",
    Reason.MISSING: "Check the path; paths are relative to the current folder.",
    Reason.NOT_REGULAR: "Give a folder or a regular file; pipes, sockets and devices are not read.",
    Reason.NOT_A_FOLDER: "Give the path of a folder or a file that exists.",
    Reason.TOO_LARGE: "Split the file; one document per file is usual.",
    Reason.TOO_DEEP: "Keep manifests in fewer levels of folders.",
    Reason.UNREADABLE: "Let the user who runs this read it.",
}


class FoundFile(NamedTuple):
    """The bytes of one file, its name as it is shown, and its folder beneath the root."""

    name: str
    data: bytes
    root: Root
    folder: tuple[str, ...]


class Discovery:
    """One search through the paths of one run. The same file is read once."""

    def __init__(self) -> None:
        self.findings: list[Diagnostic] = []
        self._met = 0
        self._seen: set[tuple[int, int, str]] = set()

    def files(self, paths: Sequence[str | Path]) -> Iterator[FoundFile]:
        """Yield every file of manifests at or beneath the paths."""
        for path in paths:
            typed = os.fspath(path).rstrip("/") or os.fspath(path)
            try:
                yield from self._folder(typed) if is_folder(typed) else self._single(typed)
            except OpeningError as fault:
                self._refuse(typed, fault)

    def _folder(self, path: str) -> Iterator[FoundFile]:
        root, before = Root(path), self._met
        with open_folder(path) as handle:
            yield from self._walk(handle, root, ())
        if self._met == before:
            self._note("FILE-NONE", path, "no manifests found", "Give a folder with .yaml files.")

    def _single(self, path: str) -> Iterator[FoundFile]:
        folder, name = os.path.split(path)
        root = Root(folder)
        with open_folder(root.path, follow=True) as handle:
            yield from self._file(handle, name, root, ())

    def _walk(self, handle: int, root: Root, folder: tuple[str, ...]) -> Iterator[FoundFile]:
        if len(folder) > MAX_FOLDERS:
            raise OpeningError(Reason.TOO_DEEP, f"more than {MAX_FOLDERS} levels")
        for entry in _entries(handle):
            name = entry.name
            if name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._inner(handle, name, root, folder)
            elif name.endswith(EXTENSIONS):
                yield from self._file(handle, name, root, folder)
            elif entry.is_symlink() and entry.is_dir():
                self._refuse(_shown(root, folder) + name, OpeningError(Reason.SYMLINK))

    def _inner(
        self, parent: int, name: str, root: Root, folder: tuple[str, ...]
    ) -> Iterator[FoundFile]:
        try:
            with open_folder(name, parent) as handle:
                yield from self._walk(handle, root, (*folder, name))
        except OpeningError as fault:
            self._refuse(_shown(root, folder) + name, fault)

    def _file(
        self, handle: int, name: str, root: Root, folder: tuple[str, ...]
    ) -> Iterator[FoundFile]:
        self._met += 1
        status = os.fstat(handle)
        identity = (status.st_dev, status.st_ino, name)
        if identity in self._seen:
            return
        self._seen.add(identity)
        shown = _shown(root, folder) + name
        try:
            data = read_file(name, handle, MAX_FILE)
        except OpeningError as fault:
            self._refuse(shown, fault)
        else:
            yield FoundFile(shown, data, root, folder)

    def _refuse(self, name: str, fault: OpeningError) -> None:
        self._met += 1
        code = f"FILE-{fault.reason.name.replace('_', '-')}"
        self._note(code, name, f"the path {fault}", _REMEDIES[fault.reason])

    def _note(self, code: str, name: str, summary: str, remedy: str) -> None:
        self.findings.append(error(code, summary, remedy, SourceLocation(name)))


def is_folder(path: str) -> bool:
    """Say whether a path is a folder itself, not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _entries(handle: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(handle) as listing:
            return sorted(listing, key=lambda entry: os.fsencode(entry.name))
    except OSError as fault:
        raise OpeningError(Reason.UNREADABLE, fault.strerror or "") from None


def _shown(root: Root, folder: tuple[str, ...]) -> str:
    return root.shown + "".join(f"{part}/" for part in folder)
