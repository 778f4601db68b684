"""The rest of a repository: manifests that a run did not read and that declare what it deletes.

A run deletes what its PATHS do not declare, and they may be only a part of the tree. So before a
delete every other YAML or JSON file of the repository is read, with the reader of manifests:
hidden folders and folders that Git ignores as well, since any of them can be given as PATHS.
Beneath the PATHS themselves, files of any name are searched that the run passed over. Only
``.git`` is left out, and symbolic links: what they lead to is read where it is.

What cannot be read blocks where it may be a manifest: a file named as YAML, or one in UTF-16 or
UTF-32, that holds the version of manifests. Other files, such as a page that quotes a manifest,
count only where they can be read.

Defaults name the owners of manifests there as they do elsewhere. What a variable in a name stands
for is not known, since it can be that of another configuration: it is taken for any text.

Without Git, the common folder of the PATHS stands for the repository.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from reconciler.diagnostics import SourceLocation, name_as_text
from reconciler.manifests.defaults import FolderDefaults, is_defaults
from reconciler.manifests.discovery import (
    EXTENSIONS,
    JSON,
    MAX_FILE,
    FoundFile,
    is_folder,
    is_hidden,
    is_json_manifest,
    is_nearly_taken,
    is_taken,
)
from reconciler.manifests.files import OpeningError, Reason, git_root, read_path
from reconciler.manifests.loader import Reader
from reconciler.manifests.manifest import Growth, Manifest, Root, declared_ref, kind_of
from reconciler.manifests.placeholders import LITERAL, OPENING, TOKEN
from reconciler.manifests.text import YamlValue, holds_text, mapping_in
from reconciler.resources.files import open_regular
from reconciler.resources.kinds import VERSIONS
from reconciler.resources.ref import ResourceRef
from reconciler.resources.schemas import DEFAULTS
from reconciler.state import Elsewhere, ObservedObject

_SEARCHED = 64 * 1024 * 1024  # bytes of a file that is too large to be read as a manifest


class OtherTreeError(ValueError):
    """A folder cannot be left out of the search; the message goes after its path."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The folders that hold the PATHS of a run and what lies beside them.

    Attributes:
        tops: Git roots, or the common folder of the PATHS that are in none.
        paths: The PATHS, resolved.
        is_git: Whether every one of the PATHS is below a Git root.
        others: Folders of other environments, resolved, which are not searched.
        unread: A folder beneath the PATHS that the run did not read, or None.
    """

    tops: tuple[Path, ...]
    paths: frozenset[Path]
    is_git: bool
    others: tuple[Path, ...] = ()
    unread: Path | None = None

    @property
    def base(self) -> Path:
        """Return the folder from which folders of other trees are named."""
        return Path(os.path.commonpath(self.tops))

    def other_tree(self, path: str) -> str:
        """Return the path of another tree's folder from the base, the same on every machine.

        Raises:
            OtherTreeError: there is none, it is outside of the repository, or shares manifests
                with the PATHS.
        """
        if not os.path.lexists(path):
            raise OtherTreeError("does not exist")
        folder = Path(path).resolve()
        if not folder.is_relative_to(self.base):
            raise OtherTreeError("is not in the repository of the manifests")
        for own in (*self.paths, *self.others):
            if own.is_relative_to(folder) or (folder.is_relative_to(own) and _is_read(folder, own)):
                raise OtherTreeError("overlaps the PATHS of this run")
        return folder.relative_to(self.base).as_posix()

    def searching(self, folder: str) -> Repository:
        """Return the repository with a folder searched that was one of its PATHS."""
        unread = Path(folder).resolve()
        return replace(self, paths=self.paths - {unread}, unread=unread)

    def look(self, other_trees: Sequence[str], doomed: Collection[ObservedObject]) -> Elsewhere:
        """Return which of some objects are declared in files that the run did not read."""
        search = _Search(_Wanted(doomed))
        left_out = {*self.others, *(self.base / name for name in other_trees)}
        listed = [each for top in self.tops for each in self._folders(top, left_out, search)]
        # Defaults of a file that the run read count for the files that it passed over.
        unread = [each.folder for each in listed if each.unread]
        above = {outer for folder in unread for outer in (folder, *folder.parents)}
        for each in listed:
            search.read(each if each.folder in above else each._replace(read=[]))
        return Elsewhere(search.declared, tuple(search.unreadable), self.is_git)

    def _folders(self, top: Path, left_out: Collection[Path], search: _Search) -> Iterator[_Listed]:
        """Yield each folder beneath one, in a steady order, owners first."""
        # Each folder, whether it is beneath the PATHS, and whether the run read it, too.
        places = [(top, False, False)]
        while places:
            folder, is_given, is_read = places.pop()
            if folder in left_out:
                continue
            if folder in self.paths or folder == self.unread:
                is_given = is_read = folder in self.paths
            entries = search.entries(folder)
            files = [each for each in entries if folder / each.name not in left_out]
            yield self._listed(folder, files, is_given=is_given, is_read=is_read)
            inner = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
            places += [
                (folder / name, is_given, is_read and not is_hidden(name))
                for name in reversed(inner)
            ]

    def _listed(
        self, folder: Path, entries: Iterable[os.DirEntry[str]], *, is_given: bool, is_read: bool
    ) -> _Listed:
        listed = _Listed(folder, [], [])
        for entry in entries:
            if not entry.is_file(follow_symlinks=False):
                continue
            if folder / entry.name in self.paths or (is_read and _is_read_in_folder(entry)):
                listed.read.append(entry.name)
            elif is_given or is_nearly_taken(entry.name):
                listed.unread.append(entry.name)
        return listed


class _Listed(NamedTuple):
    """The names of files in a folder: those to be searched, and those that the run read."""

    folder: Path
    unread: list[str]
    read: list[str]


def _is_read_in_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether a run reads a file in one of its folders.

    It passes over JSON that it cannot read or that is too large: most is of other tools.
    """
    if not is_taken(entry.name):
        return False
    if not entry.name.endswith(JSON):
        return True
    try:
        return entry.stat().st_size <= MAX_FILE and os.access(entry.path, os.R_OK)
    except OSError:  # removed since the folder was listed
        return True


