"""OIDC applications (source 2.3 without the name, which is the resource's own)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from reconciler.resources.base import Spec, Text
from reconciler.resources.duration import CLOCK_SKEW_PATTERN
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.oidc import (
    AccessTokenType,
    AppType,
    AuthMethodType,
    GrantType,
    ResponseType,
    Version,
)
from reconciler.resources.ref import Kind

_DEFAULTS = DEFAULTS[Kind.OIDC_APPLICATION]


def _default(name: str) -> Any:
    value = _DEFAULTS[name]
    return tuple(value) if isinstance(value, list) else value


class OidcApplication(Spec):
    """The configuration of an OIDC application. The client id is made by the service.

    An update sends every field; a list that is left out is empty afterwards.
    """

    kind: ClassVar[Kind] = Kind.OIDC_APPLICATION

    redirect_uris: tuple[Text, ...] = Field(
        _default("redirectUris"),
        description="Callback URIs of the authorization request, where the code or tokens go.",
        examples=[["https://shop.example.com/callback"]],
    )
    response_types: tuple[ResponseType, ...] = Field(
        _default("responseTypes"),
        description=(
            "Whether a code, an id_token token or just an id_token is returned. "
            "An empty list means the default."
        ),
    )
    grant_types: tuple[GrantType, ...] = Field(
        _default("grantTypes"),
        description=(
            "The flows by which the application gains access. An empty list means the default."
        ),
    )
    app_type: AppType = Field(
        _default("appType"), description="Paradigm of the application: web, browser or native."
    )
    auth_method_type: AuthMethodType = Field(
        _default("authMethodType"),
        description=(
            "How the application passes its credentials. BASIC and POST come with a client secret."
        ),
    )
    post_logout_redirect_uris: tuple[Text, ...] = Field(
        _default("postLogoutRedirectUris"),
        description="URIs the service redirects to after a successful logout.",
        examples=[["https://shop.example.com/"]],
    )
    version: Version = Field(_default("version"), description="OIDC version.")
    dev_mode: bool = Field(
        _default("devMode"),
        description="Development mode: some checks of the OIDC specification are not performed.",
    )
    access_token_type: AccessTokenType = Field(
        _default("accessTokenType"), description="Type of the access token the service issues."
    )
    access_token_role_assertion: bool = Field(
        _default("accessTokenRoleAssertion"),
        description=(
            "Adds roles to the claims of the access token (of type JWT only) even if no scope "
            "asks for them."
        ),
    )
    id_token_role_assertion: bool = Field(
        _default("idTokenRoleAssertion"),
        description="Adds roles to the claims of the id token even if no scope asks for them.",
    )
    id_token_userinfo_assertion: bool = Field(
        _default("idTokenUserinfoAssertion"),
        description=(
            "Adds the claims of the profile, email, address and phone scopes to the id token "
            "even if an access token is issued. This violates the OIDC specification."
        ),
    )
    clock_skew: Annotated[str, Field(pattern=CLOCK_SKEW_PATTERN)] = Field(
        _default("clockSkew"),
        description=(
            "Tolerated difference between clocks, 0s to 5s: decimal seconds with s. It is added "
            "to the exp claim and subtracted from iat, auth_time and nbf."
        ),
        examples=["1s", "1.5s"],
    )
    additional_origins: tuple[Text, ...] = Field(
        _default("additionalOrigins"),
        description=(
            "Origins, other than those of the redirect URIs, from which the API can be used: "
            "scheme, host and port only."
        ),
        examples=[["https://app.example.com"]],
    )
    skip_native_app_success_page: bool = Field(
        _default("skipNativeAppSuccessPage"),
        description=(
            "Skips the page that tells of a successful login on native applications and goes "
            "straight to the callback."
        ),
    )
