"""Normal forms: two specs are equal when they mean the same.

A normal form is a plain dictionary with every field of the kind, by its manifest name: defaults
filled in, durations in their shortest text, response and grant types as sorted sets. Lists of
URIs keep their order, which can matter. This module is on the path of every unchanged manifest
and so imports no models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.resources.duration import normal_duration
from reconciler.resources.ref import APPLICATION, Kind

DEFAULTS: Mapping[Kind, Mapping[str, Any]] = {
    Kind.ORGANIZATION: {},
    Kind.PROJECT: {},
    Kind.IDP_JWT_CONFIG: {},
    Kind.OIDC_APPLICATION: {
        "redirectUris": [],
        "responseTypes": ["OIDC_RESPONSE_TYPE_CODE"],
        "grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE"],
        "appType": "OIDC_APP_TYPE_WEB",
        "authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC",
        "postLogoutRedirectUris": [],
        "version": "OIDC_VERSION_1_0",
        "devMode": False,
        "accessTokenType": "OIDC_TOKEN_TYPE_BEARER",
        "accessTokenRoleAssertion": False,
        "idTokenRoleAssertion": False,
        "idTokenUserinfoAssertion": False,
        "clockSkew": "0s",
        "additionalOrigins": [],
        "skipNativeAppSuccessPage": False,
    },
    Kind.ACTION: {"timeout": "20s", "allowedToFail": False},
}

_DURATIONS = {Kind.OIDC_APPLICATION: "clockSkew", Kind.ACTION: "timeout"}
_SETS = ("responseTypes", "grantTypes")


def normal_form(kind: Kind, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the normal form of fields that are valid for their kind."""
    normal = {**DEFAULTS[kind], **fields}
    duration = _DURATIONS.get(kind)
    if duration is not None:
        normal[duration] = normal_duration(normal[duration])
    if kind is APPLICATION:
        for name in _SETS:
            values = normal[name]
            normal[name] = (
                sorted(set(values)) if len(values) > 1 else values or DEFAULTS[kind][name]
            )
    return normal
