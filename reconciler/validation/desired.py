"""Manifests in, desired state and every finding out.

The kind of a document must be known before a schema can judge it; only what its schema accepts
becomes a resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from reconciler.diagnostics import Diagnostic, SourceLocation, by_place, cut, error, warning
from reconciler.kinds.rules import RULES
from reconciler.manifests.manifest import Loaded, Manifest, kind_of
from reconciler.resources.capabilities import CAPABILITIES, uses
from reconciler.resources.fields import Spec
from reconciler.resources.kinds import API_VERSION
from reconciler.resources.nearest import near_refs, nearest, one_of
from reconciler.resources.normal import normal_form
from reconciler.resources.process import collector_paused
from reconciler.resources.ref import KIND_NAMED, Kind, ResourceRef, fold
from reconciler.resources.references import needs
from reconciler.resources.schemas import DEFAULTS, POLICY_KINDS, Judged, Patch
from reconciler.rules.form import Compile, Found
from reconciler.rules.texts import is_plain, name_problems
from reconciler.state import DesiredState, Need, Resource
from reconciler.validation.schema import MAX_FAULTS, accepts, faults, unshown
from reconciler.validation.script import ScriptCompiler


@dataclass(frozen=True, slots=True)
class Judgement:
    """The resources that the manifests declare, and the findings about them.

    Attributes:
        desired: The valid resources alone; it means something only where there is no error.
        diagnostics: Every finding, those of reading included, in the order of their places.
        named: The resources that the manifests name, those with errors included, for findings about
            what is declared nowhere. None where a manifest does not say what it is about.
    """

    desired: DesiredState
    diagnostics: tuple[Diagnostic, ...]
    named: Mapping[ResourceRef, Resource] | None = None


def judge(loaded: Loaded) -> Judgement:
    """Judge everything that was read.

    Owners that are declared nowhere are not judged here: the service may hold them, which a plan
    finds out. A command that asks no service adds ``undeclared``.
    The same goes for what not every service takes: ``unmet_needs`` judges it by capabilities that
    were chosen.
    """
    findings = list(loaded.diagnostics)
    compiled = ScriptCompiler().compile
    resources: list[Resource] = []
    broken: set[ResourceRef] = set()
    needs: list[Need] = []
    with collector_paused():
        for manifest in loaded.manifests:
            verdict = _judge_one(manifest, compiled)
            findings += verdict.findings
            needs += verdict.needs
            if verdict.resource is not None:
                resources.append(verdict.resource)
                if any(finding.is_error for finding in verdict.findings):
                    broken.add(verdict.resource.ref.key)
        named, duplicates = _unique_resources(resources)
    by_key = {key: each for key, each in named.items() if key not in broken} if broken else named
    valid = by_key.values() if broken else resources
    desired = DesiredState(by_key, _scope(valid), loaded.whole, needs=tuple(needs))
    findings += [*duplicates, *_shared_ids(resources)]
    names_all = len(resources) == len(loaded.manifests)
    of_layers = list(_of_layers(loaded))
    told = {_spot(each) for each in of_layers}
    findings = [each for each in findings if not (_is_of_schema(each) and _spot(each) in told)]
    told_once = by_place(_without_sequels([*findings, *of_layers], loaded))
    return Judgement(desired, told_once, named if names_all else None)


def unmet_needs(desired: DesiredState, name: str) -> tuple[Diagnostic, ...]:
    """Return an error for each thing that a service with these capabilities does not take.

    Several manifests can take it from one place, such as Defaults: one place is reported once.
    """
    service = CAPABILITIES[name]
    found = (need.unmet(service, is_chosen=True) for need in desired.needs)
    return by_place({_spot(each): each for each in found if each}.values())


def _needs(resource: Resource, manifest: Manifest) -> Iterator[Need]:
    for use in uses(resource.ref.kind, manifest.document.get("spec") or {}):
        yield Need(resource.ref, manifest.place(*use.path), use)


def _of_layers(loaded: Loaded) -> Iterator[Diagnostic]:
    """Yield what is wrong with Defaults and patches themselves.

    Every manifest that takes a wrong value from them has a finding at the same place, which is
    dropped: one place is reported once, however many manifests there are.
    """
    judged: list[tuple[Judged, Manifest]] = [(DEFAULTS, each) for each in loaded.defaults]
    judged += [(Patch(kind), each) for each in loaded.patches if (kind := kind_of(each.document))]
    for schema, document in judged:
        if not accepts(schema, document.document):
            from reconciler.validation.explain import schema_findings

            yield from schema_findings(schema, document, faults(schema, document.document))


def _without_sequels(findings: list[Diagnostic], loaded: Loaded) -> list[Diagnostic]:
    """Drop what follows from a variable or placeholder that was not replaced, at its place."""
    unresolved = {_spot(each) for each in findings if each.is_error and _is_unresolved(each)}
    unresolved |= loaded.without_room
    if not unresolved:
        return findings
    return [each for each in findings if _is_unresolved(each) or _spot(each) not in unresolved]


def _is_unresolved(finding: Diagnostic) -> bool:
    return finding.code.startswith(("VARIABLE-", "PLACEHOLDER-"))


def _is_of_schema(finding: Diagnostic) -> bool:
    return finding.code.startswith(("SCHEMA-", "MANIFEST-MORE"))


def _spot(finding: Diagnostic) -> object:
    return finding.location and finding.location[:3]


class _Verdict(NamedTuple):
    """The verdict about one manifest.

    Attributes:
        findings: What is wrong or dangerous about it.
        resource: What it declares; None where it does not say which object it is about.
        needs: What not every service takes of it.
    """

    findings: Sequence[Diagnostic]
    resource: Resource | None = None
    needs: Sequence[Need] = ()


def _judge_one(manifest: Manifest, compiled: Compile) -> _Verdict:
    kind = kind_of(manifest.document)
    if kind is None:
        return _Verdict([*_envelope_findings(manifest)])
    if not accepts(kind, manifest.document):
        return _judge_partly(kind, manifest, compiled)
    resource = resource_of(kind, manifest)
    findings = _semantics(resource, manifest, compiled)
    if any(finding.is_error for finding in findings):
        return _Verdict(findings, resource)
    return _Verdict(findings, resource, [*_needs(resource, manifest)])


def _judge_partly(kind: Kind, manifest: Manifest, compiled: Compile) -> _Verdict:
    """Judge a manifest that does not fit its schema: a wrong value hides nothing of the others."""
    from reconciler.validation.explain import schema_findings
    from reconciler.validation.partly import partly_right

    found = faults(kind, manifest.document)
    partly = partly_right(kind, manifest, found)
    findings = [
        *schema_findings(kind, manifest, found),
        *partly.findings(lambda one: _semantics(resource_of(kind, one), one, compiled)),
    ]
    if not (partly.filled and partly.is_named):
        return _Verdict(findings)
    resource = resource_of(kind, partly.filled[0])
    needs = _needs(resource, partly.filled[0])
    return _Verdict(
        [replace(each, ref=resource.ref) for each in findings],
        resource,
        [need for need in needs if not partly.is_wrong(need.use.path)],
    )


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
        metadata.get("active"),
        frozenset(metadata.get("ignore", ())),
    )


def _semantics(resource: Resource, manifest: Manifest, compiled: Compile) -> list[Diagnostic]:
    """Return what is wrong or dangerous about one resource that a schema cannot express."""
    written = manifest.document.get("spec") or {}
    found: list[Found] = []
    if not all(map(is_plain, resource.ref[1:])):
        found += _names(manifest.document["metadata"])
    found += RULES[resource.ref.kind].findings(resource, written, compiled)
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


_SHAPE = "Every manifest needs apiVersion, kind and metadata, and most kinds a spec."


def _envelope_findings(manifest: Manifest) -> Iterator[Diagnostic]:
    """Yield why a document without a known kind is no manifest."""
    document = manifest.document
    if not isinstance(document, dict):
        yield error("MANIFEST-SHAPE", "the document is not a mapping", _SHAPE, manifest.place())
        return
    version = document.get("apiVersion")
    if version != API_VERSION:
        remedy = f"Write apiVersion: {API_VERSION}."
        if version is None:
            summary, place = "the manifest has no apiVersion", manifest.place()
        else:
            summary, place = f"unknown apiVersion {cut(version)}", manifest.place("apiVersion")
        yield error("MANIFEST-API-VERSION", summary, remedy, place)
    write = f"Write kind: {one_of(KIND_NAMED)}."
    if "kind" not in document:
        yield error("MANIFEST-KIND", "the manifest has no kind", write, manifest.place())
        return
    kind = document["kind"]
    if kind in POLICY_KINDS:
        yield error(
            "POLICY-PLACE",
            f"a {kind} stands among the manifests, where it judges nothing",
            "Move it to a folder of its own beside them, and name that folder: --policies DIR, or "
            "policies in reconciler.yaml.",
            manifest.place("kind"),
        )
        return
    meant = nearest(kind, KIND_NAMED) if isinstance(kind, str) else None
    yield error(
        "MANIFEST-KIND",
        f"unknown kind {cut(kind)}" if kind else "the kind is empty",
        f"Did you mean {meant}? {write}" if meant else write,
        manifest.place("kind"),
    )


def _unique_resources(
    resources: Iterable[Resource],
) -> tuple[dict[ResourceRef, Resource], list[Diagnostic]]:
    """Return resources by key, and a finding for each that is declared again."""
    by_key: dict[ResourceRef, Resource] = {}
    findings = []
    for resource in resources:
        first = by_key.setdefault(resource.ref.key, resource)
        if first is not resource:
            findings.append(_declared_twice(first, resource))
    return by_key, findings


def _declared_twice(first: Resource, again: Resource) -> Diagnostic:
    before = first.source.place("metadata", "name")
    if first.ref == again.ref:
        remedy = f"Remove one of the two; the first is at {before}."
    else:
        remedy = f"Names are unique ignoring case; {first.ref} is at {before}. Rename one."
    place = again.source.place("metadata", "name")
    return error("REF-DUPLICATE", f"{again.ref} is declared twice", remedy, place, again.ref)


def _shared_ids(resources: Iterable[Resource]) -> Iterator[Diagnostic]:
    """Yield a finding for each pinned id that two resources claim."""
    claimed: dict[str, Resource] = {}
    for resource in resources:
        if not resource.pinned_id:
            continue
        first = claimed.setdefault(resource.pinned_id, resource)
        if first is not resource:
            before: SourceLocation = first.source.place("metadata", "id")
            yield error(
                "REF-DUPLICATE-ID",
                f"id {resource.pinned_id[:60]} is pinned twice",
                f"An object is one resource; {first.ref} pins the id at {before}.",
                resource.source.place("metadata", "id"),
                resource.ref,
            )


def _scope(resources: Iterable[Resource]) -> tuple[str, ...]:
    """Return the names of the organizations declared or referred to, in their first spelling."""
    names: dict[str, str] = {}
    for organization in dict.fromkeys(resource.ref.organization for resource in resources):
        names.setdefault(fold(organization), organization)
    return tuple(sorted(names.values()))


def undeclared(desired: DesiredState) -> Iterator[Diagnostic]:
    """Yield a finding for each resource that another one needs and no manifest declares.

    Only the service knows whether it holds one: a plan asks it, and leaves this out.
    """
    seen: set[ResourceRef] = set()
    near = near_refs(resource.ref for resource in desired.resources.values())
    for resource in desired.resources.values():
        for ref, path in needs(resource.ref, resource.spec):
            if ref in seen:
                continue
            if ref.key not in desired.resources and ref.key not in seen:
                yield _undeclared(resource, ref, near(ref), *path)
            seen |= {ref, ref.key}


def _undeclared(
    resource: Resource, missing: ResourceRef, meant: str | None, *path: str | int
) -> Diagnostic:
    hint = f"Did you mean {cut(meant)}? Otherwise the" if meant else "The"
    return warning(
        "REF-UNDECLARED",
        f"{missing} is declared nowhere",
        f"{hint} service must hold it already: declare it, or correct the name.",
        resource.source.place(*path),
        resource.ref,
    )
