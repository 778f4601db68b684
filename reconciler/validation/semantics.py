"""Rules that a schema cannot say, asked of each resource on its own."""

from __future__ import annotations

from reconciler.diagnostics import Diagnostic
from reconciler.manifests.manifest import Manifest
from reconciler.state import Resource


class Semantics:
    """Judges the resources of one run."""

    def findings(self, resource: Resource, manifest: Manifest) -> list[Diagnostic]:
        """Return what is wrong or dangerous about one resource."""
        return []
