"""The public JSON Schemas of manifests, made from the declarations of the kinds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.resources.fields import Field, Form
from reconciler.resources.kinds import API_VERSION, KINDS, METADATA
from reconciler.resources.ref import Kind

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VERSION: Schema = {"description": "Version of the manifest format.", "const": API_VERSION}
_ENVELOPE = ["apiVersion", "kind", "metadata"]


def all_schemas() -> Mapping[str, Schema]:
    """Return every public schema by its file name."""
    schemas = {f"{row.schema}.schema.json": manifest_schema(kind) for kind, row in KINDS.items()}
    return {**schemas, "manifest.schema.json": any_manifest_schema()}


def schema_text(schema: Schema) -> str:
    """Return a schema as it stands in its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def manifest_schema(kind: Kind) -> Schema:
    """Return the JSON Schema of a kind's manifests, complete in itself."""
    row = KINDS[kind]
    spec = _spec_schema(kind)
    needs_spec = "required" in spec or "oneOf" in spec
    return {
        "$schema": DIALECT,
        "title": f"{kind.value} manifest",
        "description": row.about,
        "type": "object",
        "additionalProperties": False,
        "required": [*_ENVELOPE, *(["spec"] if needs_spec else [])],
        "properties": {
            "apiVersion": _VERSION,
            "kind": {"description": "What the manifest declares.", "const": kind.value},
            "metadata": {
                "description": "What identifies the resource.",
                **_object_schema((*row.owner, *METADATA)),
            },
            "spec": {"description": "The fields of the resource.", **spec},
        },
    }


def any_manifest_schema() -> Schema:
    """Return the schema of any manifest: it picks by ``kind``, so that errors do not mislead."""
    kinds = [kind.value for kind in Kind]
    return {
        "$schema": DIALECT,
        "title": "Manifest",
        "description": "One manifest of the reconciler; its kind decides about its fields.",
        "type": "object",
        "required": _ENVELOPE,
        "properties": {
            "apiVersion": _VERSION,
            "kind": {"description": "What the manifest declares.", "enum": kinds},
        },
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{kind}"},
            }
            for kind in kinds
        ],
        "$defs": {kind.value: _without_dialect(manifest_schema(kind)) for kind in Kind},
    }


def _spec_schema(kind: Kind) -> Schema:
    """Return the schema of a spec; of a field and the one written in its place, one is needed."""
    row = KINDS[kind]
    fields: list[Field] = []
    for field in row.fields:
        fields += [field, *([row.instead[field.name]] if field.name in row.instead else [])]
    optional = {name for field, other in row.instead.items() for name in (field, other.name)}
    schema = _object_schema(fields, optional)
    for name, other in row.instead.items():
        schema["oneOf"] = [{"required": [name]}, {"required": [other.name]}]
    return schema


def _object_schema(
    fields: Sequence[Field], optional: set[str] | frozenset[str] = frozenset()
) -> Schema:
    required = [each.name for each in fields if each.default is None and each.name not in optional]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {each.name: field_schema(each) for each in fields},
        **({"required": required} if required else {}),
    }


def field_schema(field: Field) -> Schema:
    """Return the schema of one field, its keys in the order of the alphabet.

    An empty text as default stands for a field that is not set, which is no default to show.
    """
    schema: Schema = {"description": field.about, **_type_schema(field)}
    if field.default is not None and field.default != "":
        schema["default"] = field.default
    if field.examples:
        schema["examples"] = [*field.examples]
    return dict(sorted(schema.items()))


def _type_schema(field: Field) -> Schema:
    if field.form is Form.FLAG:
        return {"type": "boolean"}
    one = _one_of(field.words) if field.words else _text_schema(field)
    return {"type": "array", "items": one} if field.python_type is list else one


def _one_of(words: Sequence[str]) -> Schema:
    allowed = {"const": words[0]} if len(words) == 1 else {"enum": [*words]}
    return {**allowed, "type": "string"}


def _text_schema(field: Field) -> Schema:
    limits = {"maxLength": field.longest, "minLength": field.shortest}
    return {
        **{name: limit for name, limit in limits.items() if limit},
        "pattern": field.pattern,
        "type": "string",
    }


def _without_dialect(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key != "$schema"}
