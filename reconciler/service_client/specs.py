"""Specs as a service answers them, held against what this version knows of each kind.

What it does not know is told apart from what it does: fields that an update sends back as they
are, and values that nobody here can say, so that nothing of either is overwritten unseen. No
models here: every object of a listing comes by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from reconciler.resources import oidc
from reconciler.resources.duration import parse_duration
from reconciler.resources.ref import Kind

FIELDS: Mapping[Kind, Mapping[str, type]] = {
    Kind.ORGANIZATION: {},
    Kind.PROJECT: {},
    Kind.IDP_JWT_CONFIG: dict.fromkeys(
        ("jwtEndpoint", "issuer", "keysEndpoint", "headerName"), str
    ),
    Kind.OIDC_APPLICATION: {
        "redirectUris": list,
        "responseTypes": list,
        "grantTypes": list,
        "appType": str,
        "authMethodType": str,
        "postLogoutRedirectUris": list,
        "version": str,
        "devMode": bool,
        "accessTokenType": str,
        "accessTokenRoleAssertion": bool,
        "idTokenRoleAssertion": bool,
        "idTokenUserinfoAssertion": bool,
        "clockSkew": str,
        "additionalOrigins": list,
        "skipNativeAppSuccessPage": bool,
    },
    Kind.ACTION: {"script": str, "timeout": str, "allowedToFail": bool},
}
WORDS: Mapping[str, frozenset[str]] = {
    "responseTypes": frozenset(get_args(oidc.ResponseType)),
    "grantTypes": frozenset(get_args(oidc.GrantType)),
    "appType": frozenset(get_args(oidc.AppType)),
    "authMethodType": frozenset(get_args(oidc.AuthMethodType)),
    "version": frozenset(get_args(oidc.Version)),
    "accessTokenType": frozenset(get_args(oidc.AccessTokenType)),
}
_DURATIONS = {Kind.OIDC_APPLICATION: "clockSkew", Kind.ACTION: "timeout"}
_HAVE_NO_UPDATE = frozenset({Kind.ORGANIZATION, Kind.PROJECT})


class ReadSpec(NamedTuple):
    """A spec in what is known of it and what is not.

    Attributes:
        carried: Unknown fields that an update sends back.
        uncarried: What an update would erase, in words: unknown fields that nothing sends back,
            and values that no manifest can say.
    """

    spec: Mapping[str, Any]
    carried: Mapping[str, Any]
    uncarried: tuple[str, ...]


def read_spec(kind: Kind, answered: Mapping[str, Any]) -> ReadSpec:
    """Return what a spec says.

    Raises:
        ValueError: a known field is missing or of a wrong type.
    """
    fields = FIELDS[kind]
    for name, wanted in fields.items():
        value = answered.get(name)
        if type(value) is not wanted:
            raise ValueError(f"its {name} is missing or of a wrong type")
        if isinstance(value, list) and not all(type(item) is str for item in value):
            raise ValueError(f"its {name} holds something else than texts")
    duration = _DURATIONS.get(kind)
    if duration is not None:
        parse_duration(answered[duration])
    strange = _strange_words(answered) if kind is Kind.OIDC_APPLICATION else ()
    if len(answered) == len(fields):
        return ReadSpec(answered, {}, strange)
    unknown = {name: value for name, value in answered.items() if name not in fields}
    spec = {name: answered[name] for name in fields}
    if kind in _HAVE_NO_UPDATE:
        return ReadSpec(spec, {}, (*strange, *unknown))
    return ReadSpec(spec, unknown, strange)


def _strange_words(answered: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the values that no manifest can say."""
    strange = []
    for name, words in WORDS.items():
        value = answered[name]
        if not (words.issuperset(value) if isinstance(value, list) else value in words):
            strange.append(f"{name} {value if isinstance(value, str) else ', '.join(value)}")
    return tuple(strange)
