"""Files and libraries beside the package and the manifests: schemas, state, extras of commands.

A command that needs an extra checks for it before it makes or asks anything, and raises an error
with the sentence from here, so that the way to install is written in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from reconciler import __version__

SCHEMAS = ".schemas"
"""Name of the folder beside manifests that the modelines in them lead to."""

STATE_FOLDER = ".reconciler"
"""Name of the folder beside manifests for stores, journals and secrets. Git ignores it."""

SECRETS = "secrets"
"""Name of the folder in there for client secrets that go nowhere else."""

_PACKAGE = Path(__file__).parents[1]
_FOLDERS = (_PACKAGE / "schemas", _PACKAGE.parent / "schemas")


def is_checkout() -> bool:
    """Return whether the package runs from a checkout; an installed one has the schemas inside."""
    return schema_folder() == _FOLDERS[1]


def schema_folder() -> Path:
    """Return the folder with the schema files."""
    return next(folder for folder in _FOLDERS if folder.is_dir())


def schema_path(name: str) -> Path:
    """Return the file of a schema by the name that its declaration gives it."""
    return schema_folder() / f"{name}.schema.json"


RECOMMENDED_POLICIES = _PACKAGE / "policy" / "recommended"
"""The folder of the policies that come with the package."""

DISTRIBUTION = "identity-reconciler"
WHEEL = f"{DISTRIBUTION.replace('-', '_')}-{__version__}-py3-none-any.whl"
"""The file name of this version's wheel."""

EXTRAS = {
    "key-file": ("cryptography", "joserfc"),
    "policy": ("cel_expr_python", "google"),
    "postgres": ("psycopg", "psycopg_pool"),
    "serve": ("google", "h2", "hpack", "httptools", "joserfc", "uvicorn", "uvloop"),
}
"""The top-level modules that each extra brings."""


def missing_modules(extra: str) -> Sequence[str]:
    """Return the modules of an extra that are not installed. Nothing is imported."""
    return [module for module in EXTRAS[extra] if find_spec(module) is None]


def how_to_install(extra: str) -> str:
    """Return the sentence that says how to install an extra here.

    No package index is asked for the tool itself: outside a checkout it comes from the wheel.
    """
    if is_checkout():
        return "Install it in this checkout with: make extras"
    return f"Install it from the wheel with: pip install './{WHEEL}[{extra}]' (docs/install.md)"
