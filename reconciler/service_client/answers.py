"""Answers of a service, read strictly: ids, texts, sequences, lists and specs.

What cannot be understood is a ``ServiceError``. In a spec, unknown fields are carried, so that an
update sends them back as they are, and values that no manifest can say are named, so that nothing
of either is overwritten unseen. No models here: every object of a listing comes by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from reconciler.errors import ServiceError
from reconciler.kinds.calls import CALLS
from reconciler.kinds.fields import KINDS
from reconciler.resources.call import Call, JsonObject, is_id
from reconciler.resources.capabilities import BEYOND
from reconciler.resources.fields import Field, Form, Spec, normal_duration
from reconciler.resources.normal import DURATIONS, TYPES
from reconciler.resources.ref import Kind
from reconciler.resources.strict_json import MAX_SEQUENCE
from reconciler.service_client.wire import Wire, answers_in
from reconciler.state import Event

E = TypeVar("E", bound=Event)
PAGE = 1000  # objects
MOST_PAGES = 1000  # of one listing; a service that never ends is left


def cursor_pages(
    wire: Wire, calls: Mapping[str, Call], cursor: str
) -> Iterator[tuple[str, JsonObject]]:
    """Yield every page of some lists, each with its name; a page of each list at a time.

    ``calls`` ask for the first pages, by the names of the lists; ``cursor`` is the field that asks
    for another one.

    Raises:
        ServiceError: a list does not end, or a page is refused. Those before it were yielded.
    """
    seen = {name: {""} for name in calls}
    for _ in range(MOST_PAGES):
        if not calls:
            return
        following: dict[str, Call] = {}
        pages = answers_in(wire.send([*calls.values()]))
        for (name, call), page in zip(calls.items(), pages, strict=True):
            yield name, page
            # The last page has no cursor, which counts as seen. One that comes again would repeat
            # what was read.
            if (here := text_of(page, "next")) not in seen[name]:
                seen[name].add(here)
                following[name] = replace(call, fields={**call.fields, cursor: here})
        calls = following
    if calls:
        raise unsound("?", "its pages do not end")


def objects_of(page: JsonObject, name: str) -> Sequence[JsonObject]:
    """Return a list of objects in an answer."""
    value = page.get(name)
    if not isinstance(value, list) or not all(type(each) is dict for each in value):
        raise unsound("?", f"{name} is not a list of objects")
    return value


def id_of(fields: JsonObject) -> str:
    """Return the id of an answered object."""
    value = fields.get("id")
    if not is_id(value):
        raise unsound("?", "its id is missing or has odd characters")
    return str(value)


def text_of(fields: JsonObject, name: str) -> str:
    """Return a text of an answered object."""
    value = fields.get(name)
    if not isinstance(value, str):
        raise unsound(str(fields.get("id", "?")), f"its {name} is missing or not a text")
    return value


def sequence_of(details: JsonObject, name: str = "sequence") -> int:
    """Return the sequence in an object's details: a number that JSON carries as text."""
    value = details.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 20:
        number = int(value)
        if number <= MAX_SEQUENCE:
            return number
    raise unsound("?", f"its {name} is missing or not a number")


def event_of(form: Callable[..., E], fields: JsonObject, /, **others: object) -> E:
    """Return an event of a form; ``others`` are the fields that not every event has."""
    context, verified = fields.get("context"), fields.get("verified")
    if not (isinstance(context, dict) and isinstance(verified, dict)):
        raise unsound(str(fields.get("id", "?")), "the context of an event is not an object")
    return form(
        type=text_of(fields, "type"),
        sequence=sequence_of(fields),
        at=text_of(fields, "recordedAt"),
        writer=text_of(fields, "writer"),
        context=context,
        verified=verified,
        **others,
    )


def unsound(object_id: str, why: str) -> ServiceError:
    """Return the error that an answered object is not as the interface has it."""
    return ServiceError(
        f"the service's answer cannot be used: object {object_id[:200]}: {why}",
        remedy="Nothing was written. Check that the address is that of the service itself, and "
        "that this version of the reconciler knows the service's interface.",
    )


_WORDS: Mapping[Kind, Mapping[str, frozenset[str]]] = {
    kind: {field.name: frozenset(field.words) for field in row.fields if field.words}
    for kind, row in KINDS.items()
}
# The fields that every service answers; others have more, with a default.
_REQUIRED = {
    kind: {name: type_ for name, type_ in fields.items() if name not in BEYOND[kind]}
    for kind, fields in TYPES.items()
}
_VARIANTS: Mapping[Kind, Mapping[str, Field]] = {
    kind: {field.name: field for field in row.fields if field.form is Form.VARIANT}
    for kind, row in KINDS.items()
}
_LISTS = {
    kind: [name for name, type_ in fields.items() if type_ is list]
    for kind, fields in TYPES.items()
}
# Kinds whose updates send no fields but those that are known.
_CARRY_NOTHING = frozenset(kind for kind, calls in CALLS.items() if not calls.carries)


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
    beyond = {name: fields[name] for name in BEYOND[kind] & answered.keys()}
    check_types(required, answered)
    check_types(beyond, answered)
    for name in _LISTS[kind]:
        for item in answered[name]:
            if type(item) is not str:
                raise ValueError(f"its {name} holds something other than texts")
    for name in DURATIONS[kind]:
        # It raises for a text that is no duration; its result is not needed.
        normal_duration(answered[name])
    strange = (
        *_strange_words(_WORDS[kind], answered),
        *_strange_variants(_VARIANTS[kind], answered),
    )
    if len(answered) == len(required) + len(beyond):  # as every object of our service: no copy
        return ReadSpec(answered, {}, strange)
    unknown = {name: value for name, value in answered.items() if name not in fields}
    spec = {name: answered[name] for name in fields if name in answered}
    if kind in _CARRY_NOTHING:
        return ReadSpec(spec, {}, (*strange, *unknown))
    return ReadSpec(spec, unknown, strange)


def check_types(types: Mapping[str, type], answered: JsonObject) -> None:
    """Check that an answer has some fields, each of its type.

    Raises:
        ValueError: a field is missing or of another type.
    """
    for name, wanted in types.items():
        if type(answered.get(name)) is not wanted:
            raise ValueError(f"its {name} is missing or of a wrong type")


def _strange_variants(known: Mapping[str, Field], answered: Spec) -> Iterator[str]:
    """Yield the variants and the texts in them that no manifest can say."""
    for name, field in known.items():
        for each, value in answered.get(name, {}).items():
            texts = {text.name for text in field.variants.get(each, ())}
            if each not in field.variants or type(value) is not dict or value.keys() - texts:
                yield f"{name} {each}"


def _strange_words(known: Mapping[str, frozenset[str]], answered: Spec) -> Iterator[str]:
    """Yield the values that no manifest can say."""
    for name, words in known.items():
        value = answered[name]
        values = [value] if type(value) is str else value
        if not words.issuperset(values):
            yield f"{name} {', '.join(values)}"
