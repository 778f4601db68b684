"""The organizations that ``init`` writes to begin from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.resources.installation import SCHEMAS, schema_folder

_HERE = Path(__file__).parent
ONE = _HERE / "starter"
"""An organization for one service."""

TWO = _HERE / "starter-environments"
"""An organization in two environments, with its ``reconciler.yaml``."""


def two_environments() -> Mapping[Path, bytes]:
    """Return the files of an organization in two environments and the schemas, by path."""
    schemas = schema_folder()
    return {
        **{path.relative_to(TWO): path.read_bytes() for path in _files(TWO)},
        **{
            Path(SCHEMAS) / path.relative_to(schemas): path.read_bytes() for path in _files(schemas)
        },
    }


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