def _is_read(path: Path, root: Path) -> bool:
    """Return whether a run reads a path when it is given a folder above it, or the path itself."""
    parts = path.relative_to(root).parts
    if any(map(is_hidden, parts)):
        return False
    return not parts or is_folder(str(path)) or is_taken(parts[-1])


def repository_of(paths: Sequence[str], others: Sequence[str] = ()) -> Repository:
    """Return the repository that holds the PATHS of a run.

    ``others`` are folders of other environments.
    """
    resolved = frozenset(Path(path).resolve() for path in paths)
    left_out = tuple(path for path in map(Path.resolve, map(Path, others)) if path not in resolved)
    known = (*resolved, *left_out)
    tops = [git_root(path) for path in known]
    alone = [path for path, top in zip(known, tops, strict=True) if top is None]
    found = {top for top in tops if top is not None}
    if alone:
        folders = (path if is_folder(str(path)) else path.parent for path in alone)
        found.add(Path(os.path.commonpath(list(folders))))
    return Repository(tuple(sorted(found)), resolved, is_git=not alone, others=left_out)


class _Wanted:
    """Objects that are looked for.

    Thousands can be looked for in thousands of documents, so a document is compared with few.
    """

    def __init__(self, objects: Iterable[ObservedObject]) -> None:
        self._ids: dict[ResourceRef, list[str]] = {}
        for held in objects:
            self._ids.setdefault(held.ref.key, []).append(held.id)
        self._all_ids = {object_id for ids in self._ids.values() for object_id in ids}
        self._by_name: dict[str, list[ResourceRef]] = {}
        for ref in self._ids:
            self._by_name.setdefault(ref.name, []).append(ref)
        self._fitting = cache(self._owners_like)

    def ids_of(self, written: ResourceRef) -> Iterator[str]:
        """Yield the ids of the objects that a key of a ref can be about."""
        if not any(OPENING in name for name in written[1:]):
            yield from self._ids.get(written, ())
            return
        owners = [self._fitting(at, getattr(written, at)) for at in ("organization", "project")]
        for name in _those_like(written.name, self._by_name):
            for ref in self._by_name[name]:
                fits = ref.organization in owners[0] and ref.project in owners[1]
                if fits and ref.kind is written.kind:
                    yield from self._ids[ref]

    def pinned(self, written: str) -> Iterable[str]:
        """Return the ids that a pinned id can be."""
        return _those_like(written, self._all_ids)

    def _owners_like(self, which: str, written: str) -> Collection[str]:
        """Return the names of owners that a text can be: most documents write the same few."""
        return _those_like(written, {getattr(ref, which) for ref in self._ids})


