"""The base of every resource spec: frozen, closed, camelCase outside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind

# No store may hold NUL (PostgreSQL refuses it in text), so no string may contain it.
NO_NUL = r"^[^\u0000]*$"
Text = Annotated[str, Field(pattern=NO_NUL)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]


class Spec(BaseModel):
    """The declared fields of one resource.

    Unknown fields are refused: a misspelt field that is ignored looks, to its author, like a
    change that was applied. Types are strict for the same reason: ``devMode: "yes"`` is a
    mistake, not true.
    """

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
    )
    kind: ClassVar[Kind]

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> Self:
        """Build a spec from JSON-shaped fields, by JSON's typing rules.

        Strict mode in Python would refuse a list for a tuple, and a list is all that JSON has.

        Raises:
            pydantic.ValidationError: a field is missing, unknown, or of a wrong type or value.
        """
        return cls.model_validate_json(json.dumps(fields))

    def normal(self) -> dict[str, Any]:
        """Return the normal form: plain, complete, equal where two specs mean the same."""
        return normal_form(self.kind, self.model_dump(mode="json", by_alias=True))
