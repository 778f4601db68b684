"""Overlays: documents of one environment, laid over the manifests that every environment shares.

A document whose ref the base declares changes just the fields that it names: mappings merge, lists
replace, and null means that the base had not written the field. ``absent: true`` takes the manifest
out. Any other document is added. Values keep the place that they come from.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.diagnostics import Diagnostic, SourceLocation, error, name_as_text
from reconciler.kinds.fields import KINDS
from reconciler.manifests.defaults import FolderDefaults
from reconciler.manifests.manifest import SCRIPT_FILES, Manifest, Origin, Path, declared_ref
from reconciler.manifests.text import YamlMapping, YamlValue, is_same, mapping_in
from reconciler.resources.kinds import OVERLAID
from reconciler.resources.nearest import MOST_HINTS, NearNames, nearest
from reconciler.resources.normal import SHORT
from reconciler.resources.ref import KIND_NAMED, Kind, ResourceRef, fold

_ABSENT, _PATCH = (each.name for each in OVERLAID)
_IDENTITY = frozenset({"organization", "project", "name"})


class Overlay:
    """The documents of an overlay, each by the ref that it is about.

    Their owners are filled in already. All else in the overlay's own Defaults is for documents
    that it adds.
    """

    def __init__(self, documents: Iterable[Manifest], defaults: FolderDefaults) -> None:
        self.findings: list[Diagnostic] = []
        self.patches: list[Manifest] = []
        self._defaults = defaults
        self._others: list[Manifest] = []
        self._by_ref: dict[ResourceRef, Manifest] = {}
        for document in documents:
            self._take(document)
        self._left = dict(self._by_ref)
        self._names = {fold(ref.name) for ref in self._by_ref}

    def _take(self, manifest: Manifest) -> None:
        ref = declared_ref(manifest.document)
        if ref is None:
            self._others.append(manifest)
            return
        first = self._by_ref.setdefault(ref.key, manifest)
        if first is not manifest:
            summary = f"a second document of this overlay about {ref}"
            remedy = f"The first is at {first.place()}: write one of them."
            place = manifest.place("metadata", "name")
            self.findings.append(error("OVERLAY-TWICE", summary, remedy, place, ref))

    def lay_over(self, base: Manifest, defaults: FolderDefaults) -> Manifest | None:
        """Return a manifest of the base as it is in this environment; None if it is taken out."""
        name = mapping_in(base.document, "metadata").get("name")
        if not isinstance(name, str) or fold(name) not in self._names:
            return defaults.fill(base)  # most are of this sort, and are filled once
        owned = defaults.fill(base, owner_only=True)
        ref = declared_ref(owned.document)
        patch = self._by_ref.get(ref.key) if ref is not None else None
        if ref is None or patch is None:
            return defaults.fill(owned)
        if self._left.pop(ref.key, None) is not None:
            self.patches.append(patch)
        if _flag(patch, _ABSENT):
            return None
        before, after = defaults.fill(owned), defaults.fill(_merged(owned, patch))
        if is_same(_spelt(before), _spelt(after)) and not _names_a_file(patch):
            self.findings.append(_unchanged(patch, ref))
        return after

    def added(self, base: Iterable[Manifest]) -> Iterator[Manifest]:
        """Yield the documents that the base does not have; those that it must have are reported."""
        near: Callable[[ResourceRef], str | None] | None = None
        for ref, manifest in self._left.items():
            if not (_flag(manifest, _ABSENT) or _flag(manifest, _PATCH)):
                yield self._whole(manifest)
                continue
            near = near or _near_refs(declared_ref(each.document) for each in base)
            self.patches.append(manifest)
            self.findings.append(_without_base(manifest, ref, near(ref)))
        yield from map(self._whole, self._others)

    def _whole(self, manifest: Manifest) -> Manifest:
        filled = self._defaults.fill(manifest)
        metadata = mapping_in(filled.document, "metadata")
        flags = [name for name in (_ABSENT, _PATCH) if metadata.get(name) is False]
        if not flags:
            return filled
        rest = {name: value for name, value in metadata.items() if name not in flags}
        return filled.changed({**filled.document, "metadata": rest}, {})


def _near_refs(refs: Iterable[ResourceRef | None]) -> Callable[[ResourceRef], str | None]:
    """Return a function that finds the name that a document means, with owners that differ."""
    named: dict[tuple[Kind, str], list[ResourceRef]] = {}
    for ref in refs:
        if ref is not None:
            named.setdefault((ref.kind, ref.name), []).append(ref)
    near = NearNames(named)

    def meant_by(ref: ResourceRef) -> str | None:
        name = near.name_for(ref.name, ref.kind)
        found = named[ref.kind, name][:MOST_HINTS] if name else []
        if any(each.key[:-1] == ref.key[:-1] for each in found):
            return name
        return nearest(str(ref), map(str, found))

    return meant_by


_OF_FOLDER = {
    "FILE-MISSING": "the folder of the overlay does not exist",
    "FILE-NONE": "the folder of the overlay holds no documents",
}


def about_folder(finding: Diagnostic, folder: str, place: SourceLocation) -> Diagnostic:
    """Return a finding about the folder of an overlay at the place that names it."""
    if finding.code not in _OF_FOLDER or finding.location != SourceLocation(name_as_text(folder)):
        return finding
    meant = _folder_like(pathlib.Path(folder))
    hint = ""
    if meant is not None:
        written = os.path.relpath(meant, pathlib.Path(place.file).parent)
        hint = f"Did you mean {name_as_text(written)}? "
    remedy = f"{hint}Write a folder with .yaml files, or leave overlay out."
    return replace(finding, summary=_OF_FOLDER[finding.code], remedy=remedy, location=place)


def _folder_like(path: pathlib.Path) -> pathlib.Path | None:
    """Return the existing folder whose path is most like another one, or None where none is."""
    if path.parent == path:
        return None
    try:
        others = [each for each in path.parent.iterdir() if each.is_dir() and each != path]
    except OSError:
        above = _folder_like(path.parent)
        inner = above / path.name if above else None
        return inner if inner and inner.is_dir() else None
    meant = nearest(path.name, (each.name for each in others if not each.name.startswith(".")))
    return path.parent / meant if meant else None


def _merged(base: Manifest, patch: Manifest) -> Manifest:
    document, origins = dict(base.document), dict[Path, Origin]()

    def lay_over(path: Path, value: YamlValue) -> YamlValue:
        origins[path] = Origin(patch.file, patch.index, path)
        return value

    def section(name: str, over: YamlMapping) -> YamlMapping:
        """Return a section with the fields of the patch; null takes one out."""
        fields = dict(document.get(name, {}))
        for key, value in over.items():
            if value is None:
                fields.pop(key, None)
            else:
                fields[key] = lay_over((name, key), value)
        return fields

    marks = mapping_in(patch.document, "metadata").items()
    own = {key: value for key, value in marks if key not in {*_IDENTITY, _ABSENT, _PATCH}}
    document["metadata"] = section("metadata", own)
    spec = patch.document.get("spec", {})
    if spec is None:
        document.pop("spec", None)
    elif spec != {}:
        is_section = isinstance(spec, dict) and isinstance(document.get("spec", {}), dict)
        document["spec"] = section("spec", spec) if is_section else lay_over(("spec",), spec)
    if gone := _displaced(KIND_NAMED[document["kind"]], spec):
        document["spec"] = {k: value for k, value in document["spec"].items() if k not in gone}
    return base.changed(document, origins)


def _displaced(kind: Kind, spec: YamlValue) -> set[str]:
    """Return the fields of the base in whose place a patch writes another one."""
    written = {name for name in spec if spec[name] is not None} if isinstance(spec, dict) else ()
    pairs = [*KINDS[kind].alternatives, *(pair[::-1] for pair in KINDS[kind].alternatives)]
    return {other for name, other in pairs if name in written}


def _spelt(manifest: Manifest) -> YamlMapping:
    """Return a document with the words of its spec in their long spelling."""
    document, spec = manifest.document, mapping_in(manifest.document, "spec")
    short = SHORT[KIND_NAMED[document["kind"]]]
    words = {name: _long(spec[name], short[name]) for name in short.keys() & spec.keys()}
    return {**document, "spec": {**spec, **words}} if words else document


def _long(value: YamlValue, short: Mapping[str, str]) -> YamlValue:
    if isinstance(value, list):
        return [_long(each, short) for each in value]
    return short.get(value, value) if isinstance(value, str) else value


def _flag(manifest: Manifest, name: str) -> bool:
    return mapping_in(manifest.document, "metadata").get(name) is True


def _names_a_file(patch: Manifest) -> bool:
    """Return whether a patch names a file: the same name can mean another file in the base."""
    return not SCRIPT_FILES.isdisjoint(mapping_in(patch.document, "spec"))


def _unchanged(patch: Manifest, ref: ResourceRef) -> Diagnostic:
    return error(
        "OVERLAY-UNCHANGED",
        f"this document changes nothing of {ref}",
        "Remove it, or write the fields that differ in this environment.",
        patch.place(),
        ref,
    )


def _without_base(manifest: Manifest, ref: ResourceRef, meant: str | None) -> Diagnostic:
    does = "takes out" if _flag(manifest, _ABSENT) else "changes"
    hint = f"Did you mean {meant}? " if meant else ""
    return error(
        "OVERLAY-NO-BASE",
        f"this document {does} {ref}, which the manifests do not declare",
        f"{hint}Correct the names, or remove the document.",
        manifest.place("metadata", "name"),
        ref,
    )
