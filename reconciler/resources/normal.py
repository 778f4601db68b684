"""Normal forms: two specs are equal when they mean the same.

A normal form is a plain dictionary with every field of the kind, by its manifest name: defaults
filled in, words in their long spelling, durations in their shortest text, sets sorted. Lists of
texts keep their order, which can matter. This module is on the path of every unchanged manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.resources.duration import normal_duration
from reconciler.resources.fields import Form, Spec, SpecValue
from reconciler.resources.kinds import KINDS
from reconciler.resources.ref import Kind

TYPES: Mapping[Kind, Mapping[str, type]] = {
    kind: {field.name: field.python_type for field in row.fields} for kind, row in KINDS.items()
}
"""The fields of each kind in their order, with the type of a value read from YAML or JSON."""

DEFAULTS: Mapping[Kind, Spec] = {
    kind: {field.name: field.default for field in row.fields if field.default is not None}
    for kind, row in KINDS.items()
}
LATER: Mapping[Kind, Spec] = {
    kind: {field.name: field.default for field in row.fields if field.since}
    for kind, row in KINDS.items()
}
"""The defaults of those fields of each kind that objects of older versions lack."""

DURATIONS: Mapping[Kind, tuple[str, ...]] = {
    kind: tuple(field.name for field in row.fields if field.form is Form.DURATION)
    for kind, row in KINDS.items()
}
SHORT: Mapping[Kind, Mapping[str, Mapping[str, str]]] = {
    kind: {field.name: field.short for field in row.fields if field.words}
    for kind, row in KINDS.items()
}
"""The words of each field by their short spellings."""

_CHOICES: Mapping[Kind, Mapping[str, Mapping[str, str]]] = {
    kind: {field.name: field.short for field in row.fields if field.form is Form.CHOICE}
    for kind, row in KINDS.items()
}
SETS: Mapping[Kind, tuple[str, ...]] = {
    kind: tuple(field.name for field in row.fields if field.form is Form.SET)
    for kind, row in KINDS.items()
}


def normal_form(kind: Kind, fields: Spec) -> dict[str, SpecValue]:
    """Return the normal form of fields that are valid for their kind."""
    defaults = DEFAULTS[kind]
    normal = {**defaults, **fields}
    for name in DURATIONS[kind]:
        normal[name] = normal_duration(normal[name])
    choices = _CHOICES[kind]
    for name in fields:
        if name in choices and (value := fields[name]) in choices[name]:
            normal[name] = choices[name][value]
    for name in SETS[kind]:
        values = normal[name]
        if not SHORT[kind][name].keys().isdisjoint(values):
            values = wire_spelling(kind, name, values)
        normal[name] = sorted(set(values)) if len(values) > 1 else values or defaults[name]
    return normal


def wire_spelling(kind: Kind, field: str, words: Iterable[str]) -> list[str]:
    """Return words of a field, short or not, as JSON spells them."""
    short = SHORT[kind][field]
    return [short.get(word, word) for word in words]


def stored_form(kind: Kind, fields: Spec) -> dict[str, SpecValue]:
    """Return the normal form of fields, without later fields that are at their default.

    So an object that has no use for them is stored as older versions store it, and an update
    that leaves them at their default changes nothing.
    """
    normal, later = normal_form(kind, fields), LATER[kind]
    return {name: value for name, value in normal.items() if later.get(name) != value}
