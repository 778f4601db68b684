"""Objects of a service as manifests: one document for each, the file it belongs in, and its text.

The folders are those of the example organization. A name that is not safe as a file name gets
another that no other object has; defaults are left out; nothing depends on ids or on time.

The text is YAML in block style with two spaces, no anchors and no tags. A text stands in quotes
wherever our reader, or one of another version of YAML, could take it for something else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from reconciler.kinds.fields import KINDS
from reconciler.manifests.manifest import SCRIPTS
from reconciler.manifests.placeholders import escaped
from reconciler.manifests.text import YamlMapping, YamlValue
from reconciler.manifests.yaml_source import typed
from reconciler.resources.kinds import API_VERSION
from reconciler.resources.normal import DEFAULTS, TYPES
from reconciler.resources.ref import EXACT, Kind, ResourceRef, fold
from reconciler.state import ObservedObject, Resource

SHORT_SCRIPT = 5  # lines that a manifest may hold itself
_PLAIN_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}", re.ASCII)
_LOOKS_MADE = re.compile(r".*-[0-9a-f]{16}", re.ASCII | re.DOTALL)
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])", re.ASCII | re.IGNORECASE)
_ODD = re.compile(r"[^A-Za-z0-9_]+", re.ASCII)


class Written(NamedTuple):
    """One object as a manifest.

    Attributes:
        ref: The object.
        path: File of the manifest, from the folder of them all.
        document: The manifest, its scripts in it.
        scripts: Files for the long ones, from the manifest's folder, by the names of their fields.
    """

    ref: ResourceRef
    path: str
    document: YamlMapping
    scripts: Mapping[str, str]

    def with_script_files(self) -> YamlMapping:
        """Return the manifest as it stands in its file: long scripts are named, not held."""
        if not self.scripts:
            return self.document
        spec, instead = self.document["spec"], KINDS[self.ref.kind].instead
        held = {name: value for name, value in spec.items() if name not in self.scripts}
        named = {instead[name].name: path for name, path in self.scripts.items()}
        return {**self.document, "spec": {**held, **named}}

    def text(self, *, scripts_beside: bool = False) -> str:
        """Return the manifest as YAML; ``scripts_beside`` names long scripts, holds none of them.

        A ``${`` that is meant as it stands is escaped, so that it is no variable.
        """
        return emit(escapes(self.with_script_files() if scripts_beside else self.document))


def escapes(document: Mapping[str, YamlValue]) -> YamlMapping:
    """Return a document that stands for exactly this one where variables are replaced.

    Scripts are left alone: variables in them are replaced only where their manifest says so.
    """
    sections = {
        part: {
            name: value if name in SCRIPTS else escaped_value(value)
            for name, value in document[part].items()
        }
        for part in ("metadata", "spec")
        if part in document
    }
    return {**document, **sections}


def escaped_value(value: YamlValue) -> YamlValue:
    """Return a value whose texts stand for exactly these where variables are replaced."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list):
        return [escaped_value(item) for item in value]
    if isinstance(value, dict):
        return {name: escaped_value(item) for name, item in value.items()}
    return value


def manifest_of(held: ObservedObject) -> Written:
    """Return the manifest of an object."""
    defaults = DEFAULTS[held.ref.kind]
    said = {name: value for name, value in held.spec.items() if value != defaults.get(name)}
    metadata = _metadata(held.ref, held)
    if not held.active:
        metadata["active"] = False
    return _written(held.ref, metadata, said)


def manifest_resolved(resource: Resource) -> Written:
    """Return the manifest of a declared resource with the fields that its manifest says."""
    metadata = _metadata(resource.ref, resource)
    if resource.pinned_id:
        metadata["id"] = resource.pinned_id
    if resource.active is not None:
        metadata["active"] = resource.active
    said = {name: value for name, value in resource.spec.items() if name in resource.written}
    return _written(resource.ref, metadata, said)


def _written(
    ref: ResourceRef, metadata: Mapping[str, YamlValue], said: Mapping[str, YamlValue]
) -> Written:
    """Return a manifest with some fields, scripts last: they may be long."""
    instead = KINDS[ref.kind].instead
    names = sorted(TYPES[ref.kind], key=instead.__contains__)
    document: YamlMapping = {
        "apiVersion": API_VERSION,
        "kind": ref.kind.value,
        "metadata": metadata,
    }
    if spec := {name: said[name] for name in names if name in said}:
        document["spec"] = spec
    path = f"{file_name(ref.organization)}/{_place(ref)}.yaml"
    scripts = {  # named after the object, in a folder and with an ending as in the example
        name: str(PurePosixPath(str(other.examples[0])).with_stem(file_name(ref.name)))
        for name, other in instead.items()
        if len(str(spec.get(name, "")).splitlines()) > SHORT_SCRIPT
    }
    return Written(ref, path, document, scripts)


def _place(ref: ResourceRef) -> str:
    """Return the file of a manifest beneath the folder of its organization."""
    own = file_name(ref.name, is_exact=ref.kind in EXACT)
    if ref.kind is Kind.ORGANIZATION:
        return "organization"
    if ref.kind is Kind.PROJECT:
        return f"projects/{own}/project"
    place = f"{KINDS[ref.kind].plural.replace(' ', '-')}/{own}"
    return f"projects/{file_name(ref.project)}/{place}" if ref.project else place


def file_name(name: str, *, is_exact: bool = False) -> str:
    """Return a file name for a name: the name itself, or one made from its digest.

    Two names that differ, ignoring case, have file names that differ, ignoring case; so have two
    exact names that differ in case only.
    """
    folded = fold(name)
    if (
        _PLAIN_FILE.fullmatch(name)
        and not (is_exact and name != folded)
        and not _LOOKS_MADE.fullmatch(name.lower())
        and not _RESERVED.fullmatch(name)
    ):
        return name
    slug = _ODD.sub("-", name).strip("-")[:40]
    digest = hashlib.sha256((name if is_exact else folded).encode()).hexdigest()[:16]
    return f"{slug or 'name'}-{digest}"


def order_of(ref: ResourceRef) -> tuple[str, int, ResourceRef]:
    """Return where a manifest stands among others: organization by organization, owners first."""
    key = ref.key
    return key.organization, list(Kind).index(ref.kind), key


def _metadata(ref: ResourceRef, marked: Resource | ObservedObject) -> YamlMapping:
    metadata: YamlMapping = {each.name: getattr(ref, each.name) for each in KINDS[ref.kind].owner}
    metadata["name"] = ref.name
    if marked.prevent_delete:
        metadata["preventDelete"] = True
    if marked.critical:
        metadata["critical"] = True
    if marked.ignored:
        metadata["ignore"] = sorted(marked.ignored)
    return metadata


STEP = "  "
_PLAIN_SCALAR = re.compile(
    r"[A-Za-z_/](?:[A-Za-z0-9 _./:@?=&%+~-]*[A-Za-z0-9_./@?=&%+~-])?", re.ASCII
)
_DURATION = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?s", re.ASCII)
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def emit(document: Mapping[str, YamlValue]) -> str:
    """Return one document as YAML, without a line of dashes."""
    return "".join(f"{line}\n" for line in _mapping(document, ""))


def _mapping(values: Mapping[str, YamlValue], indent: str) -> Iterator[str]:
    for key, value in values.items():
        yield from _entry(f"{indent}{scalar(key)}:", value, indent + STEP)


def _sequence(values: list[YamlValue], indent: str) -> Iterator[str]:
    for value in values:
        if isinstance(value, (dict, list)) and value:
            nested = list(_block(value, indent + STEP))
            yield f"{indent}- {nested[0].lstrip(' ')}"
            yield from nested[1:]
        else:
            yield from _entry(f"{indent}-", value, indent + STEP)


def _entry(head: str, value: YamlValue, indent: str) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        if value:
            yield head
            yield from _block(value, indent)
        else:
            yield f"{head} {'{}' if isinstance(value, dict) else '[]'}"
    elif isinstance(value, str) and _fits_a_block(value):
        yield f"{head} {'|' if value.endswith(_NEWLINE) else '|-'}"
        lines = value.removesuffix(_NEWLINE).split(_NEWLINE)
        yield from (f"{indent}{line}" if line else "" for line in lines)
    else:
        yield f"{head} {scalar(value)}"


def _block(value: YamlMapping | list[YamlValue], indent: str) -> Iterator[str]:
    return _mapping(value, indent) if isinstance(value, dict) else _sequence(value, indent)


_NEWLINE = "\n"


def scalar(value: YamlValue) -> str:
    """Return a value that is neither a mapping nor a list, on one line."""
    if value is None or isinstance(value, int):
        return json.dumps(value)
    text = str(value)
    return text if _is_plain(text) else quoted(text)


def quoted(text: str) -> str:
    """Return a text between double quotes; what an editor would not show is an escape."""
    return f'"{"".join(map(_escaped, text))}"'


def _is_plain(text: str) -> bool:
    if _DURATION.fullmatch(text):
        return True
    return (
        _PLAIN_SCALAR.fullmatch(text) is not None
        and ": " not in text
        and text.casefold() not in _WORDS
        and isinstance(typed(text), str)
    )


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _fits_a_block(text: str) -> bool:
    """Return whether a text of several lines reads back the same as a literal block."""
    lines = text.removesuffix(_NEWLINE).split(_NEWLINE)
    return (
        _NEWLINE in text
        and lines[0][:1] not in {"", " ", "\t"}
        and lines[-1] != ""
        and all(line.replace("\t", "").isprintable() and not line.isspace() for line in lines)
    )
