"""The rules that span several fields of an OIDC application.

A service refuses a write by ``oidc_problems``. It reports ``compliance_problems`` on create and on
read, and refuses nothing for them (wire facts 2.1 and 2.2). The reconciler judges by both before
anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from reconciler.resources.fields import Spec
from reconciler.resources.origin import is_loopback_host, parse_origin

WITH_SECRET = frozenset({"OIDC_AUTH_METHOD_TYPE_BASIC", "OIDC_AUTH_METHOD_TYPE_POST"})

_CODE = "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"
_IMPLICIT = "OIDC_GRANT_TYPE_IMPLICIT"
_REFRESH = "OIDC_GRANT_TYPE_REFRESH_TOKEN"
_DEVICE = "OIDC_GRANT_TYPE_DEVICE_CODE"
_COVERING_GRANTS: Mapping[str, tuple[str, ...]] = {
    "OIDC_RESPONSE_TYPE_CODE": (_CODE, _DEVICE),
    "OIDC_RESPONSE_TYPE_ID_TOKEN": (_IMPLICIT,),
    "OIDC_RESPONSE_TYPE_ID_TOKEN_TOKEN": (_IMPLICIT,),
}


class FieldProblem(NamedTuple):
    """A fault of a field: its name, the position in its list, and a sentence."""

    field: str
    position: int
    message: str


def has_client_secret(spec: Spec) -> bool:
    """Return whether an application that is configured so signs in with a client secret."""
    return spec["authMethodType"] in WITH_SECRET


def oidc_problems(spec: Spec) -> list[FieldProblem]:
    """Return why a service refuses these fields, in normal form (wire facts 2.2, domain check)."""
    problems = []
    for index, response_type in enumerate(spec["responseTypes"]):
        wanted = _COVERING_GRANTS[response_type]
        if set(wanted).isdisjoint(spec["grantTypes"]):
            message = f"{response_type} needs {' or '.join(wanted)} among grantTypes"
            problems.append(FieldProblem("responseTypes", index, message))
    for index, origin in enumerate(spec["additionalOrigins"]):
        try:
            parse_origin(origin)
        except ValueError as error:
            problems.append(FieldProblem("additionalOrigins", index, str(error)))
    return problems


PREFIX = "Application.OIDC."
NOTE = PREFIX + "V1.NotAllCombinationsAreAllowed"

MESSAGES: Mapping[str, str] = {
    PREFIX + "V1.NotCompliant": "This configuration breaks rules of OIDC 1.0.",
    PREFIX + "V1.NoRedirectUris": "At least one redirect URI is needed for this grant type.",
    PREFIX + "V1.GrantType.Refresh.NoAuthCode": (
        "The refresh token grant only works together with the authorization code grant."
    ),
    PREFIX + "V1.Code.RedirectUris.HttpOnlyForWeb": (
        "With the authorization code grant, only web applications may use http redirect URIs."
    ),
    PREFIX + "V1.Code.RedirectUris.CustomOnlyForNative": (
        "With the authorization code grant, only native applications may use custom schemes."
    ),
    PREFIX + "V1.Native.RedirectUris.MustBeHttpLocalhost": (
        "An http redirect URI of a native application must point at localhost."
    ),
    PREFIX + "V1.Implicit.RedirectUris.HttpNotAllowed": (
        "The implicit grant does not allow http redirect URIs."
    ),
    PREFIX + "V1.Implicit.RedirectUris.CustomNotAllowed": (
        "The implicit grant does not allow redirect URIs with a custom scheme."
    ),
    PREFIX + "V1.Native.AuthMethodType.NotNone": (
        "A native application cannot keep a secret: its auth method should be NONE."
    ),
    PREFIX + "V1.UserAgent.AuthMethodType.NotNone": (
        "An application in a browser cannot keep a secret: its auth method should be NONE."
    ),
    NOTE: "Code and implicit are combined; not every redirect URI works with both.",
}

_NATIVE = "OIDC_APP_TYPE_NATIVE"
_USER_AGENT = "OIDC_APP_TYPE_USER_AGENT"

# Applications that cannot keep a secret, with the rule that one of them breaks by having any.
_WITHOUT_SECRET = {
    _NATIVE: "V1.Native.AuthMethodType.NotNone",
    _USER_AGENT: "V1.UserAgent.AuthMethodType.NotNone",
}


def compliance_problems(spec: Spec) -> tuple[str, ...]:
    """Return the keys of the rules that a spec in normal form breaks, each once."""
    uris: Sequence[str] = spec["redirectUris"]
    grants: Sequence[str] = spec["grantTypes"]
    found: list[str] = []
    if _DEVICE not in grants and _REFRESH in grants and _CODE not in grants:
        found.append("V1.GrantType.Refresh.NoAuthCode")
    if not uris and (_DEVICE not in grants or _CODE in grants):
        found.insert(0, "V1.NoRedirectUris")
    if not all(uri.startswith("https://") for uri in uris):
        found += _uri_problems(uris, grants, spec["appType"])
    rule = _WITHOUT_SECRET.get(spec["appType"])
    if rule and spec["authMethodType"] != "OIDC_AUTH_METHOD_TYPE_NONE":
        found.append(rule)
    keys = [PREFIX + key for key in found]
    return (PREFIX + "V1.NotCompliant", *keys) if is_none_compliant(keys) else tuple(keys)


def is_none_compliant(problems: Sequence[str]) -> bool:
    """Return whether problems make a configuration non-compliant: any but the note."""
    return any(key != NOTE for key in problems)


def _uri_problems(uris: Sequence[str], grants: Sequence[str], app_type: str) -> list[str]:
    code, implicit, native = _CODE in grants, _IMPLICIT in grants, app_type == _NATIVE
    http = [*filter(_is_http, uris)]
    custom = any(map(_is_custom, uris))
    rules = {
        "V1.Implicit.RedirectUris.CustomNotAllowed": implicit and custom and not (code and native),
        "V1.Code.RedirectUris.HttpOnlyForWeb": code and http and app_type == _USER_AGENT,
        "V1.Native.RedirectUris.MustBeHttpLocalhost": (
            (code or implicit) and native and not all(map(_is_loopback, http))
        ),
        "V1.Implicit.RedirectUris.HttpNotAllowed": implicit and not code and http and not native,
        "V1.Code.RedirectUris.CustomOnlyForNative": (
            code and not implicit and custom and not native
        ),
    }
    found = [key for key, is_broken in rules.items() if is_broken]
    if code and implicit and not found:
        found.append("V1.NotAllCombinationsAreAllowed")
    return found


def breaking_uri(key: str, uris: Sequence[str]) -> int | None:
    """Return the position of the first redirect URI that breaks a rule; None if it is about all."""
    _, _, rule = key.rpartition("RedirectUris.")
    is_broken_by = _BROKEN_BY.get(rule)
    if is_broken_by is None:
        return None
    return next((at for at, uri in enumerate(uris) if is_broken_by(uri)), None)


def _is_http(uri: str) -> bool:
    return uri.startswith("http://")


def _is_custom(uri: str) -> bool:
    return not uri.startswith(("http://", "https://"))


def _is_http_elsewhere(uri: str) -> bool:
    return _is_http(uri) and not _is_loopback(uri)


_BROKEN_BY: Mapping[str, Callable[[str], bool]] = {
    "HttpOnlyForWeb": _is_http,
    "HttpNotAllowed": _is_http,
    "MustBeHttpLocalhost": _is_http_elsewhere,
    "CustomOnlyForNative": _is_custom,
    "CustomNotAllowed": _is_custom,
}


def _is_loopback(uri: str) -> bool:
    try:
        host = urlsplit(uri).hostname or ""
    except ValueError:
        return False
    return is_loopback_host(host)
