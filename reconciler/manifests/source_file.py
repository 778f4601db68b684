"""One file of manifests as it was read, and the places of what is written in it."""

from __future__ import annotations

from functools import lru_cache

from reconciler.manifests.trace import Trace
from reconciler.manifests.yaml_source import trace_documents


class Root:
    """A folder given on the command line: nothing outside it is opened for its manifests."""

    __slots__ = ("path", "shown")

    def __init__(self, path: str) -> None:
        self.path = path or "."
        self.shown = "" if path in {"", "."} else path.rstrip("/") + "/"


class SourceFile:
    """The text of one file, its name as it is shown, and its folder beneath the root."""

    __slots__ = ("folder", "name", "root", "text")

    def __init__(self, name: str, text: str, root: Root, folder: tuple[str, ...]) -> None:
        self.name = name
        self.text = text
        self.root = root
        self.folder = folder

    def trace(self) -> Trace:
        """Return findings and places, by reading the text once more."""
        return _trace_of(self)

    def lines(self) -> list[str]:
        """Return the lines of the text."""
        return _lines_of(self)


@lru_cache(maxsize=1)
def _lines_of(file: SourceFile) -> list[str]:
    return file.text.split("\n")


# Findings come file by file: a few traces are enough, and one of a large file is large.
@lru_cache(maxsize=16)
def _trace_of(file: SourceFile) -> Trace:
    return trace_documents(file.text, file.name)
