"""One valid manifest becomes one resource: ref, normal form, and what it says itself."""

from __future__ import annotations

from reconciler.manifests.manifest import Manifest
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import Resource


def resource_of(kind: Kind, manifest: Manifest) -> Resource:
    """Return the resource that a manifest declares. The manifest fits its schema."""
    metadata = manifest.document["metadata"]
    spec = manifest.document.get("spec") or {}
    name = metadata["name"]
    return Resource(
        ResourceRef(kind, metadata.get("organization", name), metadata.get("project", ""), name),
        normal_form(kind, spec),
        frozenset(spec),
        manifest,
        metadata.get("id", ""),
        metadata.get("preventDelete", False),
        metadata.get("critical", False),
    )
