"""Extras: libraries that only some commands need, and how each is installed.

A command that needs an extra checks for it before it makes or asks anything, and raises an error of
its own with the sentence from here, so that the way to install is written in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from reconciler import __version__
from reconciler.resources.schema_files import is_checkout

DISTRIBUTION = "identity-reconciler"
WHEEL = f"{DISTRIBUTION.replace('-', '_')}-{__version__}-py3-none-any.whl"
"""The file name of this version's wheel."""

EXTRAS = {
    "key-file": ("cryptography",),
    "postgres": ("psycopg", "psycopg_pool"),
    "serve": ("google", "grpc", "grpc_health", "grpc_reflection", "httptools", "starlette",
              "uvicorn", "uvloop"),
}  # fmt: skip
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
