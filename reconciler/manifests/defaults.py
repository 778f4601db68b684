"""Defaults documents: values for the manifests of a folder and of the folders in it.

A manifest that names a value itself keeps it, and of several folders the nearest one wins. What is
filled in keeps the place in the Defaults document, so that a finding leads there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath

from reconciler.diagnostics import Diagnostic, error
from reconciler.kinds.fields import KINDS
from reconciler.manifests.manifest import Growth, Manifest, Origin, Path
from reconciler.manifests.placeholders import size_of
from reconciler.manifests.text import YamlMapping, YamlValue, mapping_in
from reconciler.resources.kinds import IGNORE
from reconciler.resources.ref import Kind
from reconciler.resources.schemas import DEFAULTS

_OWNERS = {kind.value: frozenset(each.name for each in KINDS[kind].owner) for kind in Kind}
_ALTERNATIVES = {kind.value: [*map(set, row.alternatives)] for kind, row in KINDS.items()}

_Folder = tuple[str, ...]


def is_defaults(document: YamlValue) -> bool:
    """Return whether a document says that it is one of Defaults."""
    return isinstance(document, dict) and document.get("kind") == DEFAULTS


@dataclass(slots=True)
class _Given:
    """Values for the manifests of one kind in one folder.

    Attributes:
        metadata: The owners and the ignored fields.
        spec: The fields.
        origins: Where each of them is written, by its path.
        size: About how many characters they are.
    """

    metadata: YamlMapping
    spec: YamlMapping
    origins: dict[Path, Origin]
    size: int

    def without(self, metadata: Collection[str], spec: Collection[str]) -> _Given:
        """Return the values but for those of some names."""
        left_out = {"metadata": metadata, "spec": spec}
        owners = {name: value for name, value in self.metadata.items() if name not in metadata}
        fields = {name: value for name, value in self.spec.items() if name not in spec}
        origins = {
            path: each
            for path, each in self.origins.items()
            if path[1] not in left_out[str(path[0])]
        }
        return _Given(owners, fields, origins, size_of(owners) + size_of(fields))


class FolderDefaults:
    """The Defaults documents of one run, by folder."""

    def __init__(self, growth: Growth) -> None:
        self.findings: list[Diagnostic] = []
        self._growth = growth
        self._by_folder: dict[_Folder, Manifest] = {}
        self._given: dict[tuple[_Folder, str], _Given | None] = {}
        self._roots: dict[str, _Folder] = {}

    def add(self, manifest: Manifest) -> None:
        """Take the Defaults document of a folder; a second one is reported."""
        first = self._by_folder.setdefault(self._folder(manifest), manifest)
        if first is not manifest:
            self.findings.append(
                error(
                    "DEFAULTS-TWICE",
                    f"a second Defaults document of this folder; the first is at {first.place()}",
                    "Write one of them, with the values of both.",
                    manifest.place(),
                )
            )

    def fill(self, manifest: Manifest, *, owner_only: bool = False) -> Manifest:
        """Return a manifest with the values that it leaves out, as far as its folders have them.

        ``owner_only`` fills in the owners alone, which are enough to know what it is about.
        """
        document = manifest.document
        kind = document.get("kind") if self._by_folder and isinstance(document, dict) else None
        if not isinstance(kind, str) or kind not in _OWNERS:
            return manifest
        given = self._of(self._folder(manifest), kind)
        if given is None:
            return manifest
        metadata, spec = document.get("metadata"), document.get("spec", {})
        if not (isinstance(metadata, dict) and isinstance(spec, dict)):
            return manifest
        named = {*metadata, IGNORE.name} if owner_only else metadata
        written = given.spec if owner_only else _taken(kind, spec)
        if not (given.metadata.keys().isdisjoint(named) and given.spec.keys().isdisjoint(written)):
            given = given.without(named, written)
        if not self._growth.has_room(given.size, manifest, ("spec",)):
            return manifest
        filled = {**document, "metadata": {**metadata, **given.metadata}}
        if given.spec:
            filled["spec"] = {**spec, **given.spec}
        return manifest.changed(filled, given.origins)

    def _of(self, folder: _Folder, kind: str) -> _Given | None:
        key = (folder, kind)
        if key not in self._given:
            outer = self._of(folder[:-1], kind) if folder else None
            own = self._by_folder.get(folder)
            self._given[key] = _nearer(outer, own, kind) if own is not None else outer
        return self._given[key]

    def _folder(self, manifest: Manifest) -> _Folder:
        root = self._roots.get(manifest.file.root.path)
        if root is None:
            path = manifest.file.root.path
            root = self._roots[path] = FilePath(os.path.realpath(path)).parts
        return root + manifest.file.folder


def _nearer(outer: _Given | None, manifest: Manifest, kind: str) -> _Given | None:
    """Return the values of a folder's own document, and those of outer ones that it leaves out."""
    own = _own(manifest, kind)
    if outer is None:
        return own if own.origins else None
    rest = outer.without(own.metadata, _taken(kind, own.spec))
    return _Given(
        {**rest.metadata, **own.metadata},
        {**rest.spec, **own.spec},
        {**rest.origins, **own.origins},
        rest.size + own.size,
    )


def _own(manifest: Manifest, kind: str) -> _Given:
    metadata = mapping_in(manifest.document, "metadata")
    owners = {name: value for name, value in metadata.items() if name in _OWNERS[kind]}
    spec = mapping_in(mapping_in(manifest.document, "spec"), kind)
    paths: dict[Path, Path] = {
        **{("metadata", name): ("metadata", name) for name in owners},
        **{("spec", name): ("spec", kind, name) for name in spec},
    }
    ignored = mapping_in(metadata, IGNORE.name)
    if kind in ignored:
        owners[IGNORE.name] = ignored[kind]
        paths["metadata", IGNORE.name] = ("metadata", IGNORE.name, kind)
    origins: dict[Path, Origin] = {
        path: Origin(manifest.file, manifest.index, written) for path, written in paths.items()
    }
    return _Given(owners, spec, origins, size_of(owners) + size_of(spec))


def _taken(kind: str, spec: Mapping[str, YamlValue]) -> Collection[str]:
    """Return the names of fields, and the names that can be written in place of them."""
    taken = {name for pair in _ALTERNATIVES[kind] if not pair.isdisjoint(spec) for name in pair}
    return taken.union(spec) if taken else spec
