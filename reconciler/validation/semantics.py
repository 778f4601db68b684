"""Rules that a schema cannot express, for each resource on its own."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.diagnostics import Diagnostic
from reconciler.kinds.rules import RULES
from reconciler.manifests.manifest import Manifest
from reconciler.resources.fields import Spec
from reconciler.rules.form import Found
from reconciler.rules.texts import is_plain, name_problems
from reconciler.state import Resource
from reconciler.validation.schema import MAX_FAULTS, unshown
from reconciler.validation.script import ScriptCompiler


class Semantics:
    """Judges the resources of one run."""

    def __init__(self) -> None:
        self._compiler = ScriptCompiler()

    def findings(self, resource: Resource, manifest: Manifest) -> list[Diagnostic]:
        """Return what is wrong or dangerous about one resource."""
        written = manifest.document.get("spec") or {}
        found: list[Found] = []
        if not all(map(is_plain, resource.ref[1:])):
            found += _names(manifest.document["metadata"])
        found += RULES[resource.ref.kind].findings(resource, written, self._compiler.compile)
        if len(found) > MAX_FAULTS:
            found.sort(key=lambda each: not each.problem.is_error)  # errors first
            left_out = found[MAX_FAULTS:]
            is_error = any(each.problem.is_error for each in left_out)
            more = unshown(len(left_out), is_error=is_error)
            found = [*found[:MAX_FAULTS], Found(more, found[MAX_FAULTS - 1].path)]
        return [_placed(each, manifest, resource) for each in found]


def _placed(found: Found, manifest: Manifest, resource: Resource) -> Diagnostic:
    if found.line:
        place = manifest.place_within(found.line, found.column, *found.path)
    else:
        place = manifest.place(*found.path)
    return found.problem.at(place, resource.ref)


def _names(metadata: Spec) -> Iterator[Found]:
    for field in ("organization", "project", "name"):
        if field in metadata:
            for problem in name_problems(metadata[field]):
                yield Found(problem, ("metadata", field))
