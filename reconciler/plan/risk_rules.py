"""Rules of risks: the changes of a field that may weaken, redirect or stop something.

The rules are a table, most dangerous first, and each asks a pure question about a field before and
after. Their names are part of the interface: policies and labels rely on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.kinds.action_flow.flows import TRIGGER_NAMED
from reconciler.resources.origin import is_loopback_host
from reconciler.resources.ref import ACTION, ACTION_FLOW, Kind

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


Value: TypeAlias = str | bool | list[str] | None
Test: TypeAlias = Callable[[Value, Value], bool]

_STRENGTH: Mapping[object, int] = {
    "OIDC_AUTH_METHOD_TYPE_NONE": 0,
    "OIDC_AUTH_METHOD_TYPE_POST": 1,
    "OIDC_AUTH_METHOD_TYPE_BASIC": 2,
    "OIDC_AUTH_METHOD_TYPE_PRIVATE_KEY_JWT": 3,
}


def is_weaker(before: Value, after: Value) -> bool:
    """Return whether an application proves its identity by a weaker method."""
    return _STRENGTH.get(after, 0) < _STRENGTH.get(before, 0)


def is_stronger(before: Value, after: Value) -> bool:
    """Return whether an application proves its identity by a stronger method."""
    return _STRENGTH.get(after, 0) > _STRENGTH.get(before, 0)


def differs(before: Value, after: Value) -> bool:
    """Return whether the value changes."""
    return bool(before != after)


def turned_on(before: Value, after: Value) -> bool:
    """Return whether something is set that was not."""
    return bool(after) and not before


def turned_off(before: Value, after: Value) -> bool:
    """Return whether something is no longer set."""
    return bool(before) and not after


def gains(value: str) -> Test:
    """Return the test whether a list gains a value."""

    def test(before: Value, after: Value) -> bool:
        return value in _items(after) and value not in _items(before)

    return test


def loses_any(before: Value, after: Value) -> bool:
    """Return whether a list loses a value; the order does not count."""
    return not set(_items(before)) <= set(_items(after))


def keeps_some(before: Value, after: Value) -> bool:
    """Return whether a list loses a value and keeps or gains others."""
    return bool(_items(after)) and loses_any(before, after)


def moves(before: Value, after: Value) -> bool:
    """Return whether a list has the same values in another order."""
    return before != after and sorted(_items(before)) == sorted(_items(after))


def gains_any(before: Value, after: Value) -> bool:
    """Return whether a list gains a value; the order does not count."""
    return not set(_items(after)) <= set(_items(before))


def gains_authority(before: Value, after: Value) -> bool:
    """Return whether a list of URIs gains one that leads to a place of its own."""
    known = {authority_of(uri) for uri in _items(before)}
    return any(authority_of(uri) not in known for uri in _items(after))


def gains_plain_http(before: Value, after: Value) -> bool:
    """Return whether a list of URIs, or one URI, gains one that is sent unencrypted."""
    return any(is_plain_http(uri) for uri in _items(after) if uri not in _items(before))


def _items(value: Value) -> Sequence[str]:
    if isinstance(value, str):
        return (value,)
    return value if isinstance(value, list) else ()


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


APP, IDP = Kind.OIDC_APPLICATION, Kind.IDP_JWT_CONFIG
PROJECT, _CHECKS = Kind.PROJECT, ("projectRoleCheck", "hasProjectCheck")

RULES: tuple[Rule, ...] = (
    Rule(
        "credential-weaker", APP, "authMethodType", is_weaker,
        "the application proves its identity by a weaker method, or not at all",
    ),
    Rule(
        "implicit-grant-added", APP, "grantTypes", gains("OIDC_GRANT_TYPE_IMPLICIT"),
        "tokens are answered in the address of the browser, where history and logs keep them",
        also_new=True,
    ),
    Rule(
        "token-exchange-added", APP, "grantTypes", gains("OIDC_GRANT_TYPE_TOKEN_EXCHANGE"),
        "the application may exchange tokens for others, those of users it stands in for included",
        also_new=True,
    ),
    Rule(
        "redirect-host-added", APP, "redirectUris", gains_authority,
        "codes and tokens may go to a host they did not go to before",
    ),
    Rule(
        "keys-moved", IDP, "keysEndpoint", differs,
        "the server at that address decides which tokens are genuine",
    ),
    Rule(
        "issuer-moved", IDP, "issuer", differs,
        "tokens of the present issuer are refused, those of another one are accepted",
    ),
    Rule(
        "audience-unchecked", IDP, "audience", turned_off,
        "tokens that the issuer made for other applications are accepted", also_new=True,
    ),
    *(
        Rule(
            "access-unchecked", PROJECT, field, turned_off,
            "users whom the project refused before may sign in to its applications",
        )
        for field in _CHECKS
    ),
    Rule(
        "jwt-endpoint-moved", IDP, "jwtEndpoint", differs,
        "users are sent to another place to sign in",
    ),
    Rule(
        "header-moved", IDP, "headerName", differs,
        "tokens in the present header are no longer found",
    ),
    Rule(
        "dev-mode-on", APP, "devMode", turned_on,
        "checks of the OIDC specification are not performed", also_new=True,
    ),
    *(
        Rule(
            "plain-http", kind, field, gains_plain_http,
            "it is sent unencrypted, to be read and changed by anyone on the way", also_new=True,
        )
        for kind, field in (
            (APP, "redirectUris"), (APP, "postLogoutRedirectUris"), (APP, "additionalOrigins"),
            (IDP, "keysEndpoint"), (IDP, "issuer"), (IDP, "jwtEndpoint"),
        )
    ),
    Rule(
        "script-changed", ACTION, "script", differs,
        "other code runs while people sign in",
    ),
    Rule(
        "back-channel-logout-removed", APP, "backChannelLogoutUri", turned_off,
        "the application is no longer told that a session has ended: its own goes on",
    ),
    *(
        Rule(
            "trigger-emptied", ACTION_FLOW, trigger, turned_off,
            "no action runs at the trigger any more: what they enforced is not enforced",
        )
        for trigger in TRIGGER_NAMED
    ),
    *(
        Rule(
            "trigger-action-removed", ACTION_FLOW, trigger, keeps_some,
            "what the action enforced at the trigger is no longer enforced",
        )
        for trigger in TRIGGER_NAMED
    ),
    *(
        Rule(
            "trigger-action-added", ACTION_FLOW, trigger, gains_any,
            "other code runs while people sign in or tokens are made", also_new=True,
        )
        for trigger in TRIGGER_NAMED
    ),
    Rule(
        "failure-allowed", ACTION, "allowedToFail", turned_on,
        "a check that fails no longer stops anything",
    ),
    Rule(
        "failure-stops", ACTION, "allowedToFail", turned_off,
        "if this script fails, what called it now fails, too",
    ),
    *(
        Rule(
            "trigger-order-changed", ACTION_FLOW, trigger, moves,
            "an action may see what one that came after it before has set, or miss it",
        )
        for trigger in TRIGGER_NAMED
    ),
    *(
        Rule(
            "access-checked", PROJECT, field, turned_on,
            "users without a role in the project, or of an organization without it, are locked out",
        )
        for field in _CHECKS
    ),
    Rule(
        "userinfo-assertion-on", APP, "idTokenUserinfoAssertion", turned_on,
        "profile, email and phone are in every id token, against the OIDC specification",
        also_new=True,
    ),
    Rule(
        "device-grant-added", APP, "grantTypes", gains("OIDC_GRANT_TYPE_DEVICE_CODE"),
        "a sign-in on one device can be approved on another, which phishing can exploit",
    ),
    Rule(
        "origin-added", APP, "additionalOrigins", gains_any,
        "pages of another origin may call the API",
    ),
    Rule(
        "logout-host-added", APP, "postLogoutRedirectUris", gains_authority,
        "browsers may be sent to a host they were not sent to before",
    ),
    *(
        Rule(
            "role-assertion-off", kind, field, turned_off,
            "the roles of users are no longer in the token: what relies on them refuses access",
        )
        for kind, field in (
            (APP, "accessTokenRoleAssertion"), (APP, "idTokenRoleAssertion"),
            (PROJECT, "projectRoleAssertion"),
        )
    ),
    Rule(
        "app-type-changed", APP, "appType", differs,
        "other rules apply to its redirect URIs and its secret; what is deployed may be refused",
    ),
    Rule(
        "credential-changed", APP, "authMethodType", is_stronger,
        "what is deployed must sign in another way, or is refused",
    ),
    Rule(
        "login-version-changed", APP, "loginVersion", differs,
        "people sign in on other pages; actions and settings of the present ones may not count",
    ),
    Rule(
        "token-type-changed", APP, "accessTokenType", differs,
        "an API that expects the present type refuses the tokens",
    ),
    Rule(
        "grant-removed", APP, "grantTypes", loses_any,
        "what is deployed and still uses that grant is refused",
    ),
    Rule(
        "response-removed", APP, "responseTypes", loses_any,
        "what is deployed and still asks for that response is refused",
    ),
    Rule(
        "redirect-removed", APP, "redirectUris", loses_any,
        "sign-ins that come back there fail",
    ),
    Rule(
        "origin-removed", APP, "additionalOrigins", loses_any,
        "pages of that origin can no longer call the API",
    ),
    Rule(
        "logout-removed", APP, "postLogoutRedirectUris", loses_any,
        "sign-outs that come back there fail",
    ),
)  # fmt: skip
