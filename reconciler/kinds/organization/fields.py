"""Organizations have no fields."""

from __future__ import annotations

from reconciler.resources.kinds import KindRow

ROW = KindRow(
    "An organization: a name, and the owner of everything in it. It has no fields.",
    rank=0,
    schema="organization",
    noun="organization",
    plural="organizations",
    renamable=False,
)
