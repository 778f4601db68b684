"""Manifests in, desired state and every finding out."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.diagnostics import Diagnostic, by_place
from reconciler.manifests.manifest import Loaded, Manifest
from reconciler.resources.collector import collector_paused
from reconciler.state import DesiredState, Resource
from reconciler.validation.envelope import envelope_findings, kind_of
from reconciler.validation.references import (
    scope,
    shared_ids,
    unique_resources,
)
from reconciler.validation.resource import resource_of
from reconciler.validation.schema import accepts
from reconciler.validation.semantics import Semantics


@dataclass(frozen=True, slots=True)
class Judgement:
    """The resources that the manifests declare, and the findings about them.

    Attributes:
        desired: The valid resources alone; it means something only where there is no error.
        diagnostics: Every finding, those of reading included, in the order of their places.
    """

    desired: DesiredState
    diagnostics: tuple[Diagnostic, ...]

    @property
    def is_valid(self) -> bool:
        """Return whether there is no error."""
        return not any(finding.is_error for finding in self.diagnostics)


def judge(loaded: Loaded) -> Judgement:
    """Judge everything that was read.

    Owners that are declared nowhere are not judged here: the service may hold them, which a plan
    finds out. Who asks no service adds ``references.undeclared_owners``.
    """
    findings = list(loaded.diagnostics)
    semantics = Semantics()
    resources = []
    with collector_paused():
        for manifest in loaded.manifests:
            resource, found = _judge_one(manifest, semantics)
            findings += found
            if resource is not None:
                resources.append(resource)
        by_key, duplicates = unique_resources(resources)
    desired = DesiredState(by_key, scope(resources), loaded.whole)
    return Judgement(desired, by_place([*findings, *duplicates, *shared_ids(resources)]))


def _judge_one(
    manifest: Manifest, semantics: Semantics
) -> tuple[Resource | None, list[Diagnostic]]:
    kind = kind_of(manifest.document)
    if kind is None:
        return None, list(envelope_findings(manifest))
    if not accepts(kind, manifest.document):
        from reconciler.validation.explain import schema_findings

        return None, schema_findings(kind, manifest)
    resource = resource_of(kind, manifest)
    findings = semantics.findings(resource, manifest)
    broken = any(finding.is_error for finding in findings)
    return None if broken else resource, findings
