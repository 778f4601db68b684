"""Completion in a shell: kinds and their fields, codes, and refs that the manifests declare.

A shell asks after each Tab, so nothing here speaks to a service, prints, or fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import click

from reconciler.resources.ref import Kind, ResourceRef

_PLAIN = re.compile(r"[A-Za-z0-9._/%@+-]+", re.ASCII)
"""Texts that a shell takes as one word without quotes; others are not offered."""


def kinds(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the kinds that begin with these letters, in upper or lower case."""
    return [kind.value for kind in Kind if kind.value.lower().startswith(incomplete.lower())]


def explainable(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return kinds, codes and classes of risk; once a kind and a point are written, its fields."""
    name, point, _ = incomplete.partition(".")
    found = {kind.value.lower(): kind for kind in Kind}.get(name.lower())
    if point and found is not None:
        texts = _fields(found)
    else:
        from reconciler.report.codes.table import CODES, RISKS

        texts = [*(kind.value for kind in Kind), *CODES, *RISKS]
    return [text for text in texts if text.lower().startswith(incomplete.lower())]


def _fields(kind: Kind) -> list[str]:
    from reconciler.resources.schema_files import read_schema

    parts = read_schema(kind)["properties"]
    metadata = (f"metadata.{field}" for field in parts["metadata"]["properties"])
    fields = [*parts["spec"].get("properties", {}), *metadata]
    return [f"{kind.value}.{field}" for field in fields]


def declared_refs(kind: Kind | None, incomplete: str) -> list[str]:
    """Return the refs that begin so, of those that the folder ``manifests`` declares.

    Of one ``kind`` they leave the kind out, unless it stands there.
    """
    short = kind is not None and not incomplete.startswith(kind.value)
    texts = sorted(
        ref.path if short else ref.address for ref in _declared() if kind in {None, ref.kind}
    )
    return [text for text in texts if text.startswith(incomplete) and _PLAIN.fullmatch(text)]


def _declared() -> Iterator[ResourceRef]:
    with suppress(Exception):
        from reconciler.cli.manifests import DEFAULT_PATHS
        from reconciler.manifests.layout import declared_ref
        from reconciler.manifests.loader import load

        for manifest in load(DEFAULT_PATHS).manifests:
            if ref := declared_ref(manifest.document):
                yield ref
