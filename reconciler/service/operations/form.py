"""The form of a request: its fields, of which ``models`` makes a model when one is first checked.

Models take long to load. A form does not, so that the table of operations can be read without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from reconciler.resources.capabilities import fields_of_source
from reconciler.resources.fields import Field, Spec, text
from reconciler.resources.kinds import MAX_NAME
from reconciler.resources.ref import Kind


class Fixed(NamedTuple):
    """A field of ZITADEL's that this service does not offer: it takes what changes nothing.

    Attributes:
        value: The only value: a word, a flag, None, or the values of a part by their names.
        about: Meaning of a part.
    """

    name: str
    value: Any
    about: str = ""


FormField: TypeAlias = Field | Fixed


def name_field(name: str) -> Field:
    """Return a text that is a name or an id."""
    return text(name, "", shortest=1, longest=MAX_NAME)


NAME = name_field("name")


@dataclass(frozen=True, eq=False)
class Form:
    """The fields of a request.

    Attributes:
        kind: The kind whose fields it has before the others, or None.
        others: Its fields beside them.
        but_for: Name of a field of the kind that the call does not know.
    """

    kind: Kind | None
    others: tuple[FormField, ...]
    but_for: str = ""

    @cached_property
    def of_kind(self) -> tuple[Field, ...]:
        """Return the fields of the kind as this project's service takes them."""
        known = fields_of_source(self.kind) if self.kind else ()
        return tuple(field for field in known if field.name != self.but_for)

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the names of all fields."""
        return frozenset(field.name for field in (*self.of_kind, *self.others))


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was checked.

    Attributes:
        fields: By their names, but for those of the spec and those with one value only.
        spec: In normal form; empty where the request has none.
    """

    fields: Mapping[str, Any]
    spec: Spec

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]

    def meaning(self) -> Mapping[str, Any]:
        """Return all fields: equal for requests that mean the same."""
        return {**self.fields, **self.spec}
