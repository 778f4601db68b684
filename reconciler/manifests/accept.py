"""Held values become edits of the manifests that declare them, or are refused.

A value is written where it comes from: in its document, in the overlay of the environment, or in a
script file. What others share, and what a variable stands for, is not written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from reconciler.diagnostics import FindingError, SourceLocation, cut, error
from reconciler.kinds.fields import KINDS
from reconciler.manifests.defaults import is_defaults
from reconciler.manifests.discovery import JSON
from reconciler.manifests.export import emit, escaped_value, escapes, file_name
from reconciler.manifests.manifest import (
    SCRIPTS,
    Manifest,
    Origin,
    Path,
    Root,
    SourceFile,
    declared_ref,
)
from reconciler.manifests.paired import paired
from reconciler.manifests.placeholders import Layers, escaped, left_over, names_in
from reconciler.manifests.rewrite import GONE, Edit
from reconciler.manifests.text import YamlMapping, YamlValue, is_same, mapping_in
from reconciler.resources.fields import Form, SpecValue
from reconciler.resources.kinds import API_VERSION, OVERLAID
from reconciler.resources.normal import SHORT
from reconciler.resources.ref import EXACT, Kind, ResourceRef

_ABSENT, _PATCH = (each.name for each in OVERLAID)
_METADATA = "metadata."
INTO_OVERLAY = "or write it for this environment alone with --into overlay"


class Target(NamedTuple):
    """A file to write: the folder it is beneath, and the way from there."""

    root: str
    parts: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the name of the file as it is shown."""
        return Root(self.root).shown + "/".join(self.parts)

    @property
    def is_json(self) -> bool:
        """Return whether the file is JSON."""
        return self.parts[-1].endswith(JSON)


class FileEdit(NamedTuple):
    """One change of one file.

    Attributes:
        ref: The object that it is about.
        field: Name of the field; empty for a document that goes or is new.
        place: Where it is.
        edit: A new value in a document of the file.
        removed: Position of a document that goes.
        text: The new text of the whole file: of a script, or of a file that is new.
        is_new: Whether there must be no such file.
        before: The text of the file as it was read.
    """

    target: Target
    ref: ResourceRef
    field: str
    place: SourceLocation
    edit: Edit | None = None
    removed: int | None = None
    text: str | None = None
    is_new: bool = False
    before: str = ""


