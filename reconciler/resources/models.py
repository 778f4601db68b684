"""The kinds as pydantic models: strict, frozen and closed, made from their declarations.

Only what checks requests needs them, since pydantic takes longer to load than an unchanged plan
takes to make.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Union, cast

import pydantic
from pydantic import BaseModel, ConfigDict, create_model
from pydantic.alias_generators import to_camel

from reconciler.resources.fields import Field, Form

_literal = cast("Any", Literal)  # whose words are known at run time only
_union = cast("Any", Union)


class Model(BaseModel):
    """Fields of a request or a spec: frozen, closed, camelCase outside.

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


def model_with(name: str, fields: Iterable[Field]) -> type[Model]:
    """Return a model with some fields."""
    described: dict[str, Any] = {each.name: definition(each) for each in fields}
    return create_model(name, __base__=Model, **described)


def definition(field: Field) -> tuple[Any, Any]:
    """Return the type of a field and what else a model says of it."""
    return _type_of(field), _described(field)


def _type_of(field: Field) -> Any:
    if field.form is Form.FLAG:
        return bool
    if field.form is Form.VARIANT:
        return _union[tuple(_variant(name, texts) for name, texts in field.variants.items())]
    # A limit of 0 means none here; pydantic would enforce it.
    limits = pydantic.Field(
        min_length=field.shortest or None, max_length=field.longest or None, pattern=field.pattern
    )
    one: Any = _literal[field.words] if field.words else Annotated[str, limits]
    # Python values of a request are lists, which a strict tuple would refuse.
    many = pydantic.Field(strict=False, max_length=field.most or None)
    return Annotated[tuple[one, ...], many] if field.python_type is list else one


def _variant(name: str, texts: Iterable[Field]) -> type[Model]:
    fields: dict[str, Any] = {name: (model_with(name, texts), ...)}
    return create_model(name, __base__=Model, **fields)


def _described(field: Field) -> Any:
    default: Any = field.default
    if default is None:
        default = ...  # required
    elif isinstance(default, list):
        default = tuple(default)  # a model shares its defaults, so they must not change
    # The alias is explicit: ``to_camel`` would change the name of a trigger.
    return pydantic.Field(
        default,
        alias=field.name,
        description=field.about or None,
        examples=[*field.examples] or None,
    )
