"""Manifests: documents as they were written, their files, and the place of every value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from reconciler.diagnostics import Diagnostic, SourceLocation, error
from reconciler.kinds.fields import KINDS
from reconciler.manifests.placeholders import Values, names_in, written_position
from reconciler.manifests.text import YamlValue, mapping_in, readable_part
from reconciler.manifests.yaml_source import (
    Entry,
    Node,
    Start,
    Trace,
    node_of,
    read_documents,
)
from reconciler.resources.ref import KIND_NAMED, Kind, ResourceRef

Path = tuple[str | int, ...]

SCRIPTS = frozenset(name for row in KINDS.values() for name in row.instead)
"""The fields that a file may stand in for: what looks like a variable in them may be meant."""

SCRIPT_FILES = frozenset(other.name for row in KINDS.values() for other in row.instead.values())
"""The fields that name those files."""


class Origin(NamedTuple):
    """Origin of a resolved value: the document that it is written in, and where there.

    Attributes:
        file: File of the document.
        document: Position of the document in the file.
        written: Path of the value in the document.
        script: Name of the script file that holds the text; empty where the document itself does.
        text: A script before its variables were replaced; None for everything else.
    """

    file: SourceFile
    document: int
    written: Path
    script: str = ""
    text: str | None = None

    @property
    def entry(self) -> Entry:
        """Return key and value as they are written, or the nearest ones above."""
        return _node_of(self.file, self.document).nearest(self.written)

    def location(self, node: Node, value_from: str = "") -> SourceLocation:
        """Return the place of a node of the document."""
        line = self.file.starts[self.document].lines + node.line
        return SourceLocation(self.file.name, line, node.column, value_from)


@dataclass(eq=False, slots=True)
class Manifest:
    """One document, resolved: every reference to a file is replaced by what the file holds.

    Attributes:
        document: Whatever plain value the YAML stands for, not necessarily a mapping.
        file: The file that it is written in.
        index: Its position there.
        origins: Where values come from that are not written in it, by their path.
    """

    document: YamlValue
    file: SourceFile
    index: int = 0
    origins: Mapping[Path, Origin] = field(default_factory=dict)

    @property
    def organization(self) -> str | None:
        """The organization that the document names; None if it names none."""
        metadata = mapping_in(self.document, "metadata")
        is_organization = bool(metadata) and self.document.get("kind") == Kind.ORGANIZATION
        name = metadata.get("name" if is_organization else "organization")
        return name if isinstance(name, str) and name else None

    def changed(self, document: YamlValue, origins: Mapping[Path, Origin]) -> Manifest:
        """Return the manifest with another document, some of whose values come from elsewhere."""
        both = {**self.origins, **origins} if self.origins else origins
        return Manifest(document, self.file, self.index, both)

    def place(self, *path: str | int) -> SourceLocation:
        origin = self.origin(*path)
        _, node = origin.entry
        written = origin.text if path[-1:] and path[-1] in SCRIPTS else node.value
        names = names_in(written) if origin.file.variables and isinstance(written, str) else ()
        return origin.location(node, origin.file.value_from(names))

    def place_of_key(self, *path: str | int) -> SourceLocation:
        """Return the place of the key of a value, or of the value itself if it has no key."""
        origin = self.origin(*path)
        key, node = origin.entry
        return origin.location(key or node)

    def place_within(self, line: int, column: int, *path: str | int) -> SourceLocation:
        """Return a place in the file the text comes from, or in the block it is written in.

        Where line breaks are folded or escaped it is the place of the text as a whole.
        """
        origin, name = self.origin(*path), ""
        if origin.text is not None:
            variables = origin.file.variables
            line, column, name = written_position(origin.text, variables, line, column)
        value_from = origin.file.value_from([name]) if name else ""
        if origin.script:
            return SourceLocation(origin.script, line, column, value_from)
        _, node = origin.entry
        place, text = origin.location(node, value_from), node.value.split("\n")
        source = _lines_of(origin.file)
        row = place.line + line  # the block starts in the line after its header
        if node.style == "|" and line <= len(text) and row <= len(source):
            indent = max(source[row - 1].find(text[line - 1]), 0)
            place = place._replace(line=row, column=indent + column)
        return place

    def origin(self, *path: str | int) -> Origin:
        """Return where a value comes from."""
        for length in range(len(path), 0, -1):
            origin = self.origins.get(path[:length])
            if origin is not None:
                return origin._replace(written=(*origin.written, *path[length:]))
        return Origin(self.file, self.index, path)


def kind_of(document: YamlValue) -> Kind | None:
    """Return the kind that a document says it is of, or None."""
    kind = document.get("kind") if isinstance(document, dict) else None
    return KIND_NAMED.get(kind) if isinstance(kind, str) else None


def declared_ref(document: YamlValue) -> ResourceRef | None:
    """Return the ref of the object that a document declares; None if it names none."""
    kind, metadata = kind_of(document), mapping_in(document, "metadata")
    if kind is None:
        return None
    name = metadata.get("name")
    owners = {each.name: metadata.get(each.name) for each in KINDS[kind].owner}
    names = {"organization": name, "project": "", **owners, "name": name}
    if not all(isinstance(each, str) and each for each in (name, *owners.values())):
        return None
    return ResourceRef(kind, *(str(each) for each in names.values()))


@dataclass(frozen=True, slots=True)
class Loaded:
    """Manifests and findings of one reading.

    Attributes:
        manifests: In the order of files and documents.
        diagnostics: What could not be read.
        whole: Whether this is a whole tree, or a whole shard of it, so that absence means
            something.
        defaults: The Defaults documents that were read, their variables replaced, for judging.
        patches: The documents of the overlay that change or take out others, their variables
            replaced, for judging.
        without_room: File, line and column of each value for which the limit of ``Growth`` left
            no room.
    """

    manifests: tuple[Manifest, ...]
    diagnostics: tuple[Diagnostic, ...]
    whole: bool
    defaults: tuple[Manifest, ...] = ()
    patches: tuple[Manifest, ...] = ()
    without_room: frozenset[tuple[str, int, int]] = frozenset()


class Root:
    """A folder given on the command line: nothing outside it is opened for its manifests."""

    __slots__ = ("path", "shown")

    def __init__(self, path: str) -> None:
        self.path = path or "."
        self.shown = "" if path in {"", "."} else path.rstrip("/") + "/"


@dataclass(eq=False, slots=True)
class SourceFile:
    """The text of one file, its name as it is shown, and its folder beneath the root.

    ``starts`` has the start of each document that was read. ``variables`` are those that can stand
    in its values.
    """

    name: str
    text: str
    root: Root
    folder: tuple[str, ...]
    variables: Values = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list, init=False)

    def read(self) -> Trace:
        """Return the documents, the findings and the starts, which are kept as well."""
        found = read_documents(self.text, self.name)
        self.starts = found.starts
        return found

    def value_from(self, names: Iterable[str]) -> str:
        """Return where the values of some variables come from, in words."""
        known = ((name, self.variables.get(name)) for name in names)
        said = [f"{name} from {found.origin}" for name, found in known if found is not None]
        more = [f"{len(said) - _NAMED} more"] if len(said) > _NAMED else []
        return ", ".join(said[:_NAMED] + more)


_NAMED = 5
"""Variables of one value that a finding names."""


@lru_cache(maxsize=1)
def _lines_of(file: SourceFile) -> list[str]:
    return file.text.split("\n")


# Findings come document by document: a few are enough, and the nodes of a large one are many.
@lru_cache(maxsize=16)
def _node_of(file: SourceFile, document: int) -> Node:
    """Return one document in which reading finds nothing wrong, with the places of its values."""
    if not file.starts:  # it was made here, and not read
        file.read()
    start, *after = file.starts[document : document + 2]
    end = after[0].characters if after else len(file.text)
    # The parser reads ahead, and must not meet what it stopped at behind the document.
    return node_of(readable_part(file.text[start.characters : end]))


MAX_PUT_IN = 32 * 1024 * 1024
"""Characters, about."""


class Growth:
    """Counts what is put in. A few characters of a manifest can stand for many."""

    def __init__(self, most: int = MAX_PUT_IN) -> None:
        self.findings: list[Diagnostic] = []
        self.without_room: set[tuple[str, int, int]] = set()
        self._most = self._left = most

    def has_room(self, size: int, manifest: Manifest, path: Path) -> bool:
        """Count what is put in at a place; the first without room is reported.

        The places of all of them are kept: findings there only follow from this one.
        """
        self._left -= size
        if self._left >= 0:
            return True
        place = manifest.place(*path)
        self.without_room.add(place[:3])
        if not self.findings:
            self.findings.append(
                error(
                    "VARIABLE-SIZE",
                    f"variables and Defaults put in more than {self._most} characters",
                    "Write shorter values, or use them in fewer places.",
                    place,
                )
            )
        return False
