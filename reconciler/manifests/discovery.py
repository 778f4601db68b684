"""Finding the manifest files of a folder, in the same order on every machine.

Folders are walked by open handles, so a folder that is swapped for a link while we walk leads
nowhere. Links are never followed: a pull request could point them at anything.

Only ``.yaml`` and ``.yml`` in small letters are read, ``.json`` where its top level has the
``apiVersion`` of a manifest, and nothing whose name begins with a dot. A note names a file that is
not read although it looks like a manifest, because silence misleads: its name is nearly that of a
manifest and it holds the ``apiVersion`` of one.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from reconciler.diagnostics import Diagnostic, SourceLocation, error, name_as_text, note
from reconciler.manifests.files import OpeningError, Reason, open_folder, read_file
from reconciler.manifests.manifest import Root
from reconciler.manifests.text import holds_text
from reconciler.resources.kinds import VERSIONS

MAX_FILE = 1024 * 1024  # reads in well under a second; a manifest has about a kilobyte
MAX_FOLDERS = 32  # each level holds a handle while it is walked
EXTENSIONS = (".yaml", ".yml")
JSON = ".json"

REMEDIES = {
    Reason.SYMLINK: "Links are not followed. Put the file or folder itself here, "
    "or give its own path.",
    Reason.MISSING: "Check the path; paths are relative to the current folder.",
    Reason.NOT_REGULAR: "Give a folder or a regular file; pipes, sockets and devices are not read.",
    Reason.NOT_A_FOLDER: "Give the path of a folder or a file that exists.",
    Reason.TOO_LARGE: "Split the file; one document per file is usual.",
    Reason.TOO_DEEP: f"Keep manifests in at most {MAX_FOLDERS} levels of folders.",
    Reason.UNREADABLE: "Give the user who runs this command the right to read it.",
}


class FoundFile(NamedTuple):
    """The bytes of one file, its name as it is shown, and its folder beneath the root."""

    name: str
    data: bytes
    root: Root
    folder: tuple[str, ...]


class Enclosing(NamedTuple):
    """A folder around PATHS: the root of its tree as it is shown, and the way from there.

    Scripts that its Defaults name stay beneath the root, as when the root itself is read.
    """

    root: str
    parts: tuple[str, ...]


class _Folder(NamedTuple):
    """An open folder, its way from the root, and what its files' names start with."""

    handle: int
    root: Root
    parts: tuple[str, ...]
    shown: str
    identity: tuple[int, int]


def in_one_order(paths: Iterable[str | Path]) -> list[str]:
    """Return paths so that the order they were given in makes no difference.

    A folder comes before what is in it: its files belong to the outermost folder that was named.
    """
    return sorted(
        (os.fspath(path) for path in paths), key=lambda path: (os.path.normpath(path), path)
    )


class Discovery:
    """One search through the paths of one run. The same file is read once.

    Folders in ``left_out`` are not entered, whatever way leads to them. ``what`` is looked for.
    """

    def __init__(self, left_out: Iterable[str] = (), what: str = "manifests") -> None:
        self.findings: list[Diagnostic] = []
        self._what = what
        self._left_out = frozenset(_identities(left_out))
        self._met = 0
        self._seen: set[tuple[tuple[int, int], str]] = set()

    def files(self, paths: Sequence[str | Path]) -> Iterator[FoundFile]:
        """Yield every file of manifests at or beneath the paths."""
        for path in in_one_order(paths):
            typed = os.fspath(path).rstrip("/") or os.fspath(path)
            try:
                yield from self._all_in(typed) if is_folder(typed) else self._single(typed)
            except OpeningError as fault:
                self._refuse(typed, fault)

    def _all_in(self, path: str) -> Iterator[FoundFile]:
        before = self._met
        with open_folder(path) as handle:
            yield from self._walk(_folder(handle, Root(path), ()))
        if self._met == before:
            place = SourceLocation(name_as_text(path))
            remedy = "Give a folder with .yaml files."
            self.findings.append(error("FILE-NONE", f"no {self._what} found", remedy, place))

    def _single(self, path: str) -> Iterator[FoundFile]:
        parent, name = os.path.split(path)
        root = Root(parent)
        with open_folder(root.path, follow=True) as handle:
            yield from self._file(name, _folder(handle, root, ()))

    def beside(self, folders: Iterable[Enclosing]) -> Iterator[FoundFile]:
        """Yield the YAML files of some folders, without the folders in them."""
        for root, parts in folders:
            path = str(Path(root, *parts))
            try:
                with open_folder(path, follow=True) as handle:
                    folder = _folder(handle, Root(root), parts)
                    for entry in filter(_is_read, _entries(handle)):
                        is_json = entry.name.endswith(JSON)
                        yield from (self._json if is_json else self._file)(entry.name, folder)
            except OpeningError as fault:
                if fault.reason is not Reason.NOT_A_FOLDER:  # the path itself is reported
                    self._refuse(path, fault)

    def _walk(self, folder: _Folder) -> Iterator[FoundFile]:
        for entry in _entries(folder.handle):
            name = entry.name
            if is_hidden(name):
                self._note_hidden(entry, folder)
            elif entry.is_dir(follow_symlinks=False):
                yield from self._inner(name, folder)
            elif name.endswith(EXTENSIONS):
                yield from self._file(name, folder)
            elif _is_link_to_folder(entry):
                self._refuse(folder.shown + name, OpeningError(Reason.SYMLINK))
            elif name.endswith(JSON):
                yield from self._json(name, folder)
            elif skipped_file(name, folder.handle):
                self._skipped(folder.shown + name, "Rename it so that it ends in .yaml or .yml")

    def _note_hidden(self, entry: os.DirEntry[str], folder: _Folder) -> None:
        is_folder = entry.is_dir(follow_symlinks=False)
        looks_like_one = skipped_folder if is_folder else skipped_file
        if looks_like_one(entry.name, folder.handle):
            shown = folder.shown + entry.name + ("/" if is_folder else "")
            self._skipped(shown, "Rename it so that it begins with no dot")

    def _skipped(self, name: str, remedy: str) -> None:
        self.findings.append(
            note(
                "FILE-SKIPPED",
                "this looks like a manifest, and it is not read",
                f"{remedy}, or move it elsewhere.",
                SourceLocation(name_as_text(name)),
            )
        )

    def _inner(self, name: str, folder: _Folder) -> Iterator[FoundFile]:
        parts = (*folder.parts, name)
        if len(parts) > MAX_FOLDERS:
            self._refuse(folder.shown + name, OpeningError(Reason.TOO_DEEP))
            return
        try:
            with open_folder(name, folder.handle) as handle:
                inner = _folder(handle, folder.root, parts)
                if inner.identity not in self._left_out:
                    yield from self._walk(inner)
        except OpeningError as fault:
            self._refuse(folder.shown + name, fault)

    def _json(self, name: str, folder: _Folder) -> Sequence[FoundFile]:
        """Read a JSON file if it is a manifest; most are something else and passed over."""
        try:
            data = read_file(name, folder.handle, MAX_FILE)
        except OpeningError:
            return ()
        return self._file(name, folder) if is_json_manifest(data) else ()

    def _file(self, name: str, folder: _Folder) -> Sequence[FoundFile]:
        self._met += 1
        identity = (folder.identity, name)
        if identity in self._seen:
            return ()
        self._seen.add(identity)
        shown = name_as_text(folder.shown + name)
        try:
            data = read_file(name, folder.handle, MAX_FILE)
        except OpeningError as fault:
            self._refuse(shown, fault)
            return ()
        return (FoundFile(shown, data, folder.root, folder.parts),)

    def _refuse(self, name: str, fault: OpeningError) -> None:
        self._met += 1
        self.findings.append(opening_finding(name, fault))