class Acceptance:
    """Turns held values into edits of one reading of the manifests."""

    def __init__(self, layers: Layers, manifests: Sequence[Manifest]) -> None:
        self._layers = layers
        scripts = [_script_of(each) for each in manifests]
        self._shared = {name for name in scripts if name and scripts.count(name) > 1}

    def field(self, manifest: Manifest, ref: ResourceRef, name: str, held: SpecValue) -> FileEdit:
        """Return the edit that writes a field as it is held, where the field comes from.

        Raises:
            FindingError: it cannot be written there.
        """
        path, place = path_of(name), manifest.place(*path_of(name))
        _check_characters(name, held, place, ref)
        is_written, resolved = _at(manifest.document, path)
        origin = manifest.origin(*path) if is_written else _unwritten(manifest, path, place, ref)
        self._check_place(origin, name, place, ref)
        written = origin.entry[1].value if is_written else None
        in_script = path[-1] in SCRIPTS
        if in_script:  # JavaScript has ${} of its own
            written, held = origin.text, held if origin.text is None else escaped(held)
        value = held if in_script else as_written(ref.kind, name, written, resolved, held)
        instead = "" if self.is_of_overlay(origin.file) else f", {INTO_OVERLAY}"
        _check_texts(written, value, place, ref, in_script=in_script, instead=instead)
        if not origin.script:
            edit = Edit(origin.document, origin.written, value, _order(ref.kind, path[0]))
            return FileEdit(_target(origin.file), ref, name, place, edit, before=origin.file.text)
        if origin.script in self._shared:
            problem = f"the script file {origin.script} is shared by other manifests"
            remedy = f"Give this one a file of its own, {INTO_OVERLAY}."
            raise FindingError(error("ACCEPT-SHARED", problem, remedy, place, ref))
        parts = tuple(origin.script.removeprefix(origin.file.root.shown).split("/"))
        target, before = Target(origin.file.root.path, parts), origin.text or resolved
        place = SourceLocation(origin.script)
        return FileEdit(target, ref, name, place, text=value, before=before)

    def removal(self, manifest: Manifest, ref: ResourceRef) -> FileEdit:
        """Return the edit that takes a document out.

        Raises:
            FindingError: other environments or a document of the overlay need it.
        """
        file, place = manifest.file, manifest.place()
        self._check_place(manifest.origin(), "the document", place, ref)
        origins = [each.file for each in manifest.origins.values()]
        if not self.is_of_overlay(file) and any(map(self.is_of_overlay, origins)):
            raise _overlaid("the document", "the overlay changes it", place, ref)
        return FileEdit(_target(file), ref, "", place, removed=manifest.index, before=file.text)

    def in_patch(
        self,
        patch: Manifest,
        ref: ResourceRef,
        name: str,
        held: SpecValue,
        *,
        has_variables: bool = True,
    ) -> FileEdit:
        """Return the edit that writes a field into a document of the overlay.

        ``has_variables`` is false for a script that is not templated.

        Raises:
            FindingError: it cannot be written there.
        """
        path, place = path_of(name), patch.place(*path_of(name))
        _check_characters(name, held, place, ref)
        in_script = path[-1] in SCRIPTS
        files = [other.name for other in KINDS[ref.kind].instead.values()]
        if in_script and any(other in mapping_in(patch.document, "spec") for other in files):
            raise _overlaid(name, "the overlay names a file for it", place, ref)
        is_written, resolved = _at(patch.document, path)
        written = patch.origin(*path).entry[1].value if is_written and has_variables else None
        value = held if in_script else as_written(ref.kind, name, written, resolved, held)
        _check_texts(written, value, place, ref, in_script=in_script)
        edit = Edit(patch.index, path, value, _order(ref.kind, path[0]))
        return FileEdit(_target(patch.file), ref, name, place, edit, before=patch.file.text)

    def patched_removal(self, patch: Manifest, ref: ResourceRef) -> FileEdit:
        """Refuse to take an object out that a document of the overlay changes.

        Raises:
            FindingError: always.
        """
        raise _overlaid("absent: true", "the overlay changes the object", patch.place(), ref)

    def new_patch(
        self, ref: ResourceRef, fields: Mapping[str, SpecValue] | None, place: SourceLocation
    ) -> FileEdit:
        """Return the edit that makes a document of the overlay with fields of an object.

        Without fields the document takes the object out. ``place`` is that of its manifest.

        Raises:
            FindingError: a value cannot be written in a manifest.
        """
        values: dict[str, YamlMapping] = {"metadata": {}, "spec": {}}
        for name, held in (fields or {}).items():
            _check_characters(name, held, place, ref)
            _check_texts(None, escaped_value(held), place, ref, in_script=name in SCRIPTS)
            section, field = path_of(name)
            values[section][field] = held
        owners = {each.name: getattr(ref, each.name) for each in KINDS[ref.kind].owner}
        mark = {_ABSENT if fields is None else _PATCH: True}
        document = {
            "apiVersion": API_VERSION,
            "kind": ref.kind.value,
            "metadata": {**owners, "name": ref.name, **values["metadata"], **mark},
            **({"spec": values["spec"]} if values["spec"] else {}),
        }
        parts = [file_name(part) for part in (ref.kind.value.lower(), *ref[1:3]) if part]
        parts.append(file_name(ref.name, is_exact=ref.kind in EXACT))
        # No part has a dot, so that no two objects have one file.
        target = Target(self._layers.overlay, (f"{'.'.join(parts)}.yaml",))
        text = emit(escapes(document))
        return FileEdit(target, ref, "", SourceLocation(target.name), text=text, is_new=True)

    def is_of_overlay(self, file: SourceFile) -> bool:
        """Return whether a file is in the overlay of the environment."""
        overlay = self._layers.overlay
        return bool(overlay) and os.path.normpath(file.root.path) == os.path.normpath(overlay)

    def _check_place(
        self, origin: Origin, what: str, place: SourceLocation, ref: ResourceRef
    ) -> None:
        """Refuse a document that others share."""
        file = origin.file
        if is_defaults(_document_of(origin)):
            problem = "Defaults, which other manifests share"
            remedy = f"Write it into the manifest itself, {INTO_OVERLAY}."
        elif self.is_of_overlay(file) and self._layers.is_shared:
            problem = "an overlay that other environments share"
            remedy = "Give this environment an overlay of its own, or change the file by hand."
        else:
            return
        raise FindingError(
            error("ACCEPT-SHARED", f"{what} comes from {problem}", remedy, place, ref)
        )


def _unwritten(manifest: Manifest, path: Path, place: SourceLocation, ref: ResourceRef) -> Origin:
    """Return where a field is to be added that no document writes.

    Raises:
        FindingError: the overlay takes it out, so that adding it would change nothing.
    """
    origin = Origin(manifest.file, manifest.index, path)
    if _at(_document_of(origin), path)[0]:
        raise _overlaid(str(path[-1]), "the overlay takes it out", place, ref)
    return origin


def _document_of(origin: Origin) -> YamlValue:
    """Return the whole document of a value, as it is written."""
    return origin._replace(written=()).entry[1].value


def path_of(name: str) -> tuple[str, str]:
    """Return the path of a field by the name that reports give it."""
    if name.startswith(_METADATA):
        return "metadata", name.removeprefix(_METADATA)
    return "spec", name


def with_field(document: YamlMapping, name: str, held: SpecValue) -> YamlMapping:
    """Return a resolved document with a field as it is held."""
    section, field = path_of(name)
    values = {**(document.get(section) or {}), field: held}
    if held == {}:
        del values[field]
    return {**document, section: values}


