"""Projects, which hold applications."""

from __future__ import annotations

from typing import ClassVar

from reconciler.resources.base import Spec
from reconciler.resources.ref import Kind


class Project(Spec):
    """A project of an organization: a name, and the owner of applications. It has no fields."""

    kind: ClassVar[Kind] = Kind.PROJECT
