"""Requests as pydantic models: fields in, a checked request out, or a refusal that names the field.

The models are made from the declarations of the kinds. Only what checks requests loads them:
pydantic takes longer to load than an unchanged plan takes to make.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Union, cast

import pydantic
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from reconciler.kinds.fields import KINDS
from reconciler.resources.call import JsonObject
from reconciler.resources.fields import NO_NUL, Field, format_duration
from reconciler.resources.fields import Form as FieldForm
from reconciler.resources.normal import normal_form
from reconciler.service.domain.refusal import Refusal, invalid
from reconciler.service.operations.form import Asked, Fixed, Form, FormField
from reconciler.service.operations.request import shown_path

_literal = cast("Any", Literal)  # whose words are known at run time only
_union = cast("Any", Union)


class Model(BaseModel):
    """Fields of a request or a spec: frozen, and closed.

    Unknown fields are refused: a misspelt field that is ignored looks, to its author, like a
    change that was applied. Types are strict for the same reason: ``devMode: "yes"`` is a
    mistake, not true.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


@cache
def model_of(form: Form) -> type[Model]:
    """Return the model of a form."""
    return model_with("Request", (*form.of_kind, *form.others))


def model_with(name: str, fields: Iterable[FormField], about: str | None = None) -> type[Model]:
    """Return a model with some fields."""
    described: dict[str, Any] = {
        field.name: (_type_of(field), _described(field))
        if isinstance(field, Field)
        else _fixed(field)
        for field in fields
    }
    return create_model(name, __base__=Model, __doc__=about, **described)


def _type_of(field: Field) -> Any:
    if field.form is FieldForm.FLAG:
        return bool
    if field.form is FieldForm.VARIANT:
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
    return pydantic.Field(
        default, description=field.about or None, examples=[*field.examples] or None
    )


def _fixed(field: Fixed) -> tuple[Any, Any]:
    if isinstance(field.value, dict):
        parts = (Fixed(*each) for each in field.value.items())
        part = model_with("Request", parts, field.about)
        return part, part()
    # Of type None: only null is accepted.
    return None if field.value is None else _literal[field.value], field.value


@cache
def _own_names(form: Form) -> tuple[str, ...]:
    return tuple(field.name for field in form.others if isinstance(field, Field))


def checked(form: Form, fields: Mapping[str, object]) -> Asked:
    """Return a request of its fields, as they are read from JSON.

    A field that is null is left out, as in the JSON form of protobuf; an unknown one is refused.

    Raises:
        Refusal: a field is missing, unknown, or of a wrong type or value.
    """
    known = form.names
    given = {name: each for name, each in fields.items() if each is not None or name not in known}
    try:
        values = vars(model_of(form).model_validate(given))
    except ValidationError as error:
        raise _refusal(error) from None
    own = {name: values[name] for name in _own_names(form)}
    if form.kind is None:
        return Asked(own, {})
    spec = {field.name: values[field.name] for field in form.of_kind}
    for name, value in spec.items():
        if type(value) is tuple:  # models are frozen; specs compare as JSON, with lists
            spec[name] = [*value]
    return Asked(own, normal_form(form.kind, spec))


def _refusal(error: ValidationError) -> Refusal:
    found = error.errors(include_url=False, include_input=False, include_context=True)
    first: JsonObject = found[0]
    if first["type"] == "extra_forbidden":
        # Of several unknown fields, the first by name: the order of a body does not matter.
        place = first["loc"][:-1]
        unknown = (each for each in found if each["loc"][:-1] == place)
        first = min(unknown, key=lambda each: str(each["loc"]))
    rule = _RULES.get(first["type"], "is not valid")
    if first["type"] == "string_pattern_mismatch":
        rule = _PATTERNS[first["ctx"]["pattern"]]
    return invalid(shown_path(first["loc"]), rule.format(**first.get("ctx", {})))


_RULES = {
    "missing": "is required",
    "extra_forbidden": "is not a field of this request",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "string_too_long": "must be at most {max_length} characters long",
    "string_unicode": "must be Unicode text, without lone surrogates",
    "too_long": "must have at most {max_length} entries",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "literal_error": "must be {expected}",
    "none_required": "is not offered by this service: leave it out",
    "model_type": "must be an object",
}
_PATTERNS = {
    NO_NUL: "must not contain NUL",
    **{
        field.limits.pattern: "must be decimal seconds with s, from 0s to "
        f"{format_duration(field.limits.longest)}, such as 1.5s"
        for row in KINDS.values()
        for field in row.fields
        if field.limits
    },
}