def as_written(
    kind: Kind, name: str, written: YamlValue, resolved: YamlValue, held: SpecValue
) -> YamlValue:
    """Return a held value as a manifest writes it beside what stands there.

    Words keep their spelling, short or long. Items that stay keep what they are written as, with
    their variables, and a set its order. A ``${`` that is meant is escaped.
    """
    row = next((each for each in KINDS[kind].fields if each.name == name), None)
    form = row.form if row is not None else Form.FLAG
    if form is Form.VARIANT and not held:
        return GONE
    if form in {Form.CHOICE, Form.SET}:
        return _words(SHORT[kind].get(name, {}), written, resolved, held)
    return _kept(written, resolved, held)


def _words(
    short: Mapping[str, str], written: YamlValue, resolved: YamlValue, held: SpecValue
) -> YamlValue:
    spelled = {long: word for word, long in short.items()}
    if not isinstance(held, list):
        return spelled[held] if resolved in short and held in spelled else held
    pairs = list(zip(written, resolved, strict=False)) if isinstance(written, list) else []
    known = {short.get(word, word) for _, word in pairs}
    is_short = any(word in short for _, word in pairs)
    kept = [text for text, word in pairs if short.get(word, word) in held]
    new = [word for word in held if word not in known]
    return kept + [spelled.get(word, word) if is_short else word for word in new]


def _kept(written: YamlValue, resolved: YamlValue, held: YamlValue) -> YamlValue:
    if is_same(resolved, held):
        return written
    if isinstance(held, list) and isinstance(written, list) and isinstance(resolved, list):
        items = [*map(escaped_value, held)]
        for before, after in paired(resolved, held):
            items[after] = written[before]
        return items
    if isinstance(held, dict) and isinstance(written, dict) and isinstance(resolved, dict):
        return {
            key: _kept(written.get(key), resolved.get(key), value) for key, value in held.items()
        }
    return escaped_value(held)


def _at(document: YamlValue, path: Path) -> tuple[bool, YamlValue]:
    """Return whether a document has a value under a path, and the value."""
    for step in path:
        if not isinstance(document, dict) or step not in document:
            return False, None
        document = document[step]
    return True, document


def _texts(value: YamlValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _lost_variables(written: YamlValue, value: YamlValue) -> list[str]:
    """Return the variables of texts that a value no longer has."""
    kept = set(_texts(value))
    return [name for text in _texts(written) if text not in kept for name in names_in(text)]


def _placeholder(value: YamlValue, written: YamlValue) -> str:
    """Return a placeholder of another tool that a value brings in; empty for none."""
    before = set(_texts(written))
    found = (left_over(text) for text in _texts(value) if text not in before)
    return next((token.text for token in found if token is not None), "")


# A script file has no escapes: neither what a terminal obeys nor what turns text is written there.
_CONTROL = "[\x00-\x1f\x7f-\x9f]"
_IN_SCRIPT = (
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
    "|\r(?!\n)"
)


def _check_characters(name: str, held: SpecValue, place: SourceLocation, ref: ResourceRef) -> None:
    pattern = _IN_SCRIPT if name in SCRIPTS else _CONTROL
    found = next(filter(None, (re.search(pattern, text) for text in _texts(held))), None)
    if found is not None:
        problem = f"the service holds the invisible character U+{ord(found[0]):04X} in {name}"
        raise FindingError(error("ACCEPT-CHARACTER", problem, _ON_SERVICE, place, ref))


def _check_texts(
    written: YamlValue,
    value: YamlValue,
    place: SourceLocation,
    ref: ResourceRef,
    *,
    in_script: bool,
    instead: str = "",
) -> None:
    """Refuse a value that takes a variable away, or brings in a placeholder of another tool."""
    if lost := _lost_variables(written, value):
        problem = f"the value comes from the variable {lost[0]}"
        remedy = f"Change the value of the variable in reconciler.yaml{instead}."
        raise FindingError(error("ACCEPT-VARIABLE", problem, remedy, place, ref))
    if not in_script and (token := _placeholder(value, written)):
        problem = f"the service holds {cut(token)}, which no manifest can say"
        raise FindingError(error("ACCEPT-PLACEHOLDER", problem, _ON_SERVICE, place, ref))


def _order(kind: Kind, section: str | int) -> Sequence[str]:
    """Return the names of a section in the order of its schema."""
    row = KINDS[kind]
    if section == "metadata":
        return [each.name for each in (*row.owner, *row.metadata, *row.reading)]
    names = []
    for each in row.fields:
        names.append(each.name)
        if each.name in row.instead:
            names.append(row.instead[each.name].name)
    return names


def _target(file: SourceFile) -> Target:
    shown = file.root.shown + "".join(f"{part}/" for part in file.folder)
    return Target(file.root.path, (*file.folder, file.name.removeprefix(shown)))


def _script_of(manifest: Manifest) -> str:
    ref = declared_ref(manifest.document)
    names = KINDS[ref.kind].instead if ref else ()
    return next((script for name in names if (script := manifest.origin("spec", name).script)), "")


_ON_SERVICE = "Remove it on the service, or take the change back with apply."


def _overlaid(what: str, why: str, place: SourceLocation, ref: ResourceRef) -> FindingError:
    remedy = "Change the base and the overlay by hand, so that they say what the service holds."
    return FindingError(
        error("ACCEPT-OVERLAY", f"{what} cannot be written: {why}", remedy, place, ref)
    )
