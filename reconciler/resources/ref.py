"""What makes a declared resource and a held object the same thing."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kinds of resources, spelt as manifests spell them."""

    ORGANIZATION = "Organization"
    PROJECT = "Project"
    IDP_JWT_CONFIG = "IdpJwtConfig"
    OIDC_APPLICATION = "OidcApplication"
    ACTION = "Action"


# Before Python 3.12 an enum answers for a member ten times as slowly as a module for a name.
ORGANIZATION, PROJECT, PROVIDER, APPLICATION, ACTION = Kind


def fold(name: str) -> str:
    """Return the form in which two names are compared: names are unique ignoring case."""
    return name.casefold()


class ResourceRef(NamedTuple):
    """Kind and names of one resource, as somebody wrote them.

    ``organization`` is always the organization that owns it; an organization owns itself.
    ``project`` is empty for every kind but applications.
    """

    kind: Kind
    organization: str
    project: str
    name: str

    @property
    def key(self) -> ResourceRef:
        """Return the ref under which lookups happen, whatever case the names are in."""
        kind, organization, project, name = self
        return ResourceRef(kind, fold(organization), fold(project), fold(name))

    @property
    def path(self) -> str:
        """Return the names alone, owner first: ``acme/shop/storefront``."""
        if self.kind is Kind.ORGANIZATION:
            return self.name
        return "/".join(part for part in self[1:] if part)

    @property
    def address(self) -> str:
        """Return how a command line names it: ``OidcApplication/acme/shop/storefront``."""
        return f"{self.kind.value}/{self.path}"

    def __str__(self) -> str:
        """Return kind and names: ``OidcApplication acme/shop/storefront``."""
        return f"{self.kind.value} {self.path}"


def organization_ref(name: str) -> ResourceRef:
    """Return the ref of an organization."""
    return ResourceRef(ORGANIZATION, name, "", name)


def project_ref(organization: str, name: str) -> ResourceRef:
    """Return the ref of a project."""
    return ResourceRef(PROJECT, organization, "", name)


def owner_of(ref: ResourceRef) -> ResourceRef | None:
    """Return the resource that must be held before this one can be: its project or organization."""
    if ref.kind is ORGANIZATION:
        return None
    if ref.kind is APPLICATION:
        return project_ref(ref.organization, ref.project)
    return organization_ref(ref.organization)
