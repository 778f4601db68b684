"""The risk classes, one by one: what has each, and what is just beside it and has not."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.kinds.fields import KINDS
from reconciler.kinds.rules import RULES
from reconciler.plan.diff import IGNORE, FieldChange
from reconciler.plan.model import Adopt, Create, Delete, Update
from reconciler.plan.risk import (
    MEANINGS,
    OF_EVERY_KIND,
    Risk,
    by_danger,
    is_severe,
    risks_of,
    risks_of_fields,
)
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.rules.risks import SEVERE, Rule
from reconciler.state import completed
from tests.builders import (
    ACME,
    BASIC,
    GREET,
    NONE,
    PARTNER,
    SHOP,
    TOKEN,
    WEB,
    a_jwt_config,
    an_action,
    an_action_flow,
    an_application,
    declared,
    held,
)
from tests.rows import each_row

POST = "OIDC_AUTH_METHOD_TYPE_POST"
KEY = "OIDC_AUTH_METHOD_TYPE_PRIVATE_KEY_JWT"
CODE = "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"
IMPLICIT = "OIDC_GRANT_TYPE_IMPLICIT"
REFRESH = "OIDC_GRANT_TYPE_REFRESH_TOKEN"
DEVICE = "OIDC_GRANT_TYPE_DEVICE_CODE"
EXCHANGE = "OIDC_GRANT_TYPE_TOKEN_EXCHANGE"
LOGOUT, LOGIN = "backChannelLogoutUri", "loginVersion"
LABELLED = "PRIVATE_LABELING_SETTING_ENFORCE_PROJECT_RESOURCE_OWNER_POLICY"
HOME = "https://shop.example.com/callback"

_SAID = {
    Kind.OIDC_APPLICATION: (WEB, an_application),
    Kind.ACTION: (GREET, an_action),
    Kind.IDP_JWT_CONFIG: (PARTNER, a_jwt_config),
    Kind.PROJECT: (SHOP, dict),
    Kind.ACTION_FLOW: (TOKEN, an_action_flow),
}


def names(kind: Kind, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return the risks of an update between two specs that differ in these fields alone."""
    ref, said = _SAID[kind]
    found = held(ref, said(**before))
    change = Update(completed(declared(ref, said(**after)), found), found)
    assert risks_of(Adopt(change.resource, change.held)) == risks_of(change)
    return [risk.name for risk in risks_of(change)]


def method(name: str) -> dict[str, Any]:
    return {"authMethodType": name}


def grants(*values: str) -> dict[str, Any]:
    return {"grantTypes": list(values)}


def uris(*values: str) -> dict[str, Any]:
    return {"redirectUris": list(values)}


RESPONSE = "OIDC_RESPONSE_TYPE_CODE"


