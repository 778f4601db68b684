"""Organizations have no fields."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT
from reconciler.resources.kinds import KindRow

ROW = KindRow(
    "An organization: a name, and the owner of everything in it. It has no fields.",
    rank=0,
    schema="organization",
    noun="organization",
    plural="organizations",
    renamable=False,
    addresses={
        "AddOrg": (f"POST {MANAGEMENT}/orgs",),
        "ListOrgs": ("POST /admin/v1/orgs/_search",),
        "GetMyOrg": (f"GET {MANAGEMENT}/orgs/me",),
    },
)
