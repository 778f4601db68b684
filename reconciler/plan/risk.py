"""Dangers of a change, as classes with stable names: a reviewer reads them first.

A risk is no verdict. It says of a change that is about to be made what may become weaker, go
elsewhere or stop. The rules are a table, most dangerous first, and each is a pure question about
a spec before and after. The names are part of the interface: policies and labels rely on them.
Problems that the service itself will report of an application are here, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from reconciler.plan.kept_lists import spec_after
from reconciler.plan.model import Change, Create, Delete, lacks_secret
from reconciler.resources.fields import Spec
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.oidc import compliance_problems
from reconciler.resources.origin import is_loopback_host
from reconciler.resources.ref import Kind

Value: TypeAlias = str | bool | list[str] | None
Test: TypeAlias = Callable[[Value, Value], bool]


class Risk(NamedTuple):
    """One risk of one change: its stable name, the field it comes from, what it means."""

    name: str
    field: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Rule:
    """The condition under which a change of a field is a risk.

    Attributes:
        test: Asked with the field's value before and after.
        also_new: Whether it is asked of a create, too, against the kind's defaults.
    """

    name: str
    kind: Kind
    field: str
    test: Test
    sentence: str
    also_new: bool = False


_STRENGTH: Mapping[object, int] = {
    "OIDC_AUTH_METHOD_TYPE_NONE": 0,
    "OIDC_AUTH_METHOD_TYPE_POST": 1,
    "OIDC_AUTH_METHOD_TYPE_BASIC": 2,
    "OIDC_AUTH_METHOD_TYPE_PRIVATE_KEY_JWT": 3,
}


def _is_weaker(before: Value, after: Value) -> bool:
    return _STRENGTH.get(after, 0) < _STRENGTH.get(before, 0)


def _is_stronger(before: Value, after: Value) -> bool:
    return _STRENGTH.get(after, 0) > _STRENGTH.get(before, 0)


def _differs(before: Value, after: Value) -> bool:
    return bool(before != after)


def _turned_on(before: Value, after: Value) -> bool:
    return bool(after) and not before


def _turned_off(before: Value, after: Value) -> bool:
    return bool(before) and not after


def _gains(value: str) -> Test:
    def test(before: Value, after: Value) -> bool:
        return value in _items(after) and value not in _items(before)

    return test


def _loses_any(before: Value, after: Value) -> bool:
    return not set(_items(before)) <= set(_items(after))


def _gains_any(before: Value, after: Value) -> bool:
    return not set(_items(after)) <= set(_items(before))


def _gains_authority(before: Value, after: Value) -> bool:
    known = {authority_of(uri) for uri in _items(before)}
    return any(authority_of(uri) not in known for uri in _items(after))


def _gains_plain_http(before: Value, after: Value) -> bool:
    return any(is_plain_http(uri) for uri in _items(after) if uri not in _items(before))


def _items(value: Value) -> Sequence[str]:
    if isinstance(value, str):
        return (value,)
    return value if isinstance(value, list) else ()


_APP, _IDP, _ACTION = Kind.OIDC_APPLICATION, Kind.IDP_JWT_CONFIG, Kind.ACTION

RULES: tuple[Rule, ...] = (
    Rule(
        "credential-weaker", _APP, "authMethodType", _is_weaker,
        "the application proves its identity by a weaker method, or not at all",
    ),
    Rule(
        "implicit-grant-added", _APP, "grantTypes", _gains("OIDC_GRANT_TYPE_IMPLICIT"),
        "tokens are answered in the address of the browser, where history and logs keep them",
        also_new=True,
    ),
    Rule(
        "redirect-host-added", _APP, "redirectUris", _gains_authority,
        "codes and tokens may go to a host they did not go to before",
    ),
    Rule(
        "keys-moved", _IDP, "keysEndpoint", _differs,
        "the server at that address decides which tokens are genuine",
    ),
    Rule(
        "issuer-moved", _IDP, "issuer", _differs,
        "tokens of the present issuer are refused, those of another one are accepted",
    ),
    Rule(
        "audience-unchecked", _IDP, "audience", _turned_off,
        "tokens that the issuer made for other applications are accepted", also_new=True,
    ),
    Rule(
        "jwt-endpoint-moved", _IDP, "jwtEndpoint", _differs,
        "users are sent to another place to sign in",
    ),
    Rule(
        "header-moved", _IDP, "headerName", _differs,
        "tokens in the present header are no longer found",
    ),
    Rule(
        "dev-mode-on", _APP, "devMode", _turned_on,
        "checks of the OIDC specification are not performed", also_new=True,
    ),
    *(
        Rule(
            "plain-http", kind, field, _gains_plain_http,
            "it is sent unencrypted, to be read and changed by anyone on the way", also_new=True,
        )
        for kind, field in (
            (_APP, "redirectUris"), (_APP, "postLogoutRedirectUris"), (_APP, "additionalOrigins"),
            (_IDP, "keysEndpoint"), (_IDP, "issuer"), (_IDP, "jwtEndpoint"),
        )
    ),
    Rule(
        "script-changed", _ACTION, "script", _differs,
        "other code runs while people sign in",
    ),
    Rule(
        "failure-allowed", _ACTION, "allowedToFail", _turned_on,
        "a check that fails no longer stops anything",
    ),
    Rule(
        "failure-stops", _ACTION, "allowedToFail", _turned_off,
        "if this script fails, what called it now fails, too",
    ),
    Rule(
        "userinfo-assertion-on", _APP, "idTokenUserinfoAssertion", _turned_on,
        "profile, email and phone are in every id token, against the OIDC specification",
        also_new=True,
    ),
    Rule(
        "device-grant-added", _APP, "grantTypes", _gains("OIDC_GRANT_TYPE_DEVICE_CODE"),
        "a sign-in on one device can be approved on another, which phishing can exploit",
    ),
    Rule(
        "origin-added", _APP, "additionalOrigins", _gains_any,
        "pages of another origin may call the API",
    ),
    Rule(
        "logout-host-added", _APP, "postLogoutRedirectUris", _gains_authority,
        "browsers may be sent to a host they were not sent to before",
    ),
    *(
        Rule(
            "role-assertion-off", _APP, field, _turned_off,
            "the roles of users are no longer in the token: what relies on them refuses access",
        )
        for field in ("accessTokenRoleAssertion", "idTokenRoleAssertion")
    ),
    Rule(
        "app-type-changed", _APP, "appType", _differs,
        "other rules apply to its redirect URIs and its secret; what is deployed may be refused",
    ),
    Rule(
        "credential-changed", _APP, "authMethodType", _is_stronger,
        "what is deployed must sign in another way, or is refused",
    ),
    Rule(
        "token-type-changed", _APP, "accessTokenType", _differs,
        "an API that expects the present type refuses the tokens",
    ),
    Rule(
        "grant-removed", _APP, "grantTypes", _loses_any,
        "what is deployed and still uses that grant is refused",
    ),
    Rule(
        "response-removed", _APP, "responseTypes", _loses_any,
        "what is deployed and still asks for that response is refused",
    ),
    Rule(
        "redirect-removed", _APP, "redirectUris", _loses_any,
        "sign-ins that come back there fail",
    ),
    Rule(
        "origin-removed", _APP, "additionalOrigins", _loses_any,
        "pages of that origin can no longer call the API",
    ),
    Rule(
        "logout-removed", _APP, "postLogoutRedirectUris", _loses_any,
        "sign-outs that come back there fail",
    ),
)  # fmt: skip

PROTECTION_LIFTED = "protection-lifted"
CREDENTIAL_REPLACED = "secret-replaced"
_LIFTED = "a protection that was asked for is taken away"
_REPLACED = "the present secret ends at once: what is deployed with it is refused"

DELETED: Mapping[Kind, Risk] = {
    _APP: Risk("client-id-lost", "", "its client id and secret end for good"),
    _IDP: Risk("provider-removed", "", "users who sign in through it are locked out"),
    _ACTION: Risk("action-removed", "", "what it enforced is no longer enforced"),
}

MEANINGS: Mapping[str, str] = {
    **{risk.name: risk.sentence for risk in DELETED.values()},
    PROTECTION_LIFTED: _LIFTED,
    CREDENTIAL_REPLACED: _REPLACED,
    **{rule.name: rule.sentence for rule in RULES},
}
"""The meaning of each risk class."""

CLASSES: tuple[str, ...] = tuple(MEANINGS)
"""Every risk class there is, most dangerous first."""

_LAST_SEVERE = "failure-allowed"


def is_severe(name: str) -> bool:
    """Return whether a class loses something for good or weakens a protection.

    The others change or stop what is deployed.
    """
    return CLASSES.index(name) <= CLASSES.index(_LAST_SEVERE)


_BY_KIND: Mapping[Kind, tuple[Rule, ...]] = {
    kind: tuple(rule for rule in RULES if rule.kind is kind) for kind in Kind
}


# A new object is held against its defaults, but for a check that is off by default.
_BEFORE_NEW: Mapping[Kind, Spec] = {**DEFAULTS, _IDP: {**DEFAULTS[_IDP], "audience": "checked"}}


def risks_of(change: Change) -> tuple[Risk, ...]:
    """Return the risks of a change, most dangerous first."""
    if isinstance(change, Delete):
        lost = DELETED.get(change.held.ref.kind)
        return (lost,) if lost else ()
    kind, after = change.resource.ref.kind, spec_after(change)
    if isinstance(change, Create):
        rules: Iterable[Rule] = (rule for rule in _BY_KIND[kind] if rule.also_new)
        return _found(rules, _BEFORE_NEW[kind], after)
    return (*_lifted(change), *_replaced(change), *_found(_BY_KIND[kind], change.held.spec, after))


def _found(rules: Iterable[Rule], before: Spec, after: Spec) -> tuple[Risk, ...]:
    return tuple(
        Risk(rule.name, rule.field, rule.sentence)
        for rule in rules
        if rule.test(before.get(rule.field), after.get(rule.field))
    )


def _lifted(change: Change) -> tuple[Risk, ...]:
    if isinstance(change, Create | Delete):
        return ()
    marks = (
        ("metadata.preventDelete", change.held.prevent_delete, change.resource.prevent_delete),
        ("metadata.critical", change.held.critical, change.resource.critical),
    )
    return tuple(
        Risk(PROTECTION_LIFTED, name, _LIFTED)
        for name, held, wanted in marks
        if held and not wanted
    )


def _replaced(change: Change) -> tuple[Risk, ...]:
    if isinstance(change, Create | Delete) or not change.new_secret:
        return ()
    if lacks_secret(change.resource, change.held):
        return ()
    return (Risk(CREDENTIAL_REPLACED, "clientSecret", _REPLACED),)


def most_dangerous(risks: Sequence[Risk]) -> int:
    """Return the place of the worst of some risks among all classes; where none is, the last."""
    return min((CLASSES.index(risk.name) for risk in risks), default=len(CLASSES))


# Browsers take a backslash for a slash, so the authority ends at either.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/\\?#]*))?")
_PORT = re.compile(r":[0-9]*$")


def authority_of(uri: str) -> str:
    """Return what decides where a URI leads: scheme, and user, host and port as they stand.

    It tells apart more than it must. A default port written out, or a user before the host, is
    another authority: where reading is a matter of opinion, it is news.
    """
    found = _URI.match(uri)
    if found is None:
        return uri
    scheme, authority = found.group(1).lower(), found.group(2)
    return f"{scheme}://{authority.lower()}" if authority else f"{scheme}:"


def is_plain_http(uri: str) -> bool:
    """Return whether a URI goes over the network unencrypted. The machine itself is no network."""
    found = _URI.match(uri)
    if found is None or found.group(1).lower() != "http":
        return False
    return not is_loopback_host(_PORT.sub("", (found.group(2) or "").lower()))


def expected_problems(change: Change) -> tuple[str, ...]:
    """Return the compliance keys that the service will report for an application."""
    if isinstance(change, Delete) or change.resource.ref.kind is not Kind.OIDC_APPLICATION:
        return ()
    return compliance_problems(change.resource.spec)