@each_row(
    ("before", "after", "expected"),
    [
        (method(KEY), method(BASIC), ["credential-weaker"]),
        (method(KEY), method(NONE), ["credential-weaker"]),
        (method(BASIC), method(POST), ["credential-weaker"]),
        (method(BASIC), method(NONE), ["credential-weaker"]),
        (method(POST), method(NONE), ["credential-weaker"]),
        (method(NONE), method(BASIC), ["credential-changed"]),
        (method(BASIC), method(KEY), ["credential-changed"]),
        (method(BASIC), method(BASIC), []),
        (grants(CODE), grants(CODE, IMPLICIT), ["implicit-grant-added"]),
        (grants(CODE, IMPLICIT), grants(CODE), ["grant-removed"]),
        (grants(CODE, IMPLICIT), grants(IMPLICIT, CODE), []),
        (grants(CODE), grants(CODE, REFRESH), []),
        (grants(CODE, REFRESH), grants(CODE), ["grant-removed"]),
        (grants(CODE), grants(CODE, DEVICE), ["device-grant-added"]),
        (grants(CODE), grants(CODE, EXCHANGE), ["token-exchange-added"]),
        (grants(CODE, EXCHANGE), grants(CODE), ["grant-removed"]),
        ({LOGOUT: "https://a.example"}, {LOGOUT: ""}, ["back-channel-logout-removed"]),
        ({LOGOUT: "https://a.example"}, {}, []),
        ({LOGOUT: ""}, {LOGOUT: "https://a.example"}, []),
        ({LOGIN: {"loginV1": {}}}, {LOGIN: {"loginV2": {}}}, ["login-version-changed"]),
        ({LOGIN: {"loginV2": {}}}, {}, []),
        (uris(HOME), uris(HOME, "https://shop.example.com/other"), []),
        (uris(HOME), uris(HOME, "https://SHOP.example.com/other"), []),
        (uris(HOME), uris(HOME, "https://evil.example/callback"), ["redirect-host-added"]),
        (uris(HOME), uris(HOME, "https://shop.example.com.evil.example/"), ["redirect-host-added"]),
        (uris(HOME), uris(HOME, "https://shop.example.com@evil.example/"), ["redirect-host-added"]),
        (
            uris(HOME),
            uris(HOME, "https://evil.example\\@shop.example.com/"),
            ["redirect-host-added"],
        ),
        (uris(HOME), uris(HOME, "https://shop.example.com:8443/cb"), ["redirect-host-added"]),
        (uris(HOME), uris(HOME, "com.example.shop:/callback"), ["redirect-host-added"]),
        (uris("com.example.shop:/a"), uris("com.example.shop:/a", "com.example.shop:/b"), []),
        (uris(HOME, "https://b.example/"), uris(HOME), ["redirect-removed"]),
        (uris(HOME, "https://b.example/"), uris("https://b.example/", HOME), []),
        (
            uris(HOME),
            uris("http://shop.example.com/callback"),
            ["redirect-host-added", "plain-http", "redirect-removed"],
        ),
        (uris(HOME), uris(HOME, "http://localhost:3000/cb"), ["redirect-host-added"]),
        (
            uris(HOME, "http://a.example/"),
            uris(HOME, "http://a.example/", "http://a.example/b"),
            ["plain-http"],
        ),
        (uris("http://a.example/"), uris("http://a.example/"), []),
        ({"devMode": False}, {"devMode": True}, ["dev-mode-on"]),
        ({"devMode": True}, {"devMode": False}, []),
        ({}, {"idTokenUserinfoAssertion": True}, ["userinfo-assertion-on"]),
        ({"idTokenUserinfoAssertion": True}, {}, []),
        ({}, {"accessTokenType": "OIDC_TOKEN_TYPE_JWT"}, ["token-type-changed"]),
        ({"accessTokenType": "OIDC_TOKEN_TYPE_JWT"}, {}, ["token-type-changed"]),
        ({}, {"additionalOrigins": ["https://a.example"]}, ["origin-added"]),
        ({}, {"additionalOrigins": ["http://a.example"]}, ["plain-http", "origin-added"]),
        ({"additionalOrigins": ["https://a.example"]}, {}, ["origin-removed"]),
        ({"postLogoutRedirectUris": ["https://a.example/"]}, {}, ["logout-removed"]),
        ({"responseTypes": [RESPONSE, "OIDC_RESPONSE_TYPE_ID_TOKEN"]}, {}, ["response-removed"]),
        ({"responseTypes": [RESPONSE]}, {"responseTypes": [RESPONSE]}, []),
        ({}, {"appType": "OIDC_APP_TYPE_NATIVE"}, ["app-type-changed"]),
        ({"accessTokenRoleAssertion": True}, {}, ["role-assertion-off"]),
        ({"idTokenRoleAssertion": True}, {}, ["role-assertion-off"]),
        ({}, {"idTokenRoleAssertion": True}, []),
        ({}, {"postLogoutRedirectUris": ["https://a.example/"]}, ["logout-host-added"]),
        ({}, {"clockSkew": "1s", "accessTokenRoleAssertion": True}, []),
    ],
)
def test_risks_of_applications(
    before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    """Each class, at its edge."""
    assert names(Kind.OIDC_APPLICATION, before, after) == expected


@each_row(
    ("before", "after", "expected"),
    [
        ({}, {"keysEndpoint": "https://evil.example/keys"}, ["keys-moved"]),
        ({}, {"keysEndpoint": "http://login.example.com/keys"}, ["keys-moved", "plain-http"]),
        ({"issuer": "http://a.example"}, {"issuer": "https://a.example"}, ["issuer-moved"]),
        ({}, {"jwtEndpoint": "https://evil.example/jwt"}, ["jwt-endpoint-moved"]),
        ({}, {"headerName": "x-other"}, ["header-moved"]),
        ({"audience": "a"}, {"audience": ""}, ["audience-unchecked"]),
        ({"audience": "a"}, {"audience": "b"}, []),
        ({}, {"audience": "a"}, []),
        ({}, {}, []),
    ],
)
def test_risks_of_identity_providers(
    before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    """Whatever moves decides who is believed."""
    assert names(Kind.IDP_JWT_CONFIG, before, after) == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"script": "other()"}, ["script-changed"]),
        ({}, {"allowedToFail": True}, ["failure-allowed"]),
        ({"allowedToFail": True}, {}, ["failure-stops"]),
        ({}, {"timeout": "1s"}, []),
    ],
)
def test_risks_of_actions(
    before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    """A script is code that runs while somebody signs in."""
    assert names(Kind.ACTION, before, after) == expected


@each_row(
    ("before", "after", "expected"),
    [
        (["greet"], [], ["trigger-emptied"]),
        ([], ["greet"], ["trigger-action-added"]),
        (["greet"], ["greet", "log"], ["trigger-action-added"]),
        (["greet", "log"], ["log"], ["trigger-action-removed"]),
        (["greet"], ["log"], ["trigger-action-removed", "trigger-action-added"]),
        (["greet", "log"], ["log", "greet"], ["trigger-order-changed"]),
    ],
)
def test_risks_of_flows(before: list[str], after: list[str], expected: list[str]) -> None:
    trigger = "PRE_ACCESS_TOKEN_CREATION"
    assert names(Kind.ACTION_FLOW, {trigger: before}, {trigger: after}) == expected


@each_row(
    ("before", "after", "expected"),
    [
        ({"projectRoleCheck": True}, {"projectRoleCheck": False}, ["access-unchecked"]),
        ({"hasProjectCheck": True}, {"hasProjectCheck": False}, ["access-unchecked"]),
        ({}, {"projectRoleCheck": True}, ["access-checked"]),
        ({}, {"hasProjectCheck": True}, ["access-checked"]),
        ({"projectRoleAssertion": True}, {"projectRoleAssertion": False}, ["role-assertion-off"]),
        ({"projectRoleCheck": True, "hasProjectCheck": True}, {"projectRoleAssertion": True}, []),
        ({}, {"projectRoleCheck": False, "privateLabelingSetting": LABELLED}, []),
    ],
)
def test_risks_of_projects(
    before: dict[str, Any], after: dict[str, Any], expected: list[str]
) -> None:
    """A flag that the manifest leaves out has none: it stays."""
    assert names(Kind.PROJECT, before, after) == expected


@each_row(
    ("ref", "said", "expected"),
    [
        (WEB, an_application(**uris(HOME)), []),
        (WEB, an_application(**method(NONE)), []),
        (WEB, an_application(devMode=True), ["dev-mode-on"]),
        (WEB, an_application(**grants(IMPLICIT)), ["implicit-grant-added"]),
        (WEB, an_application(idTokenUserinfoAssertion=True), ["userinfo-assertion-on"]),
        (WEB, an_application(**uris("http://a.example/")), ["plain-http"]),
        (PARTNER, a_jwt_config(), ["audience-unchecked"]),
        (PARTNER, a_jwt_config(audience="us"), []),
        (PARTNER, a_jwt_config(issuer="http://a.example", audience="us"), ["plain-http"]),
        (GREET, an_action(allowedToFail=True), []),
        (ACME, {}, []),
        (SHOP, {}, []),
        (SHOP, {"projectRoleCheck": True}, []),
    ],
)
def test_a_new_object_has_the_risks_of_what_it_is_not_of_what_it_was(
    ref: ResourceRef, said: dict[str, Any], expected: list[str]
) -> None:
    """There is no host that was not there before where there was nothing before."""
    assert [risk.name for risk in risks_of(Create(declared(ref, said)))] == expected


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        (WEB, Risk("client-id-lost", "", "its client id and secret end for good")),
        (PARTNER, Risk("provider-removed", "", "users who sign in through it are locked out")),
        (GREET, Risk("action-removed", "", "what it enforced is no longer enforced")),
        (
            TOKEN,
            Risk("flow-cleared", "", "no action runs in it any more: nothing of it is enforced"),
        ),
    ],
)
def test_every_delete_has_a_risk(ref: ResourceRef, expected: Risk) -> None:
    """What is gone is missed by somebody."""
    assert risks_of(Delete(held(ref))) == (expected,)


