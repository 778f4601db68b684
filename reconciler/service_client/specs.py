"""Specs as a service answers them, held against what this version knows of each kind.

What it does not know is told apart from what it does: fields that an update sends back as they
are, and values that nobody here can say, so that nothing of either is overwritten unseen. No
models here: every object of a listing comes by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from reconciler.resources import oidc
from reconciler.resources.duration import normal_duration
from reconciler.resources.ref import APPLICATION, Kind

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
# What a usual answer looks like, to be compared at once: names and types, in their order.
_NAMES = {kind: [*fields] for kind, fields in FIELDS.items()}
_TYPES = {kind: [*fields.values()] for kind, fields in FIELDS.items()}
_LISTS = {
    kind: [name for name, type_ in fields.items() if type_ is list]
    for kind, fields in FIELDS.items()
}
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
    if [*map(type, answered.values())] != _TYPES[kind] or [*answered] != _NAMES[kind]:
        _check_types(fields, answered)
    for name in _LISTS[kind]:
        for item in answered[name]:
            if type(item) is not str:
                raise ValueError(f"its {name} holds something other than texts")
    duration = _DURATIONS.get(kind)
    if duration is not None:
        normal_duration(answered[duration])
    strange = _strange_words(answered) if kind is APPLICATION else ()
    if len(answered) == len(fields):
        return ReadSpec(answered, {}, strange)
    unknown = {name: value for name, value in answered.items() if name not in fields}
    spec = {name: answered[name] for name in fields}
    if kind in _HAVE_NO_UPDATE:
        return ReadSpec(spec, {}, (*strange, *unknown))
    return ReadSpec(spec, unknown, strange)


def _check_types(fields: Mapping[str, type], answered: Mapping[str, Any]) -> None:
    for name, wanted in fields.items():
        if type(answered.get(name)) is not wanted:
            raise ValueError(f"its {name} is missing or of a wrong type")


def _strange_words(answered: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the values that no manifest can say."""
    strange: tuple[str, ...] = ()
    for name, words in WORDS.items():
        value = answered[name]
        if type(value) is str:
            if value not in words:
                strange = (*strange, f"{name} {value}")
        elif not words.issuperset(value):
            strange = (*strange, f"{name} {', '.join(value)}")
    return strange
