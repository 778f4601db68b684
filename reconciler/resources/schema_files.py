"""Finding the public schemas: inside the installed package, or at the top of a checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reconciler.resources.kinds import KINDS
from reconciler.resources.ref import Kind

SCHEMAS = ".schemas"
"""Name of the folder beside manifests that the modelines in them lead to."""

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "schemas", _PACKAGE.parent / "schemas")


def is_checkout() -> bool:
    """Return whether the package runs from a checkout; an installed one has the schemas inside."""
    return schema_folder() == _FOLDERS[1]


def schema_folder() -> Path:
    """Return the folder with the schema files."""
    return next(folder for folder in _FOLDERS if folder.is_dir())


def schema_path(kind: Kind | None = None) -> Path:
    """Return the schema file of a kind, or of any manifest."""
    name = KINDS[kind].schema if kind else "manifest"
    return schema_folder() / f"{name}.schema.json"


def read_schema(kind: Kind) -> dict[str, Any]:
    """Return the schema of a kind's manifests."""
    schema: dict[str, Any] = json.loads(schema_path(kind).read_text(encoding="utf-8"))
    return schema
