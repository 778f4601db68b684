"""What is wrong or dangerous about an application, and where its manifest says so."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import Diagnostic, SourceLocation, error, warning
from reconciler.kinds.oidc_application.rules import RULES
from reconciler.resources.undone import Undone
from reconciler.rules.form import Found, Planned
from reconciler.state import ObservedObject, Resource
from tests.builders import WEB, FakeSource, an_application, declared, held, is_valid, observed
from tests.rows import each_row
from tests.unit.conftest import Judge
from tests.unit.validation.documents import APPLICATION, text_of, with_spec

NATIVE = {"appType": "OIDC_APP_TYPE_NATIVE", "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}

AUTHORIZATION_CODE = "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"
IMPLICIT = {
    "grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT"],
    "responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN"],
}


def no_script(name: str, script: str) -> bool:
    raise AssertionError(f"an application has no script: {name}")


@each_row(
    ("changes", "codes"),
    [
        pytest.param({}, [], id="nothing out of the ordinary"),
        pytest.param({"redirectUris": ["https://*.test/"]}, ["URI-WILDCARD"], id="a redirect URI"),
        pytest.param(
            {"postLogoutRedirectUris": ["javascript:x"]}, ["URI-SCHEME"], id="a post-logout URI"
        ),
        pytest.param(
            {"redirectUris": ["http://a.test/", "https://b.test/#"]},
            ["URI-FRAGMENT", "URI-HTTP"],
            id="two URIs, each with its own finding",
        ),
        pytest.param(
            {"redirectUris": ["https://a.test/", "https://a.test/"]},
            ["URI-DUPLICATE"],
            id="a URI twice",
        ),
        pytest.param(
            {"additionalOrigins": ["https://a.test", "https://a.test"]},
            ["URI-DUPLICATE"],
            id="an origin twice",
        ),
        pytest.param({"grantTypes": ["AUTHORIZATION_CODE", "REFRESH_TOKEN"]}, [], id="short words"),
        pytest.param(
            {"grantTypes": ["AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"]},
            ["VALUE-DUPLICATE"],
            id="a word in two spellings",
        ),
        pytest.param(
            {"additionalOrigins": ["https://a.test/app"]},
            ["OIDC-ORIGIN"],
            id="an origin with a path",
        ),
        pytest.param({"additionalOrigins": ["null"]}, ["OIDC-ORIGIN"], id="the origin null"),
        pytest.param(
            {"responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN"]},
            ["OIDC-GRANT"],
            id="a response type without its grant type",
        ),
        pytest.param(
            {"grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT"]},
            ["OIDC-GRANT", "OIDC-IMPLICIT"],
            id="the default response type without its grant type",
        ),
        pytest.param(IMPLICIT, ["OIDC-IMPLICIT"], id="the implicit grant"),
        pytest.param({"devMode": True}, ["OIDC-DEV-MODE"], id="development mode"),
        pytest.param(
            {"idTokenUserinfoAssertion": True}, ["OIDC-USERINFO"], id="user info in the id token"
        ),
        pytest.param({"redirectUris": []}, ["OIDC-COMPLIANCE"], id="no redirect URI"),
        pytest.param(
            {**NATIVE, "authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC"},
            ["OIDC-COMPLIANCE"],
            id="a native application with a secret",
        ),
        pytest.param(
            {**NATIVE, "redirectUris": ["com.example.app:/cb", "http://localhost/cb"]},
            [],
            id="a native application as it should be",
        ),
        pytest.param(
            {
                "grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_IMPLICIT"],
                "redirectUris": ["http://localhost/cb"],
                "devMode": True,
            },
            ["OIDC-COMPLIANCE", "OIDC-DEV-MODE", "OIDC-IMPLICIT"],
            id="the note about combinations",
        ),
    ],
)
def test_applications(judge_text: Judge, changes: dict[str, Any], codes: list[str]) -> None:
    judgement = judge_text(text_of(with_spec(APPLICATION, **changes)))

    assert sorted(finding.code for finding in judgement.diagnostics) == sorted(codes)
    assert all(finding.ref is not None for finding in judgement.diagnostics)
    assert all(finding.remedy.endswith(".") for finding in judgement.diagnostics)
    assert is_valid(judgement) is (len(judgement.desired.resources) == 1)


@each_row(
    ("uri", "expected"),
    [
        pytest.param("https://shop.example.com/logout", [], id="https"),
        pytest.param("https://shop.example.com:8443/logout?app=1", [], id="a port and a query"),
        pytest.param("", [], id="none"),
        pytest.param("http://localhost:8080/logout", [], id="plain http to ourselves"),
        pytest.param("http://a.test/", [("URI-HTTP", False)], id="plain http"),
        pytest.param("https://a.test/#out", [("URI-FRAGMENT", True)], id="a fragment"),
        pytest.param("/logout", [("URI-SCHEME", True)], id="a path"),
        pytest.param("com.example.app:/logout", [("URI-SCHEME", True)], id="a custom scheme"),
        pytest.param("https:///logout", [("URI-HOST", True)], id="no host"),
        pytest.param("https://u@a.test/", [("URI-USERINFO", True)], id="a user"),
        pytest.param("https://a.test/ ", [("URI-CHARACTER", True)], id="a space, which is cut off"),
    ],
)
def test_back_channel_logout_uris(
    judge_text: Judge, uri: str, expected: list[tuple[str, bool]]
) -> None:
    """As OpenID Connect Back-Channel Logout 1.0, 2.2 asks; a server says it at its first use."""
    text = text_of(with_spec(APPLICATION, backChannelLogoutUri=uri))
    found = judge_text(text).diagnostics

    assert [(finding.code, finding.is_error) for finding in found] == expected
    column = text.index(json.dumps(uri)) + 1
    assert {finding.location.column for finding in found if finding.location} <= {column}


ERRORS = {"URI-WILDCARD", "URI-SCHEME", "URI-FRAGMENT", "OIDC-ORIGIN", "OIDC-GRANT"}


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_what_the_service_or_a_browser_would_refuse_is_an_error(
    judge_text: Judge, code: str
) -> None:
    changes: dict[str, dict[str, Any]] = {
        "URI-WILDCARD": {"redirectUris": ["https://*.test/"]},
        "URI-SCHEME": {"redirectUris": ["data:x"]},
        "URI-FRAGMENT": {"redirectUris": ["https://a.test/#"]},
        "OIDC-ORIGIN": {"additionalOrigins": ["a.test"]},
        "OIDC-GRANT": {"responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN_TOKEN"]},
    }

    assert not is_valid(judge_text(text_of(with_spec(APPLICATION, **changes[code]))))


TWICE = warning("URI-DUPLICATE", "the same entry is in this list already", "Remove one.")
IMPLICIT_GRANT = Found(
    warning(
        "OIDC-IMPLICIT",
        "the implicit grant is allowed",
        "Tokens show in the address bar and its history: use the authorization code grant.",
    ),
    ("spec", "grantTypes"),
)


def without_grant(sentence: str) -> Diagnostic:
    return error("OIDC-GRANT", "a response type without its grant type", sentence)


def no_origin(sentence: str) -> Diagnostic:
    return error("OIDC-ORIGIN", "the additional origin is not valid", sentence)


def breaks(rule: str, sentence: str) -> Diagnostic:
    remedy = f"{sentence} The service will report Application.OIDC.{rule}."
    return warning("OIDC-COMPLIANCE", f"breaks the rule {rule}", remedy)


@each_row(
    ("changes", "found"),
    [
        pytest.param(
            {"redirectUris": ["https://a.test/", "https://b.test/", "https://a.test/"]},
            [Found(TWICE, ("spec", "redirectUris", 2))],
            id="a URI twice",
        ),
        pytest.param(
            {"additionalOrigins": ["https://a.test", "https://a.test"]},
            [Found(TWICE, ("spec", "additionalOrigins", 1))],
            id="an origin twice",
        ),
        pytest.param(
            {"grantTypes": ["AUTHORIZATION_CODE", "REFRESH_TOKEN", AUTHORIZATION_CODE]},
            [
                Found(
                    warning(
                        "VALUE-DUPLICATE",
                        "OIDC_GRANT_TYPE_AUTHORIZATION_CODE is in this list already",
                        "Remove one; the short spelling is the same value.",
                    ),
                    ("spec", "grantTypes", 2),
                )
            ],
            id="a word twice",
        ),
        pytest.param(
            {"backChannelLogoutUri": "/logout"},
            [
                Found(
                    error(
                        "URI-SCHEME",
                        "/logout is not an http or https URL",
                        "Write the whole URL, such as https://shop.example.com/logout.",
                    ),
                    ("spec", "backChannelLogoutUri"),
                )
            ],
            id="a path for logout tokens",
        ),
        pytest.param(
            {"responseTypes": ["CODE", "ID_TOKEN"]},
            [
                Found(
                    without_grant(
                        "OIDC_RESPONSE_TYPE_ID_TOKEN needs OIDC_GRANT_TYPE_IMPLICIT among "
                        "grantTypes."
                    ),
                    ("spec", "responseTypes", 1),
                )
            ],
            id="a response type without its grant type",
        ),
        pytest.param(
            {"grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT"]},
            [
                Found(
                    without_grant(
                        "OIDC_RESPONSE_TYPE_CODE needs OIDC_GRANT_TYPE_AUTHORIZATION_CODE or "
                        "OIDC_GRANT_TYPE_DEVICE_CODE among grantTypes."
                    ),
                    ("spec", "grantTypes"),
                ),
                IMPLICIT_GRANT,
            ],
            id="a default that does not fit, at what does not fit it",
        ),
        pytest.param(
            {"additionalOrigins": ["https://a.test", "https://a.test/app"]},
            [
                Found(
                    no_origin("An origin has no path, query or fragment: write https://a.test."),
                    ("spec", "additionalOrigins", 1),
                )
            ],
            id="an origin with a path",
        ),
        pytest.param(
            {"additionalOrigins": ["https://$shopHost"]},
            [
                Found(
                    no_origin("Write ${shopHost} for a variable, which reconciler.yaml declares."),
                    ("spec", "additionalOrigins", 0),
                )
            ],
            id="a variable without braces",
        ),
        pytest.param(
            {"devMode": True},
            [
                Found(
                    warning(
                        "OIDC-DEV-MODE",
                        "development mode is on",
                        "Some checks of the OIDC specification are not performed: turn it off in "
                        "production.",
                    ),
                    ("spec", "devMode"),
                )
            ],
            id="development mode",
        ),
        pytest.param(
            {"idTokenUserinfoAssertion": True},
            [
                Found(
                    warning(
                        "OIDC-USERINFO",
                        "user info in the id token",
                        "This violates the OIDC specification: read the claims from the userinfo "
                        "endpoint.",
                    ),
                    ("spec", "idTokenUserinfoAssertion"),
                )
            ],
            id="user info in the id token",
        ),
        pytest.param(
            {"redirectUris": []},
            [
                Found(
                    breaks(
                        "V1.NoRedirectUris",
                        "At least one redirect URI is needed for this grant type.",
                    ),
                    ("spec", "redirectUris"),
                )
            ],
            id="a rule that all redirect URIs break, without the headline of the service",
        ),
        pytest.param(
            {
                **NATIVE,
                "redirectUris": ["https://a.test/", "http://127.0.0.1/", "http://a.test/"],
            },
            [
                Found(
                    warning(
                        "URI-HTTP",
                        "plain http to a host other than this machine",
                        "Codes and tokens are sent there in the clear: write https.",
                    ),
                    ("spec", "redirectUris", 2),
                ),
                Found(
                    breaks(
                        "V1.Native.RedirectUris.MustBeHttpLocalhost",
                        "An http redirect URI of a native application must point at localhost.",
                    ),
                    ("spec", "redirectUris", 2),
                ),
            ],
            id="a rule that one redirect URI breaks",
        ),
        pytest.param(
            {**NATIVE, "authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC"},
            [
                Found(
                    breaks(
                        "V1.Native.AuthMethodType.NotNone",
                        "A native application cannot keep a secret: its auth method should be "
                        "NONE.",
                    ),
                    ("spec", "authMethodType"),
                )
            ],
            id="a rule that the auth method breaks",
        ),
        pytest.param(
            {**IMPLICIT, "grantTypes": ["IMPLICIT", "REFRESH_TOKEN"]},
            [
                Found(
                    breaks(
                        "V1.GrantType.Refresh.NoAuthCode",
                        "The refresh token grant only works together with the authorization code "
                        "grant.",
                    ),
                    ("spec", "grantTypes"),
                ),
                IMPLICIT_GRANT,
            ],
            id="a rule that the grant types break",
        ),
    ],
)
def test_each_finding_is_told_at_its_value(changes: dict[str, Any], found: list[Found]) -> None:
    """In whole sentences, and with the key that the service will report."""
    spec = {**APPLICATION["spec"], **changes}

    assert [*RULES.findings(declared(WEB, spec), spec, no_script)] == found


def test_findings_stand_where_the_value_is_written(judge_text: Judge) -> None:
    """Also where the normal form has another order, or the value is a default."""
    text = """\
