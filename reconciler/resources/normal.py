"""Normal forms: two specs are equal when they mean the same.

A normal form is a plain dictionary with every field of the kind, by its manifest name: defaults
filled in, words in their long spelling, durations in their shortest text, sets sorted. Lists of
texts keep their order, which can matter. A field that is left as it is held (``left_as_held``)
stays out if the manifest leaves it out. This module is on the path of every unchanged manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from reconciler.kinds.fields import KINDS
from reconciler.resources.fields import Form, Spec, SpecValue, normal_duration
from reconciler.resources.ref import Kind

TYPES: Mapping[Kind, Mapping[str, type]] = {
    kind: {field.name: field.python_type for field in row.fields} for kind, row in KINDS.items()
}
"""The fields of each kind in their order, with the type of a value read from YAML or JSON."""

DEFAULTS: Mapping[Kind, Spec] = {
    kind: {field.name: field.default for field in row.fields if field.default is not None}
    for kind, row in KINDS.items()
}
LEFT_AS_HELD: Mapping[Kind, Spec] = {
    kind: {field.name: field.default for field in row.fields if field.left_as_held}
    for kind, row in KINDS.items()
}
"""The fields of each kind that a manifest can leave as they are held, with their defaults."""

LIMITS = {field.limits for row in KINDS.values() for field in row.fields if field.limits}
"""The ranges of durations."""

DURATIONS: Mapping[Kind, tuple[str, ...]] = {
    kind: tuple(field.name for field in row.fields if field.form is Form.DURATION)
    for kind, row in KINDS.items()
}
SHORT: Mapping[Kind, Mapping[str, Mapping[str, str]]] = {
    kind: {field.name: field.short for field in row.fields if field.words}
    for kind, row in KINDS.items()
}
"""The words of each field by their short spellings."""


class _Rules(NamedTuple):
    """The rules of one kind, in one table: to hash a kind costs as much as to apply a rule.

    Attributes:
        defaults: Values of fields that are left out, but for ``LEFT_AS_HELD``.
        durations: Names of the fields that hold a duration.
        choices: Fields that hold a word, each with its long spellings by the short ones.
        sets: The same for fields that hold a set of words.
        variants: Names of the fields that hold a variant.
    """

    defaults: Spec
    durations: Sequence[str]
    choices: Sequence[tuple[str, Mapping[str, str]]]
    sets: Sequence[tuple[str, Mapping[str, str]]]
    variants: Sequence[str]


def _rules(kind: Kind) -> _Rules:
    words = [field for field in KINDS[kind].fields if field.words]
    choices = [(field.name, field.short) for field in words if field.form is Form.CHOICE]
    sets = [(field.name, field.short) for field in words if field.form is Form.SET]
    filled = {
        name: value for name, value in DEFAULTS[kind].items() if name not in LEFT_AS_HELD[kind]
    }
    variants = [field.name for field in KINDS[kind].fields if field.form is Form.VARIANT]
    return _Rules(filled, DURATIONS[kind], choices, sets, variants)


_RULES: Mapping[Kind, _Rules] = {kind: _rules(kind) for kind in KINDS}


def normal_form(kind: Kind, fields: Spec) -> dict[str, SpecValue]:
    """Return the normal form of fields that are valid for their kind."""
    defaults, durations, choices, sets, variants = _RULES[kind]
    normal = {**defaults, **fields}
    for name in durations:
        normal[name] = normal_duration(normal[name])
    for name, short in choices:
        if (word := normal.get(name, "")) in short:
            normal[name] = short[word]
    for name, short in sets:
        normal[name] = _normal_set(normal[name], short) or defaults[name]
    for name in variants:
        if name in normal:
            normal[name] = _normal_variant(normal[name])
    return normal


def _normal_set(words: list[str], short: Mapping[str, str]) -> list[str]:
    if len(words) > 1:
        return sorted(set(map(short.get, words, words)))
    return [short[words[0]]] if words and words[0] in short else words


def _normal_variant(value: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return the variant without its empty texts, which mean the same as none."""
    return {
        name: {each: text for each, text in texts.items() if text} for name, texts in value.items()
    }


def wire_spelling(kind: Kind, field: str, words: Iterable[str]) -> list[str]:
    """Return words of a field, short or not, as JSON spells them."""
    short = SHORT[kind][field]
    return [short.get(word, word) for word in words]


def without_idle(kind: Kind, fields: Spec) -> Spec:
    """Return fields without those of ``LEFT_AS_HELD`` that are at their default.

    On a new object they have the same effect as fields that are left out, so digests are the same.
    """
    idle = LEFT_AS_HELD[kind]
    if not idle:
        return fields
    return {n: value for n, value in fields.items() if n not in idle or idle[n] != value}
