"""The kind of a document, which must be known before a schema can judge it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.diagnostics import Diagnostic, error
from reconciler.manifests.manifest import Manifest
from reconciler.resources.kinds import API_VERSION
from reconciler.resources.nearest import nearest, one_of
from reconciler.resources.ref import Kind
from reconciler.validation.problem import cut

_KINDS: Mapping[str, Kind] = {kind.value: kind for kind in Kind}
_SHAPE = "Every manifest needs apiVersion, kind and metadata, and most kinds a spec."


def kind_of(document: Any) -> Kind | None:
    """Return the kind a document says it is of, or None."""
    if isinstance(document, dict):
        kind = document.get("kind")
        if isinstance(kind, str):
            return _KINDS.get(kind)
    return None


def envelope_findings(manifest: Manifest) -> Iterator[Diagnostic]:
    """Yield why a document without a known kind is no manifest."""
    document = manifest.document
    if not isinstance(document, dict):
        yield error("MANIFEST-SHAPE", "the document is not a mapping", _SHAPE, manifest.place())
        return
    version = document.get("apiVersion")
    if version != API_VERSION:
        yield _wrong_version(manifest, version)
    if "kind" not in document:
        summary = "the manifest has no kind"
        yield error("MANIFEST-KIND", summary, f"Write kind: {_choice()}.", manifest.place())
    else:
        yield _unknown_kind(manifest, document["kind"])


def _wrong_version(manifest: Manifest, version: object) -> Diagnostic:
    remedy = f"Write apiVersion: {API_VERSION}."
    if version is None:
        summary = "the manifest has no apiVersion"
        return error("MANIFEST-API-VERSION", summary, remedy, manifest.place())
    summary = f"unknown apiVersion {cut(version)}"
    return error("MANIFEST-API-VERSION", summary, remedy, manifest.place("apiVersion"))


def _unknown_kind(manifest: Manifest, kind: object) -> Diagnostic:
    meant = nearest(kind, _KINDS) if isinstance(kind, str) else None
    remedy = f"Did you mean {meant}? " if meant else ""
    return error(
        "MANIFEST-KIND",
        f"unknown kind {cut(kind)}" if kind else "the kind is empty",
        f"{remedy}Write kind: {_choice()}.",
        manifest.place("kind"),
    )


def _choice() -> str:
    return one_of(_KINDS)