def test_what_is_never_deleted_has_no_risk_of_it() -> None:
    """A plan file of another version may say otherwise."""
    assert risks_of(Delete(held(SHOP))) == ()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("NEW", "NONE", []),
        ("NEW", "POST", ["credential-changed"]),
        ("POST", "NEW", ["credential-weaker"]),
        ("NONE", "NEW", []),
    ],
)
def test_a_method_that_this_version_does_not_know_proves_nothing(
    before: str, after: str, expected: list[str]
) -> None:
    """Neither on the service nor in a plan file of a newer version."""
    was, wanted = held(WEB), declared(WEB)
    specs = [
        {**wanted.spec, "authMethodType": f"OIDC_AUTH_METHOD_TYPE_{method}"}
        for method in (before, after)
    ]
    change = Update(replace(wanted, spec=specs[1]), replace(was, spec=specs[0]))

    assert [risk.name for risk in risks_of(change)] == expected


def test_fields_that_changed_on_the_service_have_the_risks_of_an_update() -> None:
    """Of a drift only the fields are known."""
    fields = [
        FieldChange("devMode", before=False, after=True),
        FieldChange("clockSkew", before="0s", after="1s"),
        FieldChange("metadata.active", before=True, after=False),
    ]

    found = [each.name for each in risks_of_fields(Kind.OIDC_APPLICATION, fields)]

    assert found == ["deactivated", *names(Kind.OIDC_APPLICATION, {}, {"devMode": True})]
    active = FieldChange("metadata.active", before=False, after=True)
    assert [each.name for each in risks_of_fields(Kind.ACTION, [active])] == ["reactivated"]
    one_more = FieldChange("redirectUris", before=[HOME], after=[HOME, f"{HOME}/2"])
    known = FieldChange("devMode", before=True, after=False)
    assert risks_of_fields(Kind.OIDC_APPLICATION, [one_more, known]) == ()


