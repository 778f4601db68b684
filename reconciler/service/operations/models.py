"""Requests as models: JSON text in, a checked model out, or a refusal that names the field.

The models stand beside the operations they are for, and take the fields of a spec from its
declaration in ``resources``. A field of ZITADEL's that this service does not offer accepts only
the value that changes nothing.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import ConfigDict, ValidationError

from reconciler.resources.call import JsonObject
from reconciler.resources.fields import NO_NUL, Spec, format_duration
from reconciler.resources.models import Model, Name, model_of
from reconciler.resources.normal import LIMITS, normal_form
from reconciler.resources.ref import Kind
from reconciler.service.domain.refusal import Refusal, invalid
from reconciler.service.operations.request import shown

Id = Name
M = TypeVar("M", bound=Model)


class Message(Model):
    """A request: frozen, strict and closed as a spec is."""

    model_config = ConfigDict(title="request")


class IdRequest(Message):
    """Name an object by its id, as the path does."""

    id: Id


class SpecMessage(Message):
    """A request with a whole spec among its fields; ``with_fields_of`` puts them there."""

    def spec_of(self, kind: Kind) -> Spec:
        """Return the fields of the spec alone, in the form in which they are stored."""
        names = model_of(kind).model_fields.keys() & type(self).model_fields.keys()
        return normal_form(kind, self.model_dump(mode="json", by_alias=True, include=names))


def checked(model: type[M], text: str) -> M:
    """Return a request of its JSON text.

    Raises:
        Refusal: a field is missing, unknown, or of a wrong type or value.
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise _refusal(error) from None
    except UnicodeEncodeError:
        raise invalid("request", "must be Unicode text, without lone surrogates") from None


def _refusal(error: ValidationError) -> Refusal:
    first: JsonObject = error.errors(include_url=False, include_input=False, include_context=True)[
        0
    ]
    rule = _RULES.get(first["type"], "is not valid")
    if first["type"] == "string_pattern_mismatch":
        rule = _PATTERNS[first["ctx"]["pattern"]]
    return invalid(_path(first["loc"]), rule.format(**first.get("ctx", {})))


def _path(parts: tuple[int | str, ...]) -> str:
    path = ""
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{shown(part)}"
    return path.removeprefix(".") or "request"


_RULES = {
    "missing": "is required",
    "extra_forbidden": "is not a field of this request",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "string_too_long": "must be at most {max_length} characters long",
    "too_long": "must have at most {max_length} entries",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "literal_error": "must be {expected}",
    "none_required": "is not offered by this service: leave it out",
    "json_invalid": "must be JSON in Unicode",
    "model_type": "must be an object",
}
_PATTERNS = {
    NO_NUL: "must not contain NUL",
    **{
        limits.pattern: "must be decimal seconds with s, from 0s to "
        f"{format_duration(limits.longest)}, such as 1.5s"
        for limits in LIMITS
    },
}
