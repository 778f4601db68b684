"""Write what follows from the declarations of the kinds: ``python -m docs.kinds.make``.

Run it at the top of a checkout. It writes the schemas in ``schemas/`` and the tables of fields in
``docs/manifests.md``; a test keeps both in step with the declarations.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from docs.kinds.tables import with_tables
from reconciler.configuration.model import configuration_schema
from reconciler.resources.schemas import Schema, public_schemas

ROOT = Path(__file__).parents[2]
PAGE = "docs/manifests.md"


def written() -> Mapping[str, str]:
    """Return the text of every file, by its path from the top of the checkout."""
    public = {**public_schemas(), "configuration.schema.json": configuration_schema()}
    schemas = {f"schemas/{name}": schema_text(schema) for name, schema in public.items()}
    return {**schemas, PAGE: with_tables((ROOT / PAGE).read_text(encoding="utf-8"))}


def schema_text(schema: Schema) -> str:
    """Return a schema as it stands in its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every file."""
    for name, text in written().items():
        (ROOT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