def opening_finding(path: str, fault: OpeningError) -> Diagnostic:
    """Return the finding about a path that cannot be read."""
    code = f"FILE-{fault.reason.name.replace('_', '-')}"
    place = SourceLocation(name_as_text(path))
    return error(code, f"the path {fault}", REMEDIES[fault.reason], place)


def _folder(handle: int, root: Root, parts: tuple[str, ...]) -> _Folder:
    status = os.fstat(handle)
    shown = root.shown + "".join(f"{part}/" for part in parts)
    return _Folder(handle, root, parts, shown, (status.st_dev, status.st_ino))


def _identities(folders: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the device and inode of each folder that exists."""
    for folder in folders:
        try:
            status = Path(folder).stat()
        except OSError:
            continue
        yield status.st_dev, status.st_ino


def is_folder(path: str) -> bool:
    """Return whether a path is a folder itself, not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of a name is passed over in a folder of manifests."""
    return name.startswith(".")


def is_taken(name: str) -> bool:
    """Return whether a file of a name is read in a folder of manifests; JSON, if it is one."""
    return name.endswith((*EXTENSIONS, JSON)) and not is_hidden(name)


def is_nearly_taken(name: str) -> bool:
    """Return whether the name of a file is that of a manifest, or nearly: hidden, or renamed."""
    return _NEARLY.search(name) is not None


def _is_read(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry of a folder is a file that is read for manifests."""
    if not is_taken(entry.name):
        return False
    try:
        return entry.is_file(follow_symlinks=False) and entry.stat().st_size <= MAX_FILE
    except OSError:
        return False  # removed since the folder was listed


def _is_link_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_symlink() and entry.is_dir()
    except OSError:
        return False  # a cycle of links


def _entries(handle: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(handle) as listing:
            return sorted(listing, key=attrgetter("name"))
    except OSError as fault:
        raise OpeningError(Reason.UNREADABLE, fault.strerror or "") from None


LARGEST = 64 * 1024
"""Bytes; a larger file is not looked at."""

MOST = 200
"""Entries of a hidden folder that are looked at."""

DEEPEST = 4
"""Levels of a hidden folder that are looked at."""

_NEARLY = re.compile(r"\.(?:ya?ml|json)(?:$|\.(?!sw[a-z]$))", re.IGNORECASE | re.ASCII)
_FIELD = re.compile(rb"""\bapiVersion["']?\s*:\s*["']?reconciler/v""")
_NEVER = frozenset({".git", ".reconciler", ".venv"})


def is_json_manifest(data: bytes) -> bool:
    """Return whether the top level of a JSON file has the ``apiVersion`` of a manifest.

    One that cannot be parsed counts if it holds one anywhere: its faults are then reported.
    """
    try:
        top = json.loads(data)
    except (ValueError, RecursionError):
        is_wide = b"\0" in data and holds_text(data, VERSIONS)  # UTF-16 or UTF-32
        return is_wide or _FIELD.search(data) is not None
    version = top.get("apiVersion") if isinstance(top, dict) else None
    return isinstance(version, str) and version.startswith(VERSIONS)


def skipped_file(name: str, folder: int) -> bool:
    """Return whether a file in an open folder looks like a manifest."""
    if not is_nearly_taken(name):
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
