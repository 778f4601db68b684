"""The form in which a kind declares its fields, a row for each; and the form of durations.

JSON schemas, models, defaults, normal forms, the order of differences, the reading of answers and
the tables of the documentation are made from these rows. The module is on the path of every
unchanged manifest, so it imports no model library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from reconciler.resources.ref import Kind

SpecValue: TypeAlias = Any
"""A text, a flag or a list of texts, as the form of the field says."""

Spec: TypeAlias = Mapping[str, SpecValue]
"""Values of the fields of one kind, by the names that manifests and every wire give them."""

# No store may hold NUL (PostgreSQL refuses it in text), so no string may contain it.
NO_NUL = r"^[^\u0000]*$"


class Form(Enum):
    """Forms of a value, which decide when two values mean the same."""

    TEXT = auto()
    TEXTS = auto()  # a list whose order matters
    FLAG = auto()
    CHOICE = auto()  # one of the field's words
    SET = auto()  # some of the field's words; an empty list means the default
    DURATION = auto()  # compared by value
    VARIANT = auto()  # a mapping with one of the field's variants, which holds texts of its own


class Field(NamedTuple):
    """One field of a manifest. The functions below make the fields of each form.

    Attributes:
        name: In manifests, in stored objects and in JSON on every wire.
        about: Meaning, for editors, ``explain`` and the description of the API.
        default: Value of a field that is left out; None for a field that must be written.
        shortest: Least number of code points of a text.
        longest: Greatest number of code points of a text; 0 for any number.
        most: Greatest number of texts in a list; 0 for any number.
        pattern: Regular expression that a text must match.
        words: Values that a choice or a set may hold.
        limits: Range of a duration; ``pattern`` is that of the range.
        examples: Values that editors and ``explain`` offer.
        left_as_held: A manifest without the field leaves what the service holds, for another tool
            may have set it. Then ``default`` is the value of a new object. Only texts, flags,
            choices and variants are left so.
        variants: By the name of each variant, its texts, none of which must be written.
        refers: Of a list of names, the kind of the resources that they name, which are of the same
            organization.
        since: Of a field that the source document does not have, when ZITADEL took it in; every
            release from 3.0 has it.
        newer: The same for words, by the word.
        of_source: Characters (code points) that the source allows a text where a ZITADEL allows
            ``longest`` bytes; 0 for as many.
        for_empty: What means the same as the empty text, where the source allows that and a ZITADEL
            does not.
    """

    name: str
    form: Form
    about: str
    default: str | bool | list[str] | dict[str, Any] | None = None
    shortest: int = 0
    longest: int = 0
    most: int = 0
    pattern: str = NO_NUL
    words: tuple[str, ...] = ()
    limits: DurationRange | None = None
    examples: tuple[str | list[str] | dict[str, Any], ...] = ()
    left_as_held: bool = False
    variants: Mapping[str, tuple[Field, ...]] = MappingProxyType({})
    refers: Kind | None = None
    since: str = ""
    newer: Mapping[str, str] = MappingProxyType({})
    of_source: int = 0
    for_empty: str = ""

    @property
    def python_type(self) -> type:
        """Return the type that a value has once it is read from YAML or JSON."""
        return _PYTHON_TYPES.get(self.form, str)

    @property
    def beginning(self) -> str:
        """Return the parts that all words begin with, such as ``OIDC_APP_TYPE_``.

        It is empty where there is only one word.
        """
        if len(self.words) < 2:
            return ""
        parts = zip(*(word.split("_") for word in self.words), strict=False)
        shared = takewhile(lambda part: len(set(part)) == 1, parts)
        return "".join(f"{part[0]}_" for part in shared)

    @property
    def short(self) -> Mapping[str, str]:
        """Return the words by their short spellings, which leave out their common beginning.

        Only manifests have them.
        """
        length = len(self.beginning)
        return {word[length:]: word for word in self.words} if length else {}


_PYTHON_TYPES: Mapping[Form, type] = {
    Form.TEXTS: list,
    Form.SET: list,
    Form.FLAG: bool,
    Form.VARIANT: dict,
}


def text(name: str, about: str, *examples: str, shortest: int = 0, longest: int) -> Field:
    """Return a text that must be written; lengths are code points."""
    return Field(name, Form.TEXT, about, shortest=shortest, longest=longest, examples=examples)


def texts(name: str, about: str, *example: str) -> Field:
    """Return a list of texts in an order that matters; it is empty by default."""
    return Field(name, Form.TEXTS, about, [], examples=([*example],))


def flag(name: str, about: str) -> Field:
    """Return true or false; false by default."""
    return Field(name, Form.FLAG, about, default=False)


def choice(name: str, about: str, *words: str) -> Field:
    """Return one of some words; the first is the default."""
    return Field(name, Form.CHOICE, about, words[0], words=words)


def some_of(name: str, about: str, *words: str) -> Field:
    """Return a set of some words; the first alone is the default, and what an empty set means."""
    return Field(name, Form.SET, about, [words[0]], words=words)


def variant(name: str, about: str, *examples: dict[str, Any], **texts: tuple[Field, ...]) -> Field:
    """Return a mapping with one of some variants, by their names; a new object has none."""
    return Field(
        name,
        Form.VARIANT,
        about,
        {},
        examples=examples,
        left_as_held=True,
        variants=MappingProxyType(texts),
    )


def duration(name: str, about: str, *examples: str, default: str, limits: DurationRange) -> Field:
    """Return a duration within a range; ``default`` is its shortest text."""
    return Field(
        name,
        Form.DURATION,
        about,
        default,
        pattern=limits.pattern,
        limits=limits,
        examples=examples,
    )


# Durations are decimal seconds with ``s``, the JSON form of protobuf durations. Every wire and
# every manifest goes through this one parser. It is stricter than the parsers of the protobuf
# runtimes, which disagree about signs, bare points and a tenth decimal (wire facts 2.9).
NANOSECONDS = 1_000_000_000


class DurationRange(NamedTuple):
    """Durations from 0 to a limit.

    Attributes:
        longest: The limit, in nanoseconds.
        pattern: The same range for a schema; a test holds it to ``parse_duration``.
    """

    longest: int
    pattern: str


_WRITTEN = re.compile(r"(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,9}))?s", re.ASCII)


def parse_duration(text: str) -> int:
    """Return the nanoseconds in a text such as ``5s`` or ``1.5s``.

    Raises:
        ValueError: the text is not a duration in this form.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError("write decimal seconds followed by s, such as 5s or 1.5s")
    seconds, decimals = found.groups()
    return int(seconds) * NANOSECONDS + int((decimals or "").ljust(9, "0"))


def format_duration(nanoseconds: int) -> str:
    """Return the shortest text for a duration, so that equal durations are equal texts."""
    seconds, rest = divmod(nanoseconds, NANOSECONDS)
    decimals = f"{rest:09d}".rstrip("0")
    return f"{seconds}.{decimals}s" if decimals else f"{seconds}s"


@lru_cache(maxsize=256)  # a tree has few different durations
def normal_duration(text: str) -> str:
    """Return the shortest text for a duration already known to be valid."""
    return format_duration(parse_duration(text))
