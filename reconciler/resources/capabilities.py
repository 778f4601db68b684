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


class Capabilities(NamedTuple):
    """What one kind of service takes.

    Attributes:
        title: The service, for sentences.
        is_newer: Whether it takes the fields and values beyond the source, and limits long texts by
            bytes in UTF-8 and not by characters (code points).
        refuses_empty: Whether it refuses texts that may be empty by the source.
    """

    name: str
    title: str
    is_newer: bool = False
    refuses_empty: bool = False

    def takes(self, use: Use) -> bool:
        """Return whether the service takes what a manifest uses."""
        if use.text:
            return self.size_of(use.text) <= self.most(use.field)
        return not self.refuses_empty if use.is_empty else self.is_newer

    def size_of(self, text: str) -> int:
        """Return the size of a long text as the service counts it."""
        return len(text.encode()) if self.is_newer else len(text)

    def most(self, field: Field) -> int:
        """Return the greatest size of a text that services limit in different ways."""
        return field.longest if self.is_newer else field.of_source


class Use(NamedTuple):
    """A use in a manifest that not every service takes: a field, a value, a long or an empty text.

    Attributes:
        path: Where it stands in the manifest.
        word: The value.
        text: The long text.
        is_empty: Whether it is a text that is written empty, which the source allows.
    """

    path: tuple[str | int, ...]
    field: Field
    word: str = ""
    text: str = ""
    is_empty: bool = False


# The releases 3 and 4 differ in how they behave (docs/zitadel.md), not in what they take.
CAPABILITIES: Mapping[str, Capabilities] = {
    each.name: each
    for each in (
        Capabilities(SOURCE, "this project's own service"),
        Capabilities("zitadel-3", "ZITADEL 3", is_newer=True, refuses_empty=True),
        Capabilities("zitadel-4", "ZITADEL 4", is_newer=True, refuses_empty=True),
    )
}
"""The capabilities of each kind of service, by the name that a configuration gives them."""


def capabilities_of(generation: int | None, present: str) -> str:
    """Return the name of what a ZITADEL of a generation takes.

    ``present`` stays where the generation is unknown, and for one too old for anything newer.
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
        yield Use(path, field)
    elif field.newer:
        for position, word in enumerate(wire_spelling(kind, field.name, value)):
            if word in field.newer:
                yield Use((*path, position), field, word)
    elif field.of_source:
        # A shorter one has fewer bytes than any service takes, too.
        if value and len(value) > field.of_source:
            yield Use(path, field, text=value)
    elif value == "":
        yield Use(path, field, is_empty=True)


def refusal(use: Use, service: Capabilities, *, is_chosen: bool) -> tuple[str, str, str]:
    """Return code, summary and remedy of the finding that a service does not take something.

    ``is_chosen`` says that the capabilities were chosen, and are not those of a service at hand.
    """
    name, most = use.field.name, service.most(use.field)
    if use.is_empty:
        summary = f"{service.title} does not take an empty {name}"
        remedy = f"Write {use.field.for_empty}: empty means the same."
        return "CAPABILITY-VALUE", summary, remedy
    code, summary, instead = "CAPABILITY-FIELD", f"{service.title} has no {name}", "Remove it."
    if use.text:
        code = "SCHEMA-TOO-LONG"
        unit = "bytes" if service.is_newer else "characters"
        summary = f"{name} is longer than {most} {unit}"
        instead = f"It has {service.size_of(use.text)}; shorten it to at most {most}."
    elif use.word:
        code, summary = "CAPABILITY-VALUE", f"{service.title} does not take {use.word}"
    return code, summary, f"{instead}{_takers(use, is_chosen=is_chosen)}"


def _takers(use: Use, *, is_chosen: bool) -> str:
    names = [name for name, each in CAPABILITIES.items() if each.takes(use)]
    if not names:
        return ""
    how = ": choose them with --capabilities, or with `capabilities` of the environment"
    return f" A service with the capabilities {one_of(names)} takes it{how if is_chosen else ''}."


BEYOND: Mapping[Kind, frozenset[str]] = {
    kind: frozenset(field.name for field in row.fields if field.since)
    for kind, row in KINDS.items()
}
"""The names of the fields of each kind that the source does not have."""


def fields_of_source(kind: Kind) -> tuple[Field, ...]:
    """Return the fields of a kind as this project's own service takes them."""
    return tuple(
        each._replace(
            words=tuple(word for word in each.words if word not in each.newer),
            longest=each.of_source or each.longest,
        )
        for each in KINDS[kind].fields
        if not each.since
    )
