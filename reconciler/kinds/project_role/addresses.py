"""Addresses of the operations on the roles of projects."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT

_ROLES = f"{MANAGEMENT}/projects/{{projectId}}/roles"
_ROLE = f"{_ROLES}/{{roleKey}}"

# A key may have slashes, and any other character.
REST = frozenset({"roleKey"})

ADDRESSES = {
    "ListProjectRoles": (f"POST {_ROLES}/_search",),
    "AddProjectRole": (f"POST {_ROLES}",),
    "UpdateProjectRole": (f"PUT {_ROLE}",),
    "RemoveProjectRole": (f"DELETE {_ROLE}",),
}
