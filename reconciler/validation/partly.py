"""Findings about a manifest that does not fit its schema, as far as its wrong values allow.

Right values take the place of wrong and missing ones, several in turn. What is found with each of
them does not depend on them; what is found with some of them only is left for when the values are
right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice, product
from math import prod
from typing import Any, NamedTuple

from reconciler.diagnostics import Diagnostic
from reconciler.manifests.manifest import Manifest, Path
from reconciler.manifests.text import YamlMapping
from reconciler.resources.fields import NO_NUL
from reconciler.resources.nearest import nearest
from reconciler.resources.ref import Kind
from reconciler.resources.schemas import Schema, spellings
from reconciler.validation.schema import (
    MAX_FAULTS,
    SchemaFault,
    accepts,
    schema_of,
)

MOST = 12
"""Ways to put right values in that are tried."""

_ABSENT: Any = object()
_TEXTS = ("https://one.example.com/callback", "com.example.two:/callback", "authorization")
_SECTIONS = ("metadata", "spec")


class Partly(NamedTuple):
    """A manifest with right values in place of wrong ones.

    Attributes:
        filled: The manifest with each of the values in turn; none where it cannot be put right.
        wrong: The paths of the values.
    """

    filled: Sequence[Manifest]
    wrong: frozenset[Path]

    @property
    def is_named(self) -> bool:
        """Return whether it says which object it is about."""
        return not any(path[0] == "metadata" for path in self.wrong)

    def is_wrong(self, path: Path) -> bool:
        """Return whether a value is a wrong one, or in one."""
        return any(path[: len(wrong)] == wrong for wrong in self.wrong)

    def findings(self, judge: Callable[[Manifest], Sequence[Diagnostic]]) -> list[Diagnostic]:
        """Return what ``judge`` finds whatever the values are, but for what it finds at them."""
        if not self.filled:
            return []
        # Without their refs, which a value can be part of.
        first, *others = ([replace(each, ref=None) for each in judge(one)] for one in self.filled)
        right = self.filled[0]
        # The place of a missing value is that of others.
        there = [path for path in self.wrong if right.place(*path) != right.place(*path[:-1])]
        places = {right.place(*path)[:3] for path in there}
        return [
            each
            for each in first
            if all(each in other for other in others)
            and not (each.location and each.location[:3] in places)
        ]


def partly_right(kind: Kind, manifest: Manifest, found: Sequence[SchemaFault]) -> Partly:
    """Return a manifest of a kind with its wrong values put right in several ways."""
    schema = schema_of(kind)
    every = (path for fault in found for path in _paths(schema, fault))
    paths = dict.fromkeys(islice(every, MAX_FAULTS + 1))
    if len(paths) > MAX_FAULTS:
        return Partly((), frozenset(paths))  # there is enough to correct first
    wrong = [path for path in paths if len(path) < 3 or path[:2] not in paths]
    choices = [_values(schema, path) for path in wrong]
    if prod(map(len, choices)) <= MOST:
        ways = list(product(*choices))
    else:
        longest = min(max(map(len, choices)), MOST)
        ways = list(islice(zip(*map(cycle, choices), strict=True), longest))
    filled = [
        manifest.changed(_with_values(manifest.document, zip(wrong, way, strict=True)), {})
        for way in ways
    ]
    is_right = all(accepts(kind, each.document) for each in filled)
    return Partly(filled if is_right else (), frozenset(wrong))


def _paths(schema: Schema, fault: SchemaFault) -> Iterator[Path]:
    """Yield the paths of what a fault is about: sections, fields, and items of lists."""
    for path in _written_paths(schema, fault):
        if len(path) == 1 and path[0] in _SECTIONS:
            yield path
            required = schema["properties"][path[0]].get("required", ())
            yield from ((*path, name) for name in required)
        else:
            is_item = len(path) > 2 and isinstance(path[2], int)
            yield path[: 3 if is_item else 2]


def _written_paths(schema: Schema, fault: SchemaFault) -> Iterator[Path]:
    names = fault.names
    if not names:
        yield fault.path
    for name in names:
        yield (*fault.path, name)
        if fault.keyword == "additionalProperties":
            yield from _meant(schema, fault, name)


def _meant(schema: Schema, fault: SchemaFault, name: str) -> Iterator[Path]:
    """Yield the fields that an unknown one may be meant for: their values are not known then."""
    others = (each for each in fault.schema["properties"] if each not in fault.value)
    meant = nearest(name, others)
    if meant is not None and fault.path:
        yield (*fault.path, meant)
    for part in _SECTIONS:
        if name in schema["properties"][part]["properties"]:
            yield (part, name)


def _values(schema: Schema, path: Path) -> Sequence[Any]:
    """Return right values of a field or an item; ``_ABSENT`` where it can be left out."""
    if len(path) == 1:
        known = schema["properties"].get(path[0], {})
        return [{}] if path[0] in _SECTIONS else [known.get("const", _ABSENT)]
    section = schema["properties"][path[0]]
    field = section["properties"].get(path[1])
    if field is None:
        return [_ABSENT]
    if len(path) > 2:
        return _of_type(field["items"])
    is_required = path[1] in section.get("required", ())
    return [*([] if is_required else [_ABSENT]), *_of_type(field)] or [_ABSENT]


def _of_type(field: Schema) -> Sequence[Any]:
    if "enum" in field:
        return [*spellings(field["enum"]).values()] or field["enum"]
    if field["type"] == "boolean":
        return [False, True]
    if field["type"] == "array":
        return [[value] for value in _of_type(field["items"])]
    if field["type"] != "string":
        return []
    return _TEXTS if field.get("pattern", NO_NUL) == NO_NUL else field.get("examples", [])


def _with_values(document: YamlMapping, values: Iterator[tuple[Path, Any]]) -> YamlMapping:
    """Return a document with values put in, the shorter paths first."""
    filled = dict(document)
    for name in _SECTIONS:
        if isinstance(filled.get(name), dict):
            filled[name] = dict(filled[name])
    for path, value in sorted(values, key=lambda each: len(each[0])):
        outer: Any = filled
        if len(path) > 1:
            filled.setdefault(str(path[0]), {})
        for step in path[:-1]:
            if isinstance(outer[step], list):
                outer[step] = [*outer[step]]
            outer = outer[step]
        if value is not _ABSENT:
            outer[path[-1]] = dict(value) if isinstance(value, Mapping) else value
        else:
            outer.pop(path[-1], None)
    return filled
