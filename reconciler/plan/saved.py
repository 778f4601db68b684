"""JSON forms of refs, resources, objects and findings, for the files of plans and snapshots.

What is written is read back as the same value. Everything that is read is checked, field by
field: a file can come from anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.diagnostics import Diagnostic, Severity, SourceLocation
from reconciler.resources.normal import TYPES
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.resources.strict_json import Fields, JsonError
from reconciler.state import ObservedObject, OwedSecret, Resource

_KINDS = {kind.value: kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class SavedSource:
    """The place of a manifest, as it was when it was read."""

    location: SourceLocation

    def place(self, *path: str | int) -> SourceLocation:
        """Return the place of the manifest: those of its values were not kept."""
        return self.location


def ref_as_list(ref: ResourceRef) -> list[str]:
    """Return a ref in short form."""
    return [ref.kind.value, *ref[1:]]


def read_ref(value: Any) -> ResourceRef:
    """Return the ref of a short form."""
    if not isinstance(value, list) or not all(type(part) is str for part in value):
        raise JsonError("has a ref that is not a list of texts")
    if len(value) != len(ResourceRef._fields) or value[0] not in _KINDS:
        raise JsonError("has a ref of an unknown kind")
    return ResourceRef(_KINDS[value[0]], *value[1:])


def location_as_list(location: SourceLocation | None) -> list[Any]:
    """Return a place in short form; an empty list for no place."""
    return list(location) if location else []


def read_location(value: Any) -> SourceLocation | None:
    """Return the place of a short form."""
    if value == []:
        return None
    if isinstance(value, list) and [type(part) for part in value] == [str, int, int]:
        return SourceLocation(*value)
    raise JsonError("has an invalid place")


def resource_as_json(resource: Resource) -> dict[str, Any]:
    """Return a resource, and where its manifest begins."""
    return {
        "ref": ref_as_list(resource.ref),
        "spec": resource.spec,
        "written": sorted(resource.written),
        "place": location_as_list(resource.source.place()),
        "pinned_id": resource.pinned_id,
        "prevent_delete": resource.prevent_delete,
        "critical": resource.critical,
    }


def read_resource(value: Any) -> Resource:
    """Return a resource as it was kept."""
    fields = Fields(value)
    ref = fields.one("ref", read_ref)
    resource = Resource(
        ref,
        read_spec(ref.kind, fields.plain("spec"), whole=True),
        frozenset(fields.texts("written")),
        SavedSource(fields.one("place", read_location) or SourceLocation("")),
        fields.text("pinned_id"),
        fields.flag("prevent_delete"),
        fields.flag("critical"),
    )
    fields.end()
    return resource


def object_as_json(held: ObservedObject) -> dict[str, Any]:
    """Return an object as it was observed; nothing in it is secret."""
    return {
        "ref": ref_as_list(held.ref),
        "id": held.id,
        "sequence": held.sequence,
        "spec": held.spec,
        "organization_id": held.organization_id,
        "project_id": held.project_id,
        "client_id": held.client_id,
        "trees": sorted(held.trees),
        "changed_by": held.changed_by,
        "changed_at": held.changed_at,
        "changed_in": held.changed_in,
        "changed_for": held.changed_for,
        "prevent_delete": held.prevent_delete,
        "critical": held.critical,
        "carried": held.carried,
        "uncarried": list(held.uncarried),
        "owner": held.owner,
        "has_secret": held.has_secret,
    }


def read_object_held(value: Any) -> ObservedObject:
    """Return an object as it was kept."""
    fields = Fields(value)
    ref = fields.one("ref", read_ref)
    held = ObservedObject(
        ref=ref,
        id=fields.text("id"),
        sequence=fields.number("sequence"),
        spec=read_spec(ref.kind, fields.plain("spec"), whole=False),
        organization_id=fields.text("organization_id"),
        project_id=fields.text("project_id"),
        client_id=fields.text("client_id"),
        trees=frozenset(fields.texts("trees")),
        changed_by=fields.text("changed_by"),
        changed_at=fields.text("changed_at"),
        changed_in=fields.text("changed_in"),
        changed_for=fields.text("changed_for"),
        prevent_delete=fields.flag_or_none("prevent_delete"),
        critical=fields.flag_or_none("critical"),
        carried=fields.plain("carried"),
        uncarried=fields.texts("uncarried"),
        owner=fields.text_or_none("owner"),
        has_secret=fields.flag_or_none("has_secret"),
    )
    fields.end()
    return held


def owed_as_json(secret: OwedSecret) -> dict[str, Any]:
    """Return that a secret is owed; the secret itself is never known here."""
    return {
        "ref": ref_as_list(secret.ref),
        "id": secret.id,
        "client_id": secret.client_id,
        "made_at": secret.made_at,
        "since": secret.since,
        "by": secret.by,
        "tree": secret.tree,
        "run": secret.run,
        "lost": secret.lost,
    }


def read_owed(value: Any) -> OwedSecret:
    """Return an owed secret as it was kept."""
    fields = Fields(value)
    secret = OwedSecret(
        ref=fields.one("ref", read_ref),
        id=fields.text("id"),
        client_id=fields.text("client_id"),
        made_at=fields.number("made_at"),
        since=fields.text("since"),
        by=fields.text("by"),
        tree=fields.text("tree"),
        run=fields.text("run"),
        lost=fields.flag("lost"),
    )
    fields.end()
    return secret


def finding_as_json(finding: Diagnostic) -> dict[str, Any]:
    """Return a finding."""
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "summary": finding.summary,
        "remedy": finding.remedy,
        "place": location_as_list(finding.location),
        "ref": ref_as_list(finding.ref) if finding.ref else [],
    }


def read_finding(value: Any) -> Diagnostic:
    """Return a finding as it was kept."""
    fields = Fields(value)
    severity = fields.text("severity")
    if severity not in set(Severity):
        raise JsonError("has a finding of an unknown severity")
    finding = Diagnostic(
        Severity(severity),
        fields.text("code"),
        fields.text("summary"),
        fields.text("remedy"),
        fields.one("place", read_location),
        fields.one("ref", lambda ref: read_ref(ref) if ref != [] else None),
    )
    fields.end()
    return finding


def read_spec(kind: Kind, spec: Mapping[str, Any], *, whole: bool) -> Mapping[str, Any]:
    """Accept a spec whose fields are of the kind and of the right types.

    ``whole`` asks for every field: that of a resource has them, whatever a service holds.
    """
    known = TYPES[kind]
    if not spec.keys() <= known.keys() or (whole and len(spec) != len(known)):
        raise JsonError(f"has a spec that does not fit {kind.value}")
    for name, value in spec.items():
        texts = type(value) is list and all(type(item) is str for item in value)
        if type(value) is not known[name] or (type(value) is list and not texts):
            raise JsonError(f"has a spec whose {name} is of a wrong type")
    return spec