def test_an_origin_that_was_there_is_not_added() -> None:
    """Whatever else of the application changes."""
    origins = {"additionalOrigins": ["https://a.example"]}
    before, after = held(WEB, an_application(**origins)), an_application(**origins, clockSkew="1s")

    assert risks_of(Update(declared(WEB, after), before)) == ()


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        ({"prevent_delete": True}, {}, ["metadata.preventDelete"]),
        ({"critical": True}, {}, ["metadata.critical"]),
        (
            {"prevent_delete": True, "critical": True},
            {"critical": True},
            ["metadata.preventDelete"],
        ),
        ({}, {"prevent_delete": True, "critical": True}, []),
        ({"prevent_delete": None, "critical": None}, {}, []),
    ],
)
def test_lifting_a_protection_is_a_risk(
    before: dict[str, Any], after: dict[str, Any], fields: list[str]
) -> None:
    """The second of two small changes is the dangerous one; the first is where to look."""
    risks = risks_of(Update(declared(WEB, **after), held(WEB, **before)))

    sentence = "a protection that was asked for is taken away"
    assert risks == tuple(Risk("protection-lifted", field, sentence) for field in fields)


@pytest.mark.parametrize(
    ("has_secret", "expected"),
    [
        pytest.param(True, ["secret-replaced"], id="it has one"),
        pytest.param(None, ["secret-replaced"], id="the service does not tell"),
        pytest.param(False, [], id="it has none"),
    ],
)
def test_a_new_secret_is_a_risk_where_one_may_be_in_use(
    *, has_secret: bool | None, expected: list[str]
) -> None:
    """An application that has lost its secret loses nothing by a new one."""
    change = Update(declared(WEB), held(WEB, has_secret=has_secret), new_secret=True)

    assert [risk.name for risk in risks_of(change)] == expected


