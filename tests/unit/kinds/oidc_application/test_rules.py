"""What is wrong or dangerous about an application, and where its manifest says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rows import each_row
from tests.unit.conftest import Judge
from tests.unit.validation.documents import APPLICATION, text_of, with_spec

NATIVE = {"appType": "OIDC_APP_TYPE_NATIVE", "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}

IMPLICIT = {
    "grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT"],
    "responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN"],
}


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
    assert judgement.is_valid is (len(judgement.desired.resources) == 1)


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

    assert not judge_text(text_of(with_spec(APPLICATION, **changes[code]))).is_valid


def test_a_compliance_problem_carries_the_key_of_the_service(judge_text: Judge) -> None:
    """And no headline: that there is a problem is no problem of its own."""
    [finding] = judge_text(text_of(with_spec(APPLICATION, redirectUris=[]))).diagnostics

    assert finding.summary == "breaks the rule V1.NoRedirectUris"
    assert "Application.OIDC.V1.NoRedirectUris" in finding.remedy
    assert not finding.is_error


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


def test_a_default_that_does_not_fit_stands_at_what_does_not_fit_it(judge_text: Judge) -> None:
    document = with_spec(APPLICATION, grantTypes=["OIDC_GRANT_TYPE_IMPLICIT"])

    found = judge_text(text_of(document)).diagnostics

    assert found[0].location is not None
    assert found[0].location.column == text_of(document).index('["OIDC_GRANT') + 1


def test_each_wrong_origin_is_told_at_its_own_place(judge_text: Judge) -> None:
    """Of two that are alike, too."""
    text = text_of(with_spec(APPLICATION, additionalOrigins=["null", "null"]))

    columns = [
        found.location.column
        for found in judge_text(text).diagnostics
        if found.code == "OIDC-ORIGIN" and found.location
    ]

    assert len(set(columns)) == 2
