"""Pieces of JSON Schema that requests and answers are described with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.resources import schemas
from reconciler.resources.fields import NO_NUL
from reconciler.resources.schemas import Schema
from reconciler.service.operations.request import LARGEST, MAX_TEXT

ID = r"^[A-Za-z0-9_-]{1,200}$"
TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"


def closed(properties: Mapping[str, Schema], required: Iterable[str] | None = None) -> Schema:
    """Return an object with these fields and no others; all are required unless it is said."""
    return schemas.closed(properties, [*(properties if required is None else required)])


def text(description: str = "", *, longest: int = MAX_TEXT, shortest: int = 0) -> Schema:
    """Return a text as ``Fields`` reads it."""
    schema: Schema = {"type": "string", "maxLength": longest, "pattern": NO_NUL}
    if shortest:
        schema["minLength"] = shortest
    return {**schema, "description": description} if description else schema


def number(description: str, *, least: int = 0, greatest: int = LARGEST) -> Schema:
    """Return a number as ``Fields`` reads it: also as a string of its digits."""
    return {
        "type": ["integer", "string"],
        "description": description,
        "minimum": least,
        "maximum": greatest,
        "pattern": f"^(?:{digits(least, greatest)})$",
    }


def digits(least: int, greatest: int) -> str:
    """Return a pattern of the decimal numbers from 0 or 1 to one that is given."""
    shorter = len(str(greatest)) - 1
    choices = ["0"] if least == 0 else []
    if shorter:
        choices.append(f"[1-9][0-9]{{0,{shorter - 1}}}")
    written = str(greatest)
    for place, digit in enumerate(written):
        first = 1 if place == 0 else 0
        if int(digit) > first:
            rest = len(written) - place - 1
            choices.append(f"{written[:place]}[{first}-{int(digit) - 1}][0-9]{{{rest}}}")
    return "|".join([*choices, written])


def choice(values: Iterable[str]) -> Schema:
    """Return one of some words."""
    return {"type": "string", "enum": list(values)}


def flag(description: str = "") -> Schema:
    """Return true or false."""
    return {"type": "boolean", "description": description} if description else {"type": "boolean"}


def many(items: Schema, description: str = "") -> Schema:
    """Return a list."""
    schema: Schema = {"type": "array", "items": items}
    return {**schema, "description": description} if description else schema


def ref(name: str) -> Schema:
    """Return a schema of the components by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def model_schema(model: Any) -> Schema:
    """Return the schema of a model, without the titles that are made of names."""
    schema: Schema = model.model_json_schema(by_alias=True)
    return _closed_model(schema, schema.get("$defs", {}))


def _closed_model(schema: Schema, parts: Mapping[str, Schema]) -> Schema:
    """Return the schema of a model with the models of its parts in their places."""
    properties = {}
    for name, field in schema.get("properties", {}).items():
        known = {key: value for key, value in field.items() if key not in {"title", "$ref"}}
        if "$ref" in field:
            part = parts[field["$ref"].rpartition("/")[2]]
            known = {**known, **_closed_model(part, parts), "description": part["description"]}
        properties[name] = known
    return closed(properties, schema.get("required", ()))
