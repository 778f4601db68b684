"""Manifests: documents as they were written, their files, and the place of every value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from reconciler.diagnostics import Diagnostic, SourceLocation
from reconciler.manifests.trace import Mark, Trace
from reconciler.manifests.yaml_source import Start, read_documents, trace_documents
from reconciler.resources.ref import Kind

Path = tuple[str | int, ...]


class Origin(NamedTuple):
    """Origin of a resolved value: a place in the manifest, and the file named there."""

    written: Path
    file: str


_NO_ORIGINS: Mapping[Path, Origin] = MappingProxyType({})


class Manifest:
    """One document, resolved: every reference to a file is replaced by what the file holds.

    ``document`` is whatever plain value the YAML stands for, not necessarily a mapping.
    """

    __slots__ = ("document", "file", "index", "origins")

    def __init__(
        self,
        document: Any,
        file: SourceFile,
        index: int = 0,
        origins: Mapping[Path, Origin] = _NO_ORIGINS,
    ) -> None:
        self.document = document
        self.file = file
        self.index = index
        self.origins = origins

    @property
    def organization(self) -> str | None:
        """The organization that the document names; None if it names none."""
        document = self.document
        metadata = document.get("metadata") if isinstance(document, dict) else None
        if not isinstance(metadata, dict):
            return None
        is_organization = document.get("kind") == Kind.ORGANIZATION
        name = metadata.get("name" if is_organization else "organization")
        return name if isinstance(name, str) and name else None

    def place(self, *path: str | int) -> SourceLocation:
        """Return the place of a value, or of the nearest one above it."""
        return self._location(self.file.value_mark(self.index, self._written(path)))

    def place_of_key(self, *path: str | int) -> SourceLocation:
        """Return the place of the key of a value."""
        return self._location(self.file.key_mark(self.index, self._written(path)))

    def place_within(self, line: int, column: int, *path: str | int) -> SourceLocation:
        """Return the place of a line and column, from 1, of the text under a path.

        That is a place in the file the text comes from, or in the block it is written in.
        Where line breaks are folded or escaped it is the place of the text as a whole.
        """
        origin = self.origins.get(path)
        if origin is not None:
            return SourceLocation(origin.file, line, column)
        mark = self.file.value_mark(self.index, path)
        if mark.style != "|":
            return self._location(mark)
        return self._location(self._in_block(mark, line, column, path))

    def _in_block(self, mark: Mark, line: int, column: int, path: Path) -> Mark:
        value: Any = self.document
        for step in path:
            value = value[step]
        source, text = self.file.lines(), value.split("\n")
        row = mark.line + line  # the block starts in the line after its header
        if not (line <= len(text) and row <= len(source)):
            return mark
        indent = max(source[row - 1].find(text[line - 1]), 0)
        return Mark(row, indent + column)

    def _written(self, path: Path) -> Path:
        for length in range(len(path), 0, -1):
            origin = self.origins.get(path[:length])
            if origin is not None:
                return origin.written
        return path

    def _location(self, mark: Mark) -> SourceLocation:
        return SourceLocation(self.file.name, mark.line, mark.column)


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
    """

    manifests: tuple[Manifest, ...]
    diagnostics: tuple[Diagnostic, ...]
    whole: bool
    defaults: tuple[Manifest, ...] = ()
    patches: tuple[Manifest, ...] = ()


class Root:
    """A folder given on the command line: nothing outside it is opened for its manifests."""

    __slots__ = ("path", "shown")

    def __init__(self, path: str) -> None:
        self.path = path or "."
        self.shown = "" if path in {"", "."} else path.rstrip("/") + "/"


class SourceFile:
    """The text of one file, its name as it is shown, and its folder beneath the root.

    ``starts`` has the start of each document where the first reading found nothing wrong.
    """

    __slots__ = ("folder", "name", "root", "starts", "text")

    def __init__(self, name: str, text: str, root: Root, folder: tuple[str, ...]) -> None:
        self.name = name
        self.text = text
        self.root = root
        self.folder = folder
        self.starts: list[Start] = []

    def read(self) -> list[Any] | None:
        """Return the documents, or None where only ``trace`` can tell what is wrong."""
        documents = read_documents(self.text, self.starts)
        if documents is None:
            self.starts.clear()
        return documents

    def trace(self) -> Trace:
        """Return findings and places, by reading the text once more."""
        return _trace_of(self, None)

    def value_mark(self, document: int, path: Path) -> Mark:
        """Return the place of a value, or of the nearest one above it."""
        trace, index = self._trace_with(document)
        return trace.value_mark(index, path)

    def key_mark(self, document: int, path: Path) -> Mark:
        """Return the place of the key of a value, or of the value itself if it has no key."""
        trace, index = self._trace_with(document)
        return trace.key_mark(index, path)

    def _trace_with(self, document: int) -> tuple[Trace, int]:
        """Return a trace that a document is in, and the document's position there."""
        return (_trace_of(self, document), 0) if self.starts else (self.trace(), document)

    def lines(self) -> list[str]:
        """Return the lines of the text."""
        return _lines_of(self)


@lru_cache(maxsize=1)
def _lines_of(file: SourceFile) -> list[str]:
    return file.text.split("\n")


# Findings come document by document: a few traces are enough, and one of a large file is large.
@lru_cache(maxsize=16)
def _trace_of(file: SourceFile, document: int | None) -> Trace:
    """Return the trace of one document, or of all."""
    if document is None:
        return trace_documents(file.text, file.name)
    start, *after = file.starts[document : document + 2]
    end = after[0].characters if after else len(file.text)
    return trace_documents(file.text[start.characters : end], file.name, start.lines)