@each_row(
    ("name", "severe"),
    [
        ("client-id-lost", True),
        ("protection-lifted", True),
        ("credential-weaker", True),
        ("failure-allowed", True),
        ("failure-stops", False),
        ("redirect-removed", False),
    ],
)
def test_what_loses_something_or_weakens_a_protection_is_severe(name: str, *, severe: bool) -> None:
    """An action whose failure is allowed no longer protects; one that stops sign-ins still does."""
    assert is_severe(name) is severe


def test_the_most_dangerous_risk_comes_first() -> None:
    """In the order of the table, whichever field was changed first."""
    before = held(WEB, an_application(**grants(CODE, REFRESH)))
    after = declared(WEB, an_application(**grants(CODE), **method(NONE), devMode=True))

    risks = risks_of(Update(after, before))

    assert [risk.name for risk in risks] == ["credential-weaker", "dev-mode-on", "grant-removed"]
    assert risks[0] == Risk(
        "credential-weaker",
        "authMethodType",
        "the application proves its identity by a weaker method, or not at all",
    )


def test_of_changes_with_one_risk_in_common_that_with_another_one_comes_first() -> None:
    """It would be lost among many that only have the common one."""
    moved, open_, gone = (
        Risk(name, "redirectUris", "")
        for name in ("redirect-host-added", "dev-mode-on", "redirect-removed")
    )
    in_order = [(open_, moved), (moved, gone), (moved,), (open_,), (gone,), ()]

    mixed = [in_order[at] for at in (5, 2, 0, 4, 1, 3)]

    assert sorted(mixed, key=by_danger) == in_order


def test_a_spec_that_a_newer_service_holds_is_no_trouble() -> None:
    """Fields and values that this version does not know are no reason to fall over."""
    odd = held(WEB)
    strange = {**odd.spec, "authMethodType": "OIDC_AUTH_METHOD_TYPE_NEW", "redirectUris": None}
    lacking = {key: value for key, value in strange.items() if key != "grantTypes"}
    change = Update(declared(WEB), held(WEB, lacking))

    assert "redirect-host-added" in [risk.name for risk in risks_of(change)]


EVERY_RULE = [(kind, rule) for kind, row in RULES.items() for rule in row.risks]


@each_row(("kind", "rule"), EVERY_RULE)
def test_every_rule_is_about_fields_that_its_kind_has(kind: Kind, rule: Rule) -> None:
    """A renamed field must not leave a rule behind that never speaks again."""
    assert set(rule.fields) <= {field.name for field in KINDS[kind].fields}
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert not rule.sentence.endswith(".")


