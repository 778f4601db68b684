"""Dangers of a change, as classes with stable names: a reviewer reads them first.

A risk is no verdict. It says of a change that is about to be made what may become weaker, go
elsewhere or stop. The rules are a table, most dangerous first, and each is a pure question about
a spec before and after. The names are part of the interface: policies and labels rely on them.
Problems that the service itself will report of an application are here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.plan import flow_risks
from reconciler.plan.field_tests import (
    Test,
    differs,
    gains,
    gains_any,
    gains_authority,
    gains_plain_http,
    is_stronger,
    is_weaker,
    loses_any,
    turned_off,
    turned_on,
)
from reconciler.plan.kept_lists import spec_after
from reconciler.plan.model import Adopt, Change, Create, Delete, Update, lacks_secret
from reconciler.resources.fields import Spec
from reconciler.resources.flows import TRIGGER_NAMED
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.oidc import compliance_problems
from reconciler.resources.ref import Kind


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


_APP, _IDP, _ACTION = Kind.OIDC_APPLICATION, Kind.IDP_JWT_CONFIG, Kind.ACTION
_FLOW = Kind.ACTION_FLOW
_PROJECT, _CHECKS = Kind.PROJECT, ("projectRoleCheck", "hasProjectCheck")

RULES: tuple[Rule, ...] = (
    Rule(
        "credential-weaker", _APP, "authMethodType", is_weaker,
        "the application proves its identity by a weaker method, or not at all",
    ),
    Rule(
        "implicit-grant-added", _APP, "grantTypes", gains("OIDC_GRANT_TYPE_IMPLICIT"),
        "tokens are answered in the address of the browser, where history and logs keep them",
        also_new=True,
    ),
    Rule(
        "token-exchange-added", _APP, "grantTypes", gains("OIDC_GRANT_TYPE_TOKEN_EXCHANGE"),
        "the application may exchange tokens for others, those of users it stands in for included",
        also_new=True,
    ),
    Rule(
        "redirect-host-added", _APP, "redirectUris", gains_authority,
        "codes and tokens may go to a host they did not go to before",
    ),
    Rule(
        "keys-moved", _IDP, "keysEndpoint", differs,
        "the server at that address decides which tokens are genuine",
    ),
    Rule(
        "issuer-moved", _IDP, "issuer", differs,
        "tokens of the present issuer are refused, those of another one are accepted",
    ),
    Rule(
        "audience-unchecked", _IDP, "audience", turned_off,
        "tokens that the issuer made for other applications are accepted", also_new=True,
    ),
    *(
        Rule(
            "access-unchecked", _PROJECT, field, turned_off,
            "users whom the project refused before may sign in to its applications",
        )
        for field in _CHECKS
    ),
    Rule(
        "jwt-endpoint-moved", _IDP, "jwtEndpoint", differs,
        "users are sent to another place to sign in",
    ),
    Rule(
        "header-moved", _IDP, "headerName", differs,
        "tokens in the present header are no longer found",
    ),
    Rule(
        "dev-mode-on", _APP, "devMode", turned_on,
        "checks of the OIDC specification are not performed", also_new=True,
    ),
    *(
        Rule(
            "plain-http", kind, field, gains_plain_http,
            "it is sent unencrypted, to be read and changed by anyone on the way", also_new=True,
        )
        for kind, field in (
            (_APP, "redirectUris"), (_APP, "postLogoutRedirectUris"), (_APP, "additionalOrigins"),
            (_IDP, "keysEndpoint"), (_IDP, "issuer"), (_IDP, "jwtEndpoint"),
        )
    ),
    Rule(
        "script-changed", _ACTION, "script", differs,
        "other code runs while people sign in",
    ),
    Rule(
        "back-channel-logout-removed", _APP, "backChannelLogoutUri", turned_off,
        "the application is no longer told that a session has ended: its own goes on",
    ),
    *(
        Rule(risk.name, _FLOW, trigger, risk.test, risk.sentence, risk.also_new)
        for risk in flow_risks.SEVERE
        for trigger in TRIGGER_NAMED
    ),
    Rule(
        "failure-allowed", _ACTION, "allowedToFail", turned_on,
        "a check that fails no longer stops anything",
    ),
    Rule(
        "failure-stops", _ACTION, "allowedToFail", turned_off,
        "if this script fails, what called it now fails, too",
    ),
    *(
        Rule(risk.name, _FLOW, trigger, risk.test, risk.sentence)
        for risk in (flow_risks.ORDER,)
        for trigger in TRIGGER_NAMED
    ),
    *(
        Rule(
            "access-checked", _PROJECT, field, turned_on,
            "users without a role in the project, or of an organization without it, are locked out",
        )
        for field in _CHECKS
    ),
    Rule(
        "userinfo-assertion-on", _APP, "idTokenUserinfoAssertion", turned_on,
        "profile, email and phone are in every id token, against the OIDC specification",
        also_new=True,
    ),
    Rule(
        "device-grant-added", _APP, "grantTypes", gains("OIDC_GRANT_TYPE_DEVICE_CODE"),
        "a sign-in on one device can be approved on another, which phishing can exploit",
    ),
    Rule(
        "origin-added", _APP, "additionalOrigins", gains_any,
        "pages of another origin may call the API",
    ),
    Rule(
        "logout-host-added", _APP, "postLogoutRedirectUris", gains_authority,
        "browsers may be sent to a host they were not sent to before",
    ),
    *(
        Rule(
            "role-assertion-off", kind, field, turned_off,
            "the roles of users are no longer in the token: what relies on them refuses access",
        )
        for kind, field in (
            (_APP, "accessTokenRoleAssertion"), (_APP, "idTokenRoleAssertion"),
            (_PROJECT, "projectRoleAssertion"),
        )
    ),
    Rule(
        "app-type-changed", _APP, "appType", differs,
        "other rules apply to its redirect URIs and its secret; what is deployed may be refused",
    ),
    Rule(
        "credential-changed", _APP, "authMethodType", is_stronger,
        "what is deployed must sign in another way, or is refused",
    ),
    Rule(
        "login-version-changed", _APP, "loginVersion", differs,
        "people sign in on other pages; actions and settings of the present ones may not count",
    ),
    Rule(
        "token-type-changed", _APP, "accessTokenType", differs,
        "an API that expects the present type refuses the tokens",
    ),
    Rule(
        "grant-removed", _APP, "grantTypes", loses_any,
        "what is deployed and still uses that grant is refused",
    ),
    Rule(
        "response-removed", _APP, "responseTypes", loses_any,
        "what is deployed and still asks for that response is refused",
    ),
    Rule(
        "redirect-removed", _APP, "redirectUris", loses_any,
        "sign-ins that come back there fail",
    ),
    Rule(
        "origin-removed", _APP, "additionalOrigins", loses_any,
        "pages of that origin can no longer call the API",
    ),
    Rule(
        "logout-removed", _APP, "postLogoutRedirectUris", loses_any,
        "sign-outs that come back there fail",
    ),
)  # fmt: skip

PROTECTION_LIFTED = "protection-lifted"
CREDENTIAL_REPLACED = "secret-replaced"
REACTIVATED = "reactivated"
DEACTIVATED = "deactivated"
SWITCHED = (REACTIVATED, DEACTIVATED)
_LIFTED = "a protection that was asked for is taken away"
_REPLACED = "the present secret ends at once: what is deployed with it is refused"
_REACTIVATED = "what was switched off, perhaps for a reason, works again"
_DEACTIVATED = "what relies on it stops until it is reactivated: sign-ins fail, scripts do not run"

DELETED: Mapping[Kind, Risk] = {
    _APP: Risk("client-id-lost", "", "its client id and secret end for good"),
    _IDP: Risk("provider-removed", "", "users who sign in through it are locked out"),
    _ACTION: Risk("action-removed", "", "what it enforced is no longer enforced"),
    _FLOW: Risk("flow-cleared", "", "no action runs in it any more: nothing of it is enforced"),
}

MEANINGS: Mapping[str, str] = {
    **{risk.name: risk.sentence for risk in DELETED.values()},
    PROTECTION_LIFTED: _LIFTED,
    CREDENTIAL_REPLACED: _REPLACED,
    REACTIVATED: _REACTIVATED,
    DEACTIVATED: _DEACTIVATED,
    **{rule.name: rule.sentence for rule in RULES},
}
"""The meaning of each risk class."""

CLASSES: tuple[str, ...] = tuple(MEANINGS)
"""Every risk class there is, most dangerous first."""

_LAST_SEVERE = "failure-allowed"


def is_severe(name: str) -> bool:
    """Return whether a class loses something, weakens a protection, or switches an object.

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
    return (
        *_lifted(change),
        *_replaced(change),
        *_switched(change),
        *_found(_BY_KIND[kind], change.held.spec, after),
    )


def _found(rules: Iterable[Rule], before: Spec, after: Spec) -> tuple[Risk, ...]:
    return tuple(
        Risk(rule.name, rule.field, rule.sentence)
        for rule in rules
        # A field that is not declared stays as it is held.
        if rule.field in after and rule.test(before.get(rule.field), after[rule.field])
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


def _switched(change: Update | Adopt) -> tuple[Risk, ...]:
    """Return the risk of another state; one that no manifest says is left as it is."""
    wanted = change.resource.active
    if wanted in {None, change.held.active}:
        return ()
    name, meaning = (REACTIVATED, _REACTIVATED) if wanted else (DEACTIVATED, _DEACTIVATED)
    return (Risk(name, "metadata.active", meaning),)


def most_dangerous(risks: Sequence[Risk]) -> int:
    """Return the place of the worst of some risks among all classes; where none is, the last."""
    return min((CLASSES.index(risk.name) for risk in risks), default=len(CLASSES))


def expected_problems(change: Change) -> tuple[str, ...]:
    """Return the compliance keys that the service will report for an application."""
    if isinstance(change, Delete) or change.resource.ref.kind is not Kind.OIDC_APPLICATION:
        return ()
    return compliance_problems(change.resource.spec)