apiVersion: reconciler/v1
kind: OidcApplication
metadata: {organization: acme, project: shop, name: storefront}
spec:
  redirectUris:
    - https://shop.example.com/callback
    - http://shop.example.com/callback
  responseTypes:
    - ID_TOKEN_TOKEN
    - OIDC_RESPONSE_TYPE_CODE
  additionalOrigins: [https://a.test, b.test]
  idTokenUserinfoAssertion: true
"""
    found = [
        (finding.code, *finding.location[1:3])
        for finding in judge_text(text).diagnostics
        if finding.location is not None
    ]

    assert found == [
        ("URI-HTTP", 7, 7),
        ("OIDC-GRANT", 9, 7),
        ("OIDC-ORIGIN", 11, 39),
        ("OIDC-USERINFO", 12, 29),
    ]


def test_each_wrong_origin_is_told_at_its_own_place(judge_text: Judge) -> None:
    """Of two that are alike, too."""
    text = text_of(with_spec(APPLICATION, additionalOrigins=["null", "null"]))

    columns = [
        found.location.column
        for found in judge_text(text).diagnostics
        if found.code == "OIDC-ORIGIN" and found.location
    ]

    assert len(set(columns)) == 2


IGNORING = replace(
    declared(
        WEB,
        an_application(responseTypes=IMPLICIT["responseTypes"]),
        source=FakeSource(lines={("metadata", "ignore"): 4}),
    ),
    ignored=frozenset({"grantTypes"}),
)
UNDOING = replace(declared(WEB), undone=Undone("", "R", "", {}))
DOES_NOT_FIT = error(
    "GUARD-IGNORED",
    "what is ignored does not fit what is declared",
    "An update of OidcApplication acme/shop/storefront sends the fields of metadata.ignore as the "
    "service holds them, and the service would refuse it: OIDC_RESPONSE_TYPE_ID_TOKEN needs "
    "OIDC_GRANT_TYPE_IMPLICIT among grantTypes. Declare values that fit what is held, or take the "
    "field out of metadata.ignore.",
    SourceLocation("shop.yaml", 4, 3),
    WEB,
)
COMES_BACK = error(
    "GUARD-MADE-ANEW",
    "an application would come back as a new one",
    "OidcApplication acme/shop/storefront was deleted, and its client id and secret ended with "
    "it. The undo would create it with a new client id and, where it has one, a new client "
    "secret: whatever is deployed with the old ones must get the new ones. If that is meant, "
    "allow just that: --break-glass OidcApplication/acme/shop/storefront=REASON.",
    ref=WEB,
)


@each_row(
    ("resource", "there", "named", "blocks"),
    [
        pytest.param(IGNORING, held(WEB), (), [DOES_NOT_FIT], id="held values that do not fit"),
        pytest.param(IGNORING, held(WEB), (WEB.folded,), [DOES_NOT_FIT], id="let through or not"),
        pytest.param(IGNORING, None, (), [], id="a new object is made as it is declared"),
        pytest.param(
            replace(IGNORING, ignored=frozenset()), held(WEB), (), [], id="the manifest alone"
        ),
        pytest.param(UNDOING, None, (), [COMES_BACK], id="an undo that makes an object again"),
        pytest.param(UNDOING, None, (WEB.folded,), [], id="let through"),
        pytest.param(UNDOING, held(WEB), (), [], id="an undo of an update"),
        pytest.param(declared(WEB), None, (), [], id="a new object"),
    ],
)
def test_what_is_written_may_block(
    resource: Resource,
    there: ObservedObject | None,
    named: Collection[str],
    blocks: list[Diagnostic],
) -> None:
    planned = Planned([(resource, there)], [])

    assert [*RULES.guards(planned, observed(), named)] == blocks
