"""What is wrong or dangerous about one resource, and where it says so."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from reconciler.kinds.action_flow.flows import FLOWS
from reconciler.resources.capabilities import SOURCE
from reconciler.validation.desired import unmet_needs
from tests.rows import each_row
from tests.unit.validation.conftest import Judge
from tests.unit.validation.documents import (
    ACTION,
    ACTION_FLOW,
    APPLICATION,
    IDP,
    ORGANIZATION,
    PROJECT,
    text_of,
    with_metadata,
    with_spec,
)

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


@each_row(
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

    assert len(judgement.diagnostics) == 101
    [more] = [found for found in judgement.diagnostics if found.code == "MANIFEST-MORE"]
    assert (more.summary, more.is_error) == ("51 more findings in this document", False)
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


@pytest.mark.parametrize("field", ["organization", "project", "name"])
def test_every_name_of_a_manifest_is_judged_at_its_place(judge_text: Judge, field: str) -> None:
    document = with_metadata(APPLICATION, **{field: "a\u200bb"})

    [finding] = judge_text(text_of(document)).diagnostics

    assert finding.code == "NAME-INVISIBLE"
    assert finding.location is not None
    assert finding.location.column == text_of(document).index('"a\\u200b') + 1


def units(character: str, length: int) -> str:
    assert unicodedata.is_normalized("NFC", character)
    return character * length


CHARACTERS = [
    pytest.param("x", id="ASCII"),
    pytest.param("é", id="two bytes"),
    pytest.param("店", id="three bytes"),
    pytest.param("\U0001f6d2", id="four bytes"),
]
NAMED = [
    pytest.param(ORGANIZATION, "name", id="organization"),
    pytest.param(PROJECT, "organization", id="owner"),
    pytest.param(PROJECT, "name", id="project"),
    pytest.param(APPLICATION, "project", id="project of an application"),
    pytest.param(APPLICATION, "name", id="application"),
    pytest.param(IDP, "name", id="identity provider"),
]


LENGTHS = [(0, False), (1, True), (199, True), (200, True), (201, False)]


@each_row(("document", "field"), NAMED)
@each_row(("length", "fits"), LENGTHS)
def test_names_have_1_to_200_code_points(
    judge_text: Judge, document: dict[str, object], field: str, length: int, *, fits: bool
) -> None:
    """Each name; how its characters are counted is the same for all."""
    text = text_of(with_metadata(document, **{field: "x" * length}))

    assert judge_text(text).is_valid is fits


@each_row("character", CHARACTERS)
@each_row(("length", "fits"), LENGTHS)
def test_a_character_of_a_name_counts_once(
    judge_text: Judge, character: str, length: int, *, fits: bool
) -> None:
    """However many bytes it has."""
    text = text_of(with_metadata(APPLICATION, name=units(character, length)))

    assert judge_text(text).is_valid is fits


@each_row("field", ["jwtEndpoint", "issuer", "keysEndpoint", "headerName"])
@each_row(("length", "fits"), [(199, True), (200, True), (201, False)])
def test_fields_of_an_identity_provider_have_up_to_200(
    judge_text: Judge, field: str, length: int, *, fits: bool
) -> None:
    start = "" if field == "headerName" else "https://login.example.com/"
    text = text_of(with_spec(IDP, **{field: start.ljust(length, "x")}))

    assert judge_text(text).is_valid is fits


@pytest.mark.parametrize(
    ("field", "fits"),
    [("jwtEndpoint", False), ("issuer", False), ("keysEndpoint", False), ("headerName", True)],
)
def test_only_the_header_may_be_empty(judge_text: Judge, field: str, *, fits: bool) -> None:
    assert judge_text(text_of(with_spec(IDP, **{field: ""}))).is_valid is fits


@each_row("character", CHARACTERS)
@each_row(("length", "fits"), [(0, False), (1, True), (1999, True), (2000, True), (2001, False)])
def test_scripts_have_1_to_2000_code_points(
    judge_text: Judge, character: str, length: int, *, fits: bool
) -> None:
    start = "//" if length > 2 else ";;"[:length]
    text = text_of(with_spec(ACTION, script=start + units(character, length - len(start))))
    judgement = judge_text(text)

    assert (judgement.is_valid and not unmet_needs(judgement.desired, SOURCE)) is fits


def flow(name: str, **spec: Any) -> str:
    return text_of({**with_metadata(ACTION_FLOW, name=name), "spec": spec})


@pytest.mark.parametrize("each", FLOWS, ids=lambda each: each.name)
def test_a_flow_has_its_own_triggers(judge_text: Judge, each: Any) -> None:
    spec = {trigger.name: ["greet", "log"] for trigger in each.triggers}

    assert judge_text(flow(each.name, **spec)).diagnostics == ()


def test_a_flow_may_run_nothing(judge_text: Judge) -> None:
    """That is how a flow is kept empty."""
    assert judge_text(flow("COMPLEMENT_TOKEN")).is_valid


def test_a_trigger_of_another_flow_is_refused_at_its_place(judge_text: Judge) -> None:
    (found,) = judge_text(flow("COMPLEMENT_TOKEN", POST_AUTHENTICATION=["greet"])).diagnostics

    assert found.code == "FLOW-TRIGGER"
    assert found.summary == "COMPLEMENT_TOKEN has no trigger POST_AUTHENTICATION"
    assert found.remedy == (
        "Write PRE_USERINFO_CREATION or PRE_ACCESS_TOKEN_CREATION; POST_AUTHENTICATION is a "
        "trigger of EXTERNAL_AUTHENTICATION or INTERNAL_AUTHENTICATION."
    )


def test_a_flow_of_a_misspelt_name_is_told_the_nearest(judge_text: Judge) -> None:
    (found,) = judge_text(flow("COMPLEMENT_TOKENS")).diagnostics

    assert found.code == "SCHEMA-VALUE"
    assert "Did you mean COMPLEMENT_TOKEN?" in found.remedy


def test_a_misspelt_trigger_is_told_the_nearest(judge_text: Judge) -> None:
    (found,) = judge_text(flow("COMPLEMENT_TOKEN", PRE_USERINFO=["greet"])).diagnostics

    assert found.code == "SCHEMA-UNKNOWN-FIELD"
    assert "PRE_USERINFO_CREATION" in found.remedy


@pytest.mark.parametrize("again", ["greet", "Greet"])
def test_an_action_is_named_once_at_a_trigger(judge_text: Judge, again: str) -> None:
    found = judge_text(flow("COMPLEMENT_TOKEN", PRE_USERINFO_CREATION=["greet", "log", again]))

    assert [each.code for each in found.diagnostics] == ["FLOW-ACTION-TWICE"]
    assert again in found.diagnostics[0].summary
