"""The rest of a repository: manifests that a run did not read and that declare what it deletes.

A run deletes what its PATHS do not declare, and they may be only a part of the tree. So before a
delete every other YAML file of the repository is read, with the reader that reads manifests:
hidden folders and folders that Git ignores as well, since any of them can be given as PATHS.
Only ``.git`` is left out, and symbolic links: what they lead to is read where it is.

Defaults name the owners of manifests there as they do elsewhere. What a variable in a name stands
for is not known, since it can be that of another configuration: it is taken for any text.

Without Git, the common folder of the PATHS stands for the repository.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from reconciler.diagnostics import SourceLocation, name_as_text
from reconciler.manifests.defaults import FolderDefaults, is_defaults
from reconciler.manifests.discovery import EXTENSIONS, MAX_FILE, FoundFile, is_folder
from reconciler.manifests.files import OpeningError, Reason, git_root, open_folder, read_file
from reconciler.manifests.loader import Reader
from reconciler.manifests.manifest import Growth, Manifest, Root
from reconciler.manifests.placeholders import OPENING, tokens
from reconciler.manifests.text import YamlValue
from reconciler.resources.kinds import VERSIONS
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import Elsewhere, ObservedObject

_KINDS = {kind.value: kind for kind in Kind}
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
    """

    tops: tuple[Path, ...]
    paths: tuple[Path, ...]
    is_git: bool

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
        for own in self.paths:
            if own.is_relative_to(folder) or folder.is_relative_to(own):
                raise OtherTreeError("overlaps the PATHS of this run")
        return folder.relative_to(self.base).as_posix()

    def searching(self, folder: str) -> Repository:
        """Return the repository with a folder searched that was one of its PATHS."""
        read = tuple(path for path in self.paths if path != Path(folder).resolve())
        return replace(self, paths=read)

    def look(self, other_trees: Sequence[str], doomed: Collection[ObservedObject]) -> Elsewhere:
        """Return which of some objects are declared in files that the PATHS do not hold."""
        left_out = {*self.paths, *(self.base / name for name in other_trees)}
        search = _Search(_Wanted(doomed))
        for top in self.tops:
            for folder, names in _yaml_files(top, left_out, search):
                search.read(folder, names)
        return Elsewhere(search.declared, tuple(search.unreadable), self.is_git)


def repository_of(paths: Sequence[str]) -> Repository:
    """Return the repository that holds the PATHS of a run."""
    resolved = tuple(Path(path).resolve() for path in paths)
    tops = [git_root(path) for path in resolved]
    alone = [path for path, top in zip(resolved, tops, strict=True) if top is None]
    found = {top for top in tops if top is not None}
    if alone:
        folders = (path if is_folder(str(path)) else path.parent for path in alone)
        found.add(Path(os.path.commonpath(list(folders))))
    return Repository(tuple(sorted(found)), resolved, is_git=not alone)


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

    def read(self, folder: Path, names: Sequence[str]) -> None:
        """Look for manifests in the files of one folder; enclosing folders come first."""
        manifests = [manifest for name in names for manifest in self._manifests(folder, name)]
        for manifest in manifests:
            if is_defaults(manifest.document):
                self.defaults.add(manifest)
        for manifest in manifests:
            owned = self.defaults.fill(manifest, owner_only=True)
            for object_id in _declared_ids(owned.document, self.wanted):
                if object_id not in self.declared:
                    self.declared[object_id] = owned.place("metadata", "name")

    def _manifests(self, folder: Path, name: str) -> Sequence[Manifest]:
        shown = name_as_text(os.path.relpath(folder / name))
        try:
            with open_folder(str(folder), follow=True) as handle:
                data = read_file(name, handle, MAX_FILE)
        except OpeningError as fault:
            self._not_opened(folder / name, shown, fault)
            return ()
        if b"reconciler" not in data and b"\\" not in data:
            return ()  # no escape in it can spell the version of a manifest
        reader = Reader()
        manifests = list(reader.manifests([FoundFile(shown, data, Root(str(folder)), ())]))
        if any(finding.is_error for finding in reader.findings):
            if VERSIONS.encode() in data:
                self.unreadable.append((SourceLocation(shown), "cannot be read as YAML"))
            return ()
        return manifests

    def refuse_folder(self, folder: Path, fault: OSError) -> None:
        """Note a folder that cannot be listed: what it holds is not known."""
        why = f"cannot be read ({fault.strerror})"
        self.unreadable.append((SourceLocation(name_as_text(os.path.relpath(folder))), why))

    def _not_opened(self, path: Path, shown: str, fault: OpeningError) -> None:
        if fault.reason in {Reason.MISSING, Reason.SYMLINK, Reason.NOT_REGULAR}:
            return
        if fault.reason is Reason.TOO_LARGE and not _may_hold_manifests(path):
            return
        self.unreadable.append((SourceLocation(shown), str(fault)))