@dataclass(slots=True)
class _Search:
    """Reads file by file and keeps what it finds. One place for each object is enough."""

    wanted: _Wanted
    declared: dict[str, SourceLocation] = field(default_factory=dict)
    unreadable: list[tuple[SourceLocation, str]] = field(default_factory=list)
    defaults: FolderDefaults = field(default_factory=lambda: FolderDefaults(Growth()))

    def read(self, listed: _Listed) -> None:
        """Look for manifests in the files of one folder; enclosing folders come first."""
        for name in listed.read:
            self._take_defaults(self._manifests(listed.folder, name, DEFAULTS))
        manifests = [
            each for name in listed.unread for each in self._manifests(listed.folder, name)
        ]
        self._take_defaults(manifests)
        for manifest in manifests:
            owned = self.defaults.fill(manifest, owner_only=True)
            for object_id in _declared_ids(owned.document, self.wanted):
                if object_id not in self.declared:
                    self.declared[object_id] = owned.place("metadata", "name")

    def _take_defaults(self, manifests: Iterable[Manifest]) -> None:
        for manifest in manifests:
            if is_defaults(manifest.document):
                self.defaults.add(manifest)

    def _manifests(self, folder: Path, name: str, word: str = "") -> Sequence[Manifest]:
        """Return the documents of a file, or nothing where it holds none that has a word."""
        shown = name_as_text(os.path.relpath(folder / name))
        try:
            data = read_path(str(folder / name), MAX_FILE)
        except OpeningError as fault:
            self._not_opened(folder / name, shown, fault)
            return ()
        if name.endswith(JSON) and not is_json_manifest(data):
            return ()
        # An escape can spell the version, and the word.
        is_escaped = b"\\" in data and (_is_named_so(name) or b"reconciler" in data)
        if not (is_escaped or (holds_text(data, VERSIONS) and holds_text(data, word))):
            return ()
        reader = Reader()
        manifests = list(reader.manifests([FoundFile(shown, data, Root(str(folder)), ())]))
        if any(finding.is_error for finding in reader.findings):
            if why := _why_it_counts(name, data):
                self.unreadable.append((SourceLocation(shown), why))
            return ()
        return manifests

    def entries(self, folder: Path) -> Sequence[os.DirEntry[str]]:
        """Return what is in a folder, by name; note one that cannot be listed."""
        try:
            with os.scandir(folder) as listing:
                found = [entry for entry in listing if entry.name != ".git"]
                return sorted(found, key=attrgetter("name"))
        except OSError as fault:
            why = f"cannot be read ({fault.strerror})"
            self.unreadable.append((SourceLocation(name_as_text(os.path.relpath(folder))), why))
            return ()

    def _not_opened(self, path: Path, shown: str, fault: OpeningError) -> None:
        if fault.reason in {Reason.MISSING, Reason.SYMLINK, Reason.NOT_REGULAR}:
            return
        if not _is_named_so(path.name):
            return
        if fault.reason is Reason.TOO_LARGE and not _may_hold_manifests(path):
            return
        self.unreadable.append((SourceLocation(shown), str(fault)))


def _is_named_so(name: str) -> bool:
    """Return whether a file is named as YAML or JSON, hidden or in capitals as well."""
    return name.lower().endswith((*EXTENSIONS, JSON))


def _why_it_counts(name: str, data: bytes) -> str:
    """Return why a file counts that cannot be read, or nothing where it does not."""
    if VERSIONS.encode() in data:
        return "cannot be read as YAML" if _is_named_so(name) else ""
    return "is UTF-16 or UTF-32, and must be UTF-8" if holds_text(data, VERSIONS) else ""


def _declared_ids(document: YamlValue, wanted: _Wanted) -> Iterator[str]:
    """Yield the ids of the objects looked for that a document declares."""
    version = document.get("apiVersion") if isinstance(document, dict) else None
    if not isinstance(version, str) or not version.startswith(VERSIONS):
        return
    metadata = mapping_in(document, "metadata")
    if kind_of(document) is None or metadata.get("absent") is True:
        return  # a document of an overlay takes its object out
    if ref := declared_ref(document):
        yield from wanted.ids_of(ref.key)
    pinned = metadata.get("id")
    if isinstance(pinned, str):
        yield from wanted.pinned(pinned)


def _those_like(written: str, names: Collection[str]) -> Collection[str]:
    """Return the names that a text is, or can become once its variables are replaced."""
    if OPENING not in written:
        return [written] if written in names else []
    # Variables become stars. Of stars, a match of ``fnmatch`` tries the first place that fits.
    return fnmatch.filter(names, TOKEN.sub(_star, glob.escape(written)))


def _star(token: re.Match[str]) -> str:
    return OPENING if token[0] == LITERAL else "*"


def _may_hold_manifests(path: Path) -> bool:
    """Return whether a large file holds the version of a manifest, or is too large to search."""
    before, left = b"", _SEARCHED
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            while left > 0 and (block := file.read(MAX_FILE)):
                if holds_text(before + block, VERSIONS):
                    return True
                before, left = block[-4 * len(VERSIONS) :], left - len(block)
            # Large JSON is data of another tool; a manifest in it has its version near the start.
            return not path.name.lower().endswith(JSON) and bool(file.read(1))
    except OSError:
        return True
