"""Record of a second, slower pass over a file: findings, and the place of every value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.diagnostics import Diagnostic, SourceLocation, error
from reconciler.manifests.scalars import YamlValue


class Mark(NamedTuple):
    """Line and column, from 1, and the style in which the scalar there is written."""

    line: int
    column: int
    style: str = ""


NOWHERE = Mark(0, 0)


@dataclass(slots=True)
class Trace:
    """Findings and places of one file.

    Attributes:
        file: Name of the file as it is shown.
        lines_before: Number of lines of the file before what was read.
        documents: The documents of the file, in order; None where there is nothing to judge.
        keys: Places of keys, by the identity of their mapping (kept alive by ``documents``).
        values: Places of values, by the identity of their mapping or list.
    """

    file: str
    lines_before: int = 0
    findings: list[Diagnostic] = field(default_factory=list)
    documents: list[YamlValue] = field(default_factory=list)
    keys: dict[tuple[int, str | int], Mark] = field(default_factory=dict)
    values: dict[tuple[int, str | int], Mark] = field(default_factory=dict)

    def refuse(self, code: str, summary: str, remedy: str, mark: Mark = NOWHERE) -> None:
        """Note a finding that stops the run."""
        place = SourceLocation(self.file, mark.line, mark.column)
        self.findings.append(error(code, summary, remedy, place))

    def value_mark(self, document: int, path: Sequence[str | int]) -> Mark:
        """Return the place of a value, or of the nearest one above it."""
        container, key = self._nearest(document, path)
        return self.values.get((id(container), key), NOWHERE)

    def written(self, document: int, path: Sequence[str | int]) -> YamlValue:
        """Return the value under a path as it is written, or the nearest one above it."""
        container, key = self._nearest(document, path)
        return container[key]

    def key_mark(self, document: int, path: Sequence[str | int]) -> Mark:
        """Return the place of the key of a value, or of the value itself if it has no key."""
        container, key = self._nearest(document, path)
        place = (id(container), key)
        return self.keys.get(place) or self.values.get(place, NOWHERE)

    def _nearest(self, document: int, path: Sequence[str | int]) -> tuple[YamlValue, str | int]:
        container: YamlValue = self.documents
        key: str | int = document
        for step in path:
            inner = container[key]
            if not _has(inner, step):
                break
            container, key = inner, step
        return container, key


def _has(container: YamlValue, step: str | int) -> bool:
    if isinstance(container, dict):
        return step in container
    return isinstance(container, list) and isinstance(step, int) and 0 <= step < len(container)