def test_each_class_has_one_danger_and_one_sentence() -> None:
    """Kinds share classes, and a class has one place among all."""
    removals = [row.removal for row in RULES.values() if row.removal is not None]
    classes = {(each.name, each.danger, each.sentence) for _, each in EVERY_RULE}
    classes |= {(each.name, each.danger, each.sentence) for each in removals}
    classes |= {(each.name, danger, each.sentence) for danger, each in OF_EVERY_KIND.items()}
    names = Counter(name for name, _, _ in classes)
    dangers = Counter(danger for _, danger, _ in classes)

    assert [each for each in classes if names[each[0]] > 1 or dangers[each[1]] > 1] == []
    assert names.keys() == set(MEANINGS)


def test_names_are_part_of_the_interface() -> None:
    """Policies and labels are written against them: one is added, none is taken away."""
    assert set(MEANINGS) >= {
        "client-id-lost", "provider-removed", "action-removed", "protection-lifted",
        "credential-weaker", "implicit-grant-added", "redirect-host-added", "keys-moved",
        "issuer-moved", "jwt-endpoint-moved", "header-moved", "dev-mode-on", "plain-http",
        "script-changed", "failure-allowed", "failure-stops", "userinfo-assertion-on",
        "device-grant-added", "origin-added", "logout-host-added", "credential-changed",
        "token-type-changed", "grant-removed", "redirect-removed",
    }  # fmt: skip


def test_the_page_about_risks_has_every_class_in_its_order() -> None:
    """Whoever sees a name in a report can look it up; reports link to its anchor."""
    page = (Path(__file__).parents[3] / "docs" / "guards.md").read_text(encoding="utf-8")

    rows = re.findall(r'^\| <a id="([a-z-]+)"></a>`([a-z-]+)` \|', page, re.MULTILINE)
    assert rows == [(name, name) for name in MEANINGS]


@each_row(
    ("ref", "before", "after", "is_told"),
    [
        (WEB, frozenset(), {"redirectUris"}, True),
        (WEB, frozenset({"redirectUris"}), {"redirectUris"}, False),
        (WEB, frozenset({"redirectUris"}), {"redirectUris", "authMethodType"}, True),
        (WEB, frozenset(), {"additionalOrigins", "clockSkew"}, False),
        (WEB, None, {"redirectUris"}, True),  # a service that keeps no marks
        (PARTNER, frozenset(), {"keysEndpoint"}, True),
        (GREET, frozenset(), {"script"}, True),
        (GREET, frozenset(), {"timeout"}, False),
        (SHOP, frozenset(), {"hasProjectCheck"}, True),
        (TOKEN, frozenset(), {"PRE_USERINFO_CREATION"}, True),
    ],
)
def test_to_leave_a_field_that_decides_who_gets_in_to_others_is_a_risk(
    ref: ResourceRef, before: frozenset[str] | None, after: set[str], *, is_told: bool
) -> None:
    """A new object says it as well; that a service knows of it already is no news."""
    wanted, found = replace(declared(ref), ignored=frozenset(after)), held(ref, ignored=before)

    told = [risk.name for risk in risks_of(Update(wanted, found)) if risk.field == IGNORE]
    new = [risk.name for risk in risks_of(Create(wanted)) if risk.field == IGNORE]

    assert told == ["field-unwatched"] * is_told
    assert new == ["field-unwatched"] * bool(RULES[ref.kind].guarded & after)


def test_what_a_severe_risk_is_about_is_guarded() -> None:
    """Ignoring a field would be the way around the risk. Origins are what consoles usually keep."""
    for row in RULES.values():
        severe = {name for rule in row.risks if rule.danger >= SEVERE for name in rule.fields}
        assert severe - row.guarded <= {"additionalOrigins"}


def test_guarded_fields_are_fields_of_their_kind() -> None:
    """A renamed field must not leave a guard behind that never speaks again."""
    for kind, row in RULES.items():
        assert row.guarded <= {field.name for field in KINDS[kind].fields}
