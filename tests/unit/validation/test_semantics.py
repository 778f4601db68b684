"""What is wrong or dangerous about one resource, and where it says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.validation.conftest import Judge
from tests.unit.validation.documents import APPLICATION, IDP, text_of, with_spec

NATIVE = {"appType": "OIDC_APP_TYPE_NATIVE", "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}
IMPLICIT = {
    "grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT"],
    "responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN"],
}


@pytest.mark.parametrize(
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
    - OIDC_RESPONSE_TYPE_ID_TOKEN_TOKEN
    - OIDC_RESPONSE_TYPE_CODE
  additionalOrigins: [https://a.test, b.test]
  idTokenUserinfoAssertion: true
"""
    found = [
        (finding.code, *finding.location[1:])
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


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        pytest.param({}, [], id="nothing out of the ordinary"),
        pytest.param({"headerName": ""}, [], id="no header name"),
        pytest.param({"headerName": "X-Token_1"}, [], id="a header name with signs"),
        pytest.param(
            {"jwtEndpoint": "http://localhost:8080/jwt"}, [], id="plain http to ourselves"
        ),
        pytest.param({"issuer": "partner"}, [], id="an issuer that is no URL"),
        pytest.param({"jwtEndpoint": "/jwt"}, [("IDP-ENDPOINT", True)], id="a path"),
        pytest.param({"keysEndpoint": "login.test/keys"}, [("IDP-ENDPOINT", True)], id="no scheme"),
        pytest.param({"keysEndpoint": "file:///keys"}, [("IDP-ENDPOINT", True)], id="a file"),
        pytest.param(
            {"keysEndpoint": "HTTPS://a.test/"}, [("IDP-ENDPOINT", True)], id="upper case"
        ),
        pytest.param({"keysEndpoint": "https://u@a.test/"}, [("URI-USERINFO", True)], id="a user"),
        pytest.param({"keysEndpoint": "https:///keys"}, [("URI-HOST", True)], id="no host"),
        pytest.param(
            {"keysEndpoint": "https://a.test/ k"}, [("URI-CHARACTER", True)], id="a space"
        ),
        pytest.param({"jwtEndpoint": "http://a.test/"}, [("IDP-HTTP", False)], id="plain http"),
        pytest.param({"keysEndpoint": "http://a.test/"}, [("IDP-HTTP", False)], id="keys by http"),
        pytest.param({"issuer": "http://a.test"}, [("IDP-HTTP", False)], id="an issuer by http"),
        pytest.param({"headerName": "a b"}, [("IDP-HEADER", True)], id="a header with a space"),
        pytest.param(
            {"headerName": "a\r\nb"}, [("IDP-HEADER", True)], id="a header with a line end"
        ),
        pytest.param({"headerName": "a\n"}, [("IDP-HEADER", True)], id="a header that ends a line"),
        pytest.param({"headerName": "a:"}, [("IDP-HEADER", True)], id="a header with a colon"),
        pytest.param({"headerName": "ü"}, [("IDP-HEADER", True)], id="a header outside ASCII"),
        *(
            pytest.param({"headerName": name}, [("IDP-HEADER", True)], id=name)
            for name in (
                *("Host", "content-length", "Transfer-Encoding", "connection", "upgrade", "te"),
                *("trailer", "cookie", "Set-Cookie"),
            )
        ),
    ],
)
def test_identity_providers(
    judge_text: Judge, changes: dict[str, str], found: list[tuple[str, bool]]
) -> None:
    judgement = judge_text(text_of(with_spec(IDP, **changes)))

    assert [(finding.code, finding.is_error) for finding in judgement.diagnostics] == found


def test_of_very_many_findings_the_errors_are_told(judge_text: Judge) -> None:
    """Nobody mends more of one document at a time; but an error never hides behind warnings."""
    uris = [*(f"http://a{number}.test/" for number in range(150)), "https://b.test/#"]

    judgement = judge_text(text_of(with_spec(APPLICATION, redirectUris=uris)))

    assert len(judgement.diagnostics) == 100
    assert [found.code for found in judgement.diagnostics if found.is_error] == ["URI-FRAGMENT"]
    assert not judgement.desired.resources


def test_each_wrong_origin_is_told_at_its_own_place(judge_text: Judge) -> None:
    """Of two that are alike, too."""
    text = text_of(with_spec(APPLICATION, additionalOrigins=["null", "null"]))

    columns = [
        found.location.column
        for found in judge_text(text).diagnostics
        if found.code == "OIDC-ORIGIN" and found.location
    ]

    assert len(set(columns)) == 2
