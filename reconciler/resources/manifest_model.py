"""A manifest as a model: the envelope around a spec, and the public schemas made from it.

The schemas in ``schemas/`` are written by ``python -m reconciler.resources.manifest_model
FOLDER``; a test holds them to the models.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, create_model

from reconciler.resources.action import MAX_SCRIPT
from reconciler.resources.base import NO_NUL, Name, Spec
from reconciler.resources.kinds import API_VERSION, KINDS, model_of
from reconciler.resources.ref import Kind

DIALECT = "https://json-schema.org/draft/2020-12/schema"

ObjectId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,200}$")]
ScriptFile = Annotated[str, Field(min_length=1, max_length=1000, pattern=NO_NUL)]

_OWNERS = {
    "organization": "Name of the organization that owns it.",
    "project": "Name of the project the application belongs to.",
}


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


class _Metadata(Spec):
    """Fields that the metadata of every kind has."""

    name: Name = Field(description="Name in the service, unique ignoring case.")
    id: ObjectId = Field(
        "",  # not pinned; a default is not validated, and what is written never is empty
        json_schema_extra=_without_default,
        description=(
            "Id of the object in the service that this resource is. Pin it to rename the object "
            "instead of making a new one."
        ),
    )
    prevent_delete: bool = Field(
        default=False, description="Refuse every plan that would delete the object."
    )
    critical: bool = Field(
        default=False,
        description=(
            "People are locked out when it breaks: refuse every plan that would remove or weaken "
            "the object, unless --break-glass names it."
        ),
    )


def manifest_schema(kind: Kind) -> dict[str, Any]:
    """Return the JSON Schema of a kind's manifests, complete in itself."""
    row = KINDS[kind]
    model = model_of(kind)
    spec = _plain_schema(model)
    if kind is Kind.ACTION:
        _offer_script_file(spec)
    required = ["apiVersion", "kind", "metadata"]
    if spec.get("required") or "oneOf" in spec:
        required.append("spec")
    return {
        "$schema": DIALECT,
        "title": f"{kind.value} manifest",
        "description": _first_paragraph(model),
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": {
            "apiVersion": {
                "description": "Version of the manifest format.",
                "const": API_VERSION,
            },
            "kind": {"description": "What the manifest declares.", "const": kind.value},
            "metadata": {
                "description": "What identifies the resource.",
                **_plain_schema(metadata_model(kind), first=row.owner),
            },
            "spec": {"description": "The fields of the resource.", **spec},
        },
    }


def metadata_model(kind: Kind) -> type[Spec]:
    """Return the model of a kind's metadata."""
    owners: dict[str, Any] = {
        owner: (Name, Field(description=_OWNERS[owner])) for owner in KINDS[kind].owner
    }
    return create_model("Metadata", __base__=_Metadata, **owners)


def any_manifest_schema() -> dict[str, Any]:
    """Return the schema of any manifest: it picks by ``kind``, so that errors do not mislead."""
    kinds = [kind.value for kind in Kind]
    return {
        "$schema": DIALECT,
        "title": "Manifest",
        "description": "One manifest of the reconciler; its kind decides about its fields.",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {
            "apiVersion": {
                "description": "Version of the manifest format.",
                "const": API_VERSION,
            },
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


def all_schemas() -> Mapping[str, dict[str, Any]]:
    """Return every public schema by its file name."""
    schemas = {f"{row.schema}.schema.json": manifest_schema(kind) for kind, row in KINDS.items()}
    return {**schemas, "manifest.schema.json": any_manifest_schema()}


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return a schema as it stands in its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _plain_schema(model: type[Spec], first: tuple[str, ...] = ()) -> dict[str, Any]:
    schema = _strip(model.model_json_schema(by_alias=True))
    properties = schema.get("properties", {})
    order = [*first, *(name for name in properties if name not in first)]
    plain: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: properties[name] for name in order},
    }
    if "required" in schema:
        plain["required"] = [name for name in order if name in schema["required"]]
    return plain


def _strip(schema: Any) -> Any:
    """Drop the titles that pydantic makes of names."""
    if isinstance(schema, list):
        return [_strip(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _strip(value) for name, value in item.items()}
        if key == "properties"
        else _strip(item)
        for key, item in schema.items()
        if not (key == "title" and isinstance(item, str))
    }


def _offer_script_file(spec: dict[str, Any]) -> None:
    properties = spec["properties"]
    spec["properties"] = {
        "script": properties["script"],
        "scriptFile": {
            "description": (
                "Path of a file with the script, from the manifest's own folder. It stays "
                f"beneath the folder of the manifests and holds at most {MAX_SCRIPT} characters."
            ),
            "type": "string",
            "minLength": 1,
            "maxLength": 1000,
            "pattern": NO_NUL,
            "examples": ["scripts/greet.js"],
        },
        **{name: value for name, value in properties.items() if name != "script"},
    }
    del spec["required"]
    spec["oneOf"] = [{"required": ["script"]}, {"required": ["scriptFile"]}]


def _without_dialect(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "$schema"}


def _first_paragraph(model: type[Spec]) -> str:
    return (model.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")


def main() -> None:
    """Write every schema into the folder named on the command line."""
    folder = Path(sys.argv[1])
    for name, schema in all_schemas().items():
        (folder / name).write_text(schema_text(schema), encoding="utf-8")


if __name__ == "__main__":
    main()
