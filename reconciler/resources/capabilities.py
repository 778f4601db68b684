"""What each kind of service takes beyond the source document.

This project's own service keeps to the source. A ZITADEL of today takes more: longer scripts, and
fields and values that are newer than the source. The rows of the fields say which, so that
manifests are judged by the service that they are for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from reconciler.kinds.fields import KINDS
from reconciler.resources.fields import Field, Spec, SpecValue
from reconciler.resources.nearest import one_of
from reconciler.resources.normal import wire_spelling
from reconciler.resources.ref import Kind

SOURCE = "source"
"""Name of the capabilities of this project's own service."""


class Extra(NamedTuple):
    """A field that the source does not have, or a value of one of its fields.

    Attributes:
        word: The value; empty for the field as a whole.
    """

    kind: Kind
    field: str
    word: str = ""


EXTRAS: tuple[Extra, ...] = tuple(
    Extra(kind, field.name, word)
    for kind, row in KINDS.items()
    for field in row.fields
    for word in (*field.newer, *([""] if field.since else []))
)
"""Every field and value beyond the source."""


class Capabilities(NamedTuple):
    """What one kind of service takes.

    Attributes:
        title: The service, for sentences.
        extras: The fields and values that it takes beyond the source.
        unit: In which it counts a text that it limits in another way than the source does:
            characters (code points), or bytes in UTF-8.
        refuses_empty: Whether it refuses texts that may be empty by the source.
    """

    name: str
    title: str
    extras: frozenset[Extra]
    unit: str = "characters"
    refuses_empty: bool = False

    def takes(self, use: Use) -> bool:
        """Return whether the service takes what a manifest uses."""
        if use.extra is not None:
            return use.extra in self.extras
        if not use.text:
            return not self.refuses_empty
        return self.size_of(use.text) <= self.most(use.field)

    def size_of(self, text: str) -> int:
        """Return the size of a long text as the service counts it."""
        return len(text) if self.unit == "characters" else len(text.encode())

    def most(self, field: Field) -> int:
        """Return the greatest size of a text that services limit in different ways."""
        return field.of_source if self.unit == "characters" else field.longest


class Use(NamedTuple):
    """A use in a manifest that not every service takes: a field, a value, a long or an empty text.

    Attributes:
        path: Where it stands in the manifest.
        extra: None for a text.
        text: The text; empty for one that is written empty, which the source allows.
    """

    path: tuple[str | int, ...]
    field: Field
    extra: Extra | None = None
    text: str = ""


# The releases 3 and 4 differ in how they behave (docs/zitadel.md), not in what they take.
_OF_ZITADEL = (frozenset(EXTRAS), "bytes", True)
CAPABILITIES: Mapping[str, Capabilities] = {
    each.name: each
    for each in (
        Capabilities(SOURCE, "this project's own service", frozenset()),
        Capabilities("zitadel-3", "ZITADEL 3", *_OF_ZITADEL),
        Capabilities("zitadel-4", "ZITADEL 4", *_OF_ZITADEL),
    )
}
"""The capabilities of each kind of service, by the name that a configuration gives them."""


def capabilities_of(generation: int | None, present: str) -> str:
    """Return the name of what a ZITADEL of a generation takes.

    ``present`` stays where the generation cannot be told, and for one too old for any extra.
    """
    name = f"zitadel-{generation}"
    return name if present != SOURCE and name in CAPABILITIES else present


_JUDGED: Mapping[Kind, tuple[Field, ...]] = {
    kind: tuple(
        each for each in row.fields if each.since or each.newer or each.of_source or each.for_empty
    )
    for kind, row in KINDS.items()
}


def uses(kind: Kind, spec: Spec) -> Iterator[Use]:
    """Yield what a spec uses and not every service takes, as it is written: words may be short."""
    for field in _JUDGED[kind]:
        if field.name in spec:
            yield from _uses(kind, field, spec[field.name])


def _uses(kind: Kind, field: Field, value: SpecValue) -> Iterator[Use]:
    path = ("spec", field.name)
    if field.since:
        yield Use(path, field, Extra(kind, field.name))
    elif field.newer:
        for position, word in enumerate(wire_spelling(kind, field.name, value)):
            if word in field.newer:
                yield Use((*path, position), field, Extra(kind, field.name, word))
    elif field.of_source:
        # A shorter one has fewer bytes than any service takes, too.
        if value and len(value) > field.of_source:
            yield Use(path, field, text=value)
    elif value == "":
        yield Use(path, field)


class Refusal(NamedTuple):
    """The code, summary and remedy of the finding that a service does not take something."""

    code: str
    summary: str
    remedy: str


def refusal(use: Use, service: Capabilities, *, is_chosen: bool) -> Refusal:
    """Return why a service does not take what a manifest uses, and which would.

    ``is_chosen`` says that the capabilities were chosen, and are not those of a service at hand.
    """
    name, most = use.field.name, service.most(use.field)
    if use.extra is None and not use.text:
        summary = f"{service.title} does not take an empty {name}"
        remedy = f"Write {use.field.for_empty}: empty means the same."
        return Refusal("CAPABILITY-VALUE", summary, remedy)
    if use.extra is None:
        code = "SCHEMA-TOO-LONG"
        summary = f"{name} is longer than {most} {service.unit}"
        instead = f"It has {service.size_of(use.text)}; shorten it to at most {most}."
    elif use.extra.word:
        code = "CAPABILITY-VALUE"
        summary = f"{service.title} does not take {use.extra.word}"
        instead = "Remove it."
    else:
        code = "CAPABILITY-FIELD"
        summary = f"{service.title} has no {name}"
        instead = "Remove it."
    return Refusal(code, summary, f"{instead}{_takers(use, is_chosen=is_chosen)}")


def _takers(use: Use, *, is_chosen: bool) -> str:
    names = [name for name, each in CAPABILITIES.items() if each.takes(use)]
    if not names:
        return ""
    how = ": choose them with --capabilities, or with `capabilities` of the environment"
    return f" A service with the capabilities {one_of(names)} takes it{how if is_chosen else ''}."


BEYOND: Mapping[Kind, frozenset[str]] = {
    kind: frozenset(each.field for each in EXTRAS if each.kind is kind and not each.word)
    for kind in KINDS
}
"""The names of the fields of each kind that the source does not have."""


def fields_taken(kind: Kind, service: Capabilities) -> tuple[Field, ...]:
    """Return the fields of a kind as a service takes them."""
    return tuple(
        _taken(kind, each, service)
        for each in KINDS[kind].fields
        if not each.since or Extra(kind, each.name) in service.extras
    )


def _taken(kind: Kind, field: Field, service: Capabilities) -> Field:
    if field.newer:
        missing = {
            each for each in field.newer if Extra(kind, field.name, each) not in service.extras
        }
        return field._replace(words=tuple(each for each in field.words if each not in missing))
    return field._replace(longest=service.most(field)) if field.of_source else field
