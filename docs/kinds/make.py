"""Write what follows from the declarations of the kinds: ``python -m docs.kinds.make``.

Run it at the top of a checkout. It writes the schemas in ``schemas/`` and the tables of fields in
``docs/manifests.md``; a test keeps both in step with the declarations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from docs.kinds.tables import with_tables
from reconciler.kinds.fields import KINDS
from reconciler.resources.ref import Kind
from reconciler.resources.schemas import (
    DEFAULTS,
    DIALECT,
    KIND,
    VERSION,
    Patch,
    Schema,
    Stage,
    schema_for,
)

ROOT = Path(__file__).parents[2]
PAGE = "docs/manifests.md"


def written() -> Mapping[str, str]:
    """Return the text of every file, by its path from the top of the checkout."""
    public = public_schemas().items()
    schemas = {f"schemas/{name}": schema_text(schema) for name, schema in public}
    return {**schemas, PAGE: with_tables((ROOT / PAGE).read_text(encoding="utf-8"))}


def public_schemas() -> Mapping[str, Schema]:
    """Return by its file name every public schema that is not written by hand."""
    kinds = {row.schema: schema_for(kind, Stage.WRITTEN) for kind, row in KINDS.items()}
    schemas = {
        **kinds,
        "defaults": schema_for(DEFAULTS, Stage.WRITTEN),
        "manifest": any_manifest(Stage.WRITTEN),
        "patch": any_patch(),
    }
    return {f"{name}.schema.json": schema for name, schema in schemas.items()}


def any_manifest(stage: Stage) -> Schema:
    """Return the schema of any document of the base: it picks by ``kind``."""
    schemas = {kind.value: schema_for(kind, stage) for kind in Kind}
    return _one_by_kind(
        "Manifest",
        "One manifest of the reconciler; its kind decides about its fields.",
        {**schemas, DEFAULTS: schema_for(DEFAULTS, stage)},
    )


def any_patch() -> Schema:
    """Return the schema of any patch in an overlay folder: it picks by ``kind``."""
    return _one_by_kind(
        "Patch",
        "Changes of an overlay to one manifest of the base; its kind decides about its fields.",
        {kind.value: schema_for(Patch(kind), Stage.WRITTEN) for kind in Kind},
    )


def _one_by_kind(title: str, about: str, schemas: Mapping[str, Schema]) -> Schema:
    """Return a schema that picks one by ``kind``, so that errors do not mislead."""
    return {
        "$schema": DIALECT,
        "title": title,
        "description": about,
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": VERSION,
            "kind": {"description": KIND, "enum": [*schemas]},
        },
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"$ref": f"#/$defs/{kind}"},
            }
            for kind in schemas
        ],
        "$defs": {
            kind: {key: value for key, value in schema.items() if key != "$schema"}
            for kind, schema in schemas.items()
        },
    }


def schema_text(schema: Schema) -> str:
    """Return a schema as it stands in its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every file."""
    for name, text in written().items():
        (ROOT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