def _declared_ids(document: YamlValue, wanted: _Wanted) -> Iterator[str]:
    """Yield the ids of the objects looked for that a document declares."""
    if not isinstance(document, dict):
        return
    version, metadata = document.get("apiVersion"), document.get("metadata")
    kind = document.get("kind")
    if not isinstance(version, str) or not version.startswith(VERSIONS):
        return
    if not isinstance(metadata, dict) or not isinstance(kind, str) or kind not in _KINDS:
        return
    if metadata.get("absent") is True:
        return  # a document of an overlay that takes the object out
    names = [metadata.get(name, "") for name in ("organization", "project", "name")]
    if all(isinstance(name, str) for name in names):
        yield from wanted.ids_of(ResourceRef(_KINDS[kind], *names).key)
    pinned = metadata.get("id")
    if isinstance(pinned, str):
        yield from wanted.pinned(pinned)


def _those_like(written: str, names: Collection[str]) -> Collection[str]:
    """Return the names that a text is, or can become once its variables are replaced."""
    parts = _parts(written)
    if len(parts) == 1:
        return [parts[0]] if parts[0] in names else []
    ends = parts[0], parts[-1]
    near = (name for name in names if name.startswith(ends[0]) and name.endswith(ends[1]))
    return [name for name in near if _fits(parts, name)]


def _parts(written: str) -> Sequence[str]:
    """Return what stands around the variables of a text; a text without any is one part."""
    if OPENING not in written:
        return [written]
    parts, end = [""], 0
    for token in tokens(written):
        parts[-1] += written[end : token.start]
        end = token.end
        if token.is_literal:
            parts[-1] += token.text.removeprefix("$")
        else:
            parts.append("")
    parts[-1] += written[end:]
    return parts


def _fits(parts: Sequence[str], name: str) -> bool:
    """Return whether a name that begins and ends with parts has all, with any text in between."""
    first, *inner, last = parts
    at, end = len(first), len(name) - len(last)
    for part in inner:  # the first place that fits leaves the most for the rest
        found = name.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


def _may_hold_manifests(path: Path) -> bool:
    """Return whether a large file holds the version of a manifest, or is too large to tell."""
    mark, before, left = VERSIONS.encode(), b"", _SEARCHED
    try:
        with path.open("rb") as file:
            while left > 0 and (block := file.read(MAX_FILE)):
                if mark in before + block:
                    return True
                before, left = block[-len(mark) :], left - len(block)
            return bool(file.read(1))
    except OSError:
        return True


def _yaml_files(
    top: Path, left_out: Collection[Path], search: _Search
) -> Iterator[tuple[Path, Sequence[str]]]:
    """Yield each folder beneath one with its YAML files, in a steady order, owners first."""
    folders = [top] if top not in left_out else []
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as fault:
            search.refuse_folder(folder, fault)
            continue
        inner, files = [], []
        for entry in entries:
            if entry.name == ".git" or folder / entry.name in left_out:
                continue
            if entry.is_dir(follow_symlinks=False):
                inner.append(folder / entry.name)
            elif entry.name.endswith(EXTENSIONS) and not entry.is_symlink():
                files.append(entry.name)
        yield folder, files
        folders += reversed(inner)
