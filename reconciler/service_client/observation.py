"""Answers as observed state: what the service's listing of objects says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.resources.ref import Kind, ResourceRef
from reconciler.state import ObservedObject


def observed_objects(listed: Sequence[Mapping[str, Any]]) -> Iterator[ObservedObject]:
    """Yield the objects of one organization from its whole listing."""
    names = {
        fields["id"]: fields["name"]
        for fields in listed
        if fields["kind"] in {Kind.ORGANIZATION, Kind.PROJECT}
    }
    for fields in listed:
        details = fields["details"]
        yield ObservedObject(
            ref=ResourceRef(
                _KINDS[fields["kind"]],
                names[fields["organizationId"]],
                names[fields["projectId"]] if fields["projectId"] else "",
                fields["name"],
            ),
            id=fields["id"],
            sequence=int(details["sequence"]),
            spec=fields["spec"],
            organization_id=fields["organizationId"],
            project_id=fields["projectId"],
            client_id=fields["clientId"],
            trees=frozenset(fields["trees"]),
            changed_by=fields["changedBy"],
            changed_at=details["changeDate"],
            prevent_delete=fields.get("preventDelete"),
        )


_KINDS = {kind.value: kind for kind in Kind}
