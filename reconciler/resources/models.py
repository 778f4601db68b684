"""The kinds as pydantic models: strict, frozen and closed, made from their declarations.

Only what checks requests needs them, since pydantic takes longer to load than an unchanged plan
takes to make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, cast

import pydantic
from pydantic import BaseModel, ConfigDict, create_model
from pydantic.alias_generators import to_camel

from reconciler.resources.capabilities import CAPABILITIES, SOURCE, fields_taken
from reconciler.resources.fields import NO_NUL, Field, Form, SpecValue
from reconciler.resources.kinds import MAX_NAME
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind

Name = Annotated[str, pydantic.Field(min_length=1, max_length=MAX_NAME, pattern=NO_NUL)]
M = TypeVar("M", bound="Model")
_literal = cast("Any", Literal)  # whose words are known at run time only
_union = cast("Any", Union)


class Model(BaseModel):
    """Fields of a request or a spec: frozen, closed, camelCase outside.

    Unknown fields are refused: a misspelt field that is ignored looks, to its author, like a
    change that was applied. Types are strict for the same reason: ``devMode: "yes"`` is a
    mistake, not true.

    Attributes:
        kind: The kind whose spec is among the fields, if one is; see ``with_fields_of``.
    """

    kind: ClassVar[Kind | None] = None
    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
    )

    def meaning(self) -> Mapping[str, SpecValue]:
        """Return all fields, those of a spec in normal form: equal where they mean the same."""
        fields = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return fields if self.kind is None else normal_form(self.kind, fields)


@cache
def model_of(kind: Kind) -> type[Model]:
    """Return the model of a kind's spec as this project's service takes it."""
    return model_with(kind.value, fields_taken(kind, CAPABILITIES[SOURCE]))


def model_with(name: str, fields: Iterable[Field]) -> type[Model]:
    """Return a model with some fields."""
    described: dict[str, Any] = {each.name: (_type_of(each), _described(each)) for each in fields}
    return create_model(name, __base__=Model, **described)


def with_fields_of(kind: Kind, *, but_for: str = "") -> Callable[[type[M]], type[M]]:
    """Return a class decorator that puts the fields of a kind's spec before those of a model.

    ``but_for`` names one that the call does not know.
    """

    def extended(model: type[M]) -> type[M]:
        fields = model_of(kind)
        if but_for:
            known = fields_taken(kind, CAPABILITIES[SOURCE])
            fields = model_with(kind.value, [each for each in known if each.name != but_for])
        bases = (model, cast("type[M]", fields))  # pydantic takes the fields of the last one first
        model.kind = kind
        return create_model(
            model.__name__, __base__=bases, __module__=model.__module__, __doc__=model.__doc__
        )

    return extended


def _type_of(field: Field) -> Any:
    if field.form is Form.FLAG:
        return bool
    if field.form is Form.VARIANT:
        return _union[tuple(_variant(name, texts) for name, texts in field.variants.items())]
    limits = pydantic.Field(
        min_length=field.shortest or None, max_length=field.longest or None, pattern=field.pattern
    )
    one: Any = _literal[field.words] if field.words else Annotated[str, limits]
    return tuple[one, ...] if field.python_type is list else one


def _variant(name: str, texts: Iterable[Field]) -> type[Model]:
    fields: dict[str, Any] = {name: (model_with(name, texts), ...)}
    return create_model(name, __base__=Model, **fields)


def _described(field: Field) -> Any:
    default: Any = field.default
    if default is None:
        default = ...
    elif isinstance(default, list):
        default = tuple(default)
    # Said outright: the alias made of a trigger's name would not be the name.
    return pydantic.Field(
        default, alias=field.name, description=field.about, examples=[*field.examples] or None
    )
