"""Addresses of the operations on projects."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT

_PROJECTS = f"{MANAGEMENT}/projects"

ADDRESSES = {
    "AddProject": (f"POST {_PROJECTS}",),
    "ListProjects": (f"POST {_PROJECTS}/_search",),
    "GetProjectByID": (f"GET {_PROJECTS}/{{id}}",),
    "UpdateProject": (f"PUT {_PROJECTS}/{{id}}",),
    "DeactivateProject": (f"POST {_PROJECTS}/{{id}}/_deactivate",),
    "ReactivateProject": (f"POST {_PROJECTS}/{{id}}/_reactivate",),
}
