"""Lines of the files that findings are about, for showing. What is judged was read before."""

from __future__ import annotations

import os

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.discovery import MAX_FILE
from reconciler.manifests.opening import OpeningError, open_folder, read_file

_BOM = "\ufeff"


class SourceLines:
    """Reads files again, each once while findings about it follow each other."""

    def __init__(self) -> None:
        self._name = ""
        self._lines: list[str] = []

    def line_at(self, location: SourceLocation) -> str | None:
        """Return the line at a location, or None where the file cannot be read any more."""
        if location.file != self._name:
            self._name, self._lines = location.file, _lines_of(location.file)
        if not 0 < location.line <= len(self._lines):
            return None
        return self._lines[location.line - 1].removesuffix("\r")


def _lines_of(path: str) -> list[str]:
    folder, name = os.path.split(path)
    try:
        with open_folder(folder or ".", follow=True) as handle:
            data = read_file(name, handle, MAX_FILE)
    except OpeningError:
        return []
    return data.decode("utf-8", errors="replace").removeprefix(_BOM).split("\n")
