"""Organizations, which own everything else."""

from __future__ import annotations

from typing import ClassVar

from reconciler.resources.base import Spec
from reconciler.resources.ref import Kind


class Organization(Spec):
    """An organization: a name, and the owner of everything in it. It has no fields."""

    kind: ClassVar[Kind] = Kind.ORGANIZATION
