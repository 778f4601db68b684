"""Files that are read once for several environments: their text is taken apart a single time."""

from __future__ import annotations

from typing import Any

from reconciler.manifests.manifest import SourceFile
from reconciler.manifests.yaml_source import Start


class KnownFiles:
    """The documents of texts that were read in one run.

    Each reading gets copies of its own, because variables are replaced in them where they stand. A
    text in which something is wrong is not kept.
    """

    def __init__(self) -> None:
        self._by_text: dict[str, tuple[list[Any], list[Start]]] = {}

    def read(self, file: SourceFile) -> list[Any] | None:
        """Return the documents of a file, or None where only its trace can tell what is wrong."""
        known = self._by_text.get(file.text)
        if known is not None:
            file.starts += known[1]
            return [*map(_copied, known[0])]
        documents = file.read()
        if documents is not None:
            self._by_text[file.text] = ([*map(_copied, documents)], [*file.starts])
        return documents


def _copied(value: Any) -> Any:
    """Return a copy of a plain value; its texts and numbers are shared."""
    if type(value) is dict:
        return {name: _copied(inner) for name, inner in value.items()}
    return [_copied(inner) for inner in value] if type(value) is list else value
