"""Addresses of the operations on organizations."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT

ADDRESSES = {
    "AddOrg": (f"POST {MANAGEMENT}/orgs",),
    "ListOrgs": ("POST /admin/v1/orgs/_search",),
    "GetMyOrg": (f"GET {MANAGEMENT}/orgs/me",),
}
