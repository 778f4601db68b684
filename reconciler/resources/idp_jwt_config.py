"""The JWT configuration of an identity provider (source 2.2)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from reconciler.resources.base import NO_NUL, Spec
from reconciler.resources.ref import Kind

Endpoint = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_NUL)]


class IdpJwtConfig(Spec):
    """Settings by which the service reads and verifies the JWTs of one identity provider.

    An update sends the whole configuration, and a field sent empty is empty afterwards. So no
    field has a default, not even ``headerName``: a manifest that leaves it out must fail, not
    silently clear what the service holds.
    """

    kind: ClassVar[Kind] = Kind.IDP_JWT_CONFIG

    jwt_endpoint: Endpoint = Field(
        description="Endpoint from which the JWT can be extracted.",
        examples=["https://login.partner.example.com/jwt"],
    )
    issuer: Endpoint = Field(
        description="Issuer that the JWT must name.",
        examples=["https://login.partner.example.com"],
    )
    keys_endpoint: Endpoint = Field(
        description="Endpoint of the keys (JWK) that sign the JWT.",
        examples=["https://login.partner.example.com/keys"],
    )
    header_name: Annotated[str, Field(max_length=200, pattern=NO_NUL)] = Field(
        description="Header in which the JWT is sent; empty means `authorization`.",
        examples=["authorization", "x-partner-token"],
    )
