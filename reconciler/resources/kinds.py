"""The registry of kinds: what differs from kind to kind, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.resources.ref import Kind

if TYPE_CHECKING:
    from reconciler.resources.base import Spec


API_VERSION = "reconciler/v1"


@dataclass(frozen=True, slots=True)
class KindRow:
    """Facts about a kind that every part of the program needs.

    Attributes:
        rank: Changes of a lower rank are applied first; owners come before what they own.
        schema: The name of its JSON Schema, without ``.schema.json``.
        plural: For sentences and folders.
        owner: The metadata that names its owner, besides the name itself.
        renamable: Whether ``metadata.id`` can rename an object of this kind.
    """

    rank: int
    schema: str
    plural: str
    owner: tuple[str, ...]
    renamable: bool


KINDS: Mapping[Kind, KindRow] = {
    Kind.ORGANIZATION: KindRow(0, "organization", "organizations", (), renamable=False),
    Kind.PROJECT: KindRow(1, "project", "projects", ("organization",), renamable=False),
    Kind.IDP_JWT_CONFIG: KindRow(
        2, "idp-jwt-config", "identity providers", ("organization",), renamable=True
    ),
    Kind.OIDC_APPLICATION: KindRow(
        2, "oidc-application", "applications", ("organization", "project"), renamable=True
    ),
    Kind.ACTION: KindRow(2, "action", "actions", ("organization",), renamable=True),
}


def model_of(kind: Kind) -> type[Spec]:
    """Return the model of a kind's spec. Models load pydantic, so they are loaded on demand."""
    from reconciler.resources.action import Action
    from reconciler.resources.idp_jwt_config import IdpJwtConfig
    from reconciler.resources.oidc_application import OidcApplication
    from reconciler.resources.organization import Organization
    from reconciler.resources.project import Project

    models: tuple[type[Spec], ...] = (
        Organization,
        Project,
        IdpJwtConfig,
        OidcApplication,
        Action,
    )
    return next(model for model in models if model.kind is kind)
