"""Specs as a service answers them, held against what this version knows of each kind.

What it does not know is told apart from what it does: fields that an update sends back as they
are, and values that nobody here can say, so that nothing of either is overwritten unseen. No
models here: every object of a listing comes by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from reconciler.resources.capabilities import BEYOND
from reconciler.resources.duration import normal_duration
from reconciler.resources.fields import Field, Form, Spec
from reconciler.resources.kinds import KINDS
from reconciler.resources.normal import DURATIONS, TYPES
from reconciler.resources.ref import Kind

_WORDS: Mapping[Kind, Mapping[str, frozenset[str]]] = {
    kind: {field.name: frozenset(field.words) for field in row.fields if field.words}
    for kind, row in KINDS.items()
}
# The fields that every service answers; others have more, with a default.
_REQUIRED = {
    kind: {name: type_ for name, type_ in fields.items() if name not in BEYOND[kind]}
    for kind, fields in TYPES.items()
}
# A usual answer is compared at once: our service sends the fields in the order of the alphabet.
_NAMES = {kind: sorted(fields) for kind, fields in _REQUIRED.items()}
# Types in the order of the names, which is the order in which the service writes a spec.
_VALUE_TYPES = {kind: [types[name] for name in _NAMES[kind]] for kind, types in _REQUIRED.items()}
_VARIANTS: Mapping[Kind, Mapping[str, Field]] = {
    kind: {field.name: field for field in row.fields if field.form is Form.VARIANT}
    for kind, row in KINDS.items()
}
_LISTS = {
    kind: [name for name, type_ in fields.items() if type_ is list]
    for kind, fields in TYPES.items()
}
# Kinds whose updates send no fields but those that are known.
_CARRY_NOTHING = frozenset({Kind.ORGANIZATION, Kind.ACTION_FLOW})


class ReadSpec(NamedTuple):
    """A spec in what is known of it and what is not.

    Attributes:
        carried: Unknown fields that an update sends back.
        uncarried: What an update would erase, in words: unknown fields that nothing sends back,
            and values that no manifest can say.
    """

    spec: Spec
    carried: Spec
    uncarried: tuple[str, ...]


def read_spec(kind: Kind, answered: Spec) -> ReadSpec:
    """Return what a spec says.

    Raises:
        ValueError: a known field is missing or of a wrong type.
    """
    fields, required = TYPES[kind], _REQUIRED[kind]
    # Two comparisons of lists for a spec that is as expected, as nearly all are. The loop below
    # only tells what is wrong with another one.
    if [*map(type, answered.values())] != _VALUE_TYPES[kind] or [*answered] != _NAMES[kind]:
        answered = with_later_fields(KINDS[kind].fields, answered)
        _check_types(required, answered)
        _check_types({name: fields[name] for name in BEYOND[kind] & answered.keys()}, answered)
    for name in _LISTS[kind]:
        for item in answered[name]:
            if type(item) is not str:
                raise ValueError(f"its {name} holds something other than texts")
    for name in DURATIONS[kind]:
        # It raises for a text that is no duration; its result is not needed.
        normal_duration(answered[name])
    strange = _strange_words(_WORDS[kind], answered)
    if len(answered) == len(required):
        return ReadSpec(answered, {}, strange)
    unknown = {name: value for name, value in answered.items() if name not in fields}
    spec = {name: answered[name] for name in fields if name in answered}
    strange = (*strange, *_strange_variants(_VARIANTS[kind], answered))
    if kind in _CARRY_NOTHING:
        return ReadSpec(spec, {}, (*strange, *unknown))
    return ReadSpec(spec, unknown, strange)


def with_later_fields(fields: Iterable[Field], answered: Spec) -> Spec:
    """Return an answer with the defaults of those later fields that an older service lacks."""
    return {**{field.name: field.default for field in fields if field.since}, **answered}


def _check_types(fields: Mapping[str, type], answered: Spec) -> None:
    for name, wanted in fields.items():
        if type(answered.get(name)) is not wanted:
            raise ValueError(f"its {name} is missing or of a wrong type")


def _strange_variants(known: Mapping[str, Field], answered: Spec) -> Iterator[str]:
    """Yield the variants and the texts in them that no manifest can say."""
    for name, field in known.items():
        for each, value in answered.get(name, {}).items():
            texts = {text.name for text in field.variants.get(each, ())}
            if each not in field.variants or type(value) is not dict or value.keys() - texts:
                yield f"{name} {each}"


def _strange_words(known: Mapping[str, frozenset[str]], answered: Spec) -> tuple[str, ...]:
    """Return the values that no manifest can say."""
    strange: tuple[str, ...] = ()
    for name, words in known.items():
        value = answered[name]
        if type(value) is str:
            if value not in words:
                strange = (*strange, f"{name} {value}")
        elif not words.issuperset(value):
            strange = (*strange, f"{name} {', '.join(value)}")
    return strange
