"""The rules that span several fields of an application, which both sides refuse by."""

from __future__ import annotations

from itertools import chain, combinations, product
from typing import Any

import pytest

from reconciler.kinds.oidc_application.compliance import (
    MESSAGES,
    NOTE,
    PREFIX,
    FieldProblem,
    breaking_uri,
    compliance_problems,
    has_client_secret,
    is_none_compliant,
    oidc_problems,
)
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind
from tests.rows import each_row

CODE, ID_TOKEN, BOTH_TOKENS = (
    f"OIDC_RESPONSE_TYPE_{name}" for name in ("CODE", "ID_TOKEN", "ID_TOKEN_TOKEN")
)
AUTHORIZATION, IMPLICIT, REFRESH, DEVICE = (
    f"OIDC_GRANT_TYPE_{name}"
    for name in ("AUTHORIZATION_CODE", "IMPLICIT", "REFRESH_TOKEN", "DEVICE_CODE")
)


def spec(**fields: Any) -> dict[str, Any]:
    return normal_form(Kind.OIDC_APPLICATION, fields)


@pytest.mark.parametrize(
    ("method", "has"),
    [("BASIC", True), ("POST", True), ("NONE", False), ("PRIVATE_KEY_JWT", False)],
)
def test_who_signs_in_with_a_secret_has_one(method: str, has: object) -> None:
    """A secret that nobody can use is not made, and one that is needed is not forgotten."""
    assert has_client_secret(spec(authMethodType=f"OIDC_AUTH_METHOD_TYPE_{method}")) is has


@each_row(
    ("responses", "grants", "uncovered"),
    [
        ([CODE], [AUTHORIZATION], []),
        ([CODE], [DEVICE], []),
        ([CODE], [AUTHORIZATION, REFRESH], []),
        ([CODE], [IMPLICIT, REFRESH], [(0, CODE, f"{AUTHORIZATION} or {DEVICE}")]),
        ([ID_TOKEN], [IMPLICIT], []),
        ([BOTH_TOKENS], [IMPLICIT], []),
        ([CODE, ID_TOKEN], [AUTHORIZATION], [(1, ID_TOKEN, IMPLICIT)]),
        (
            [CODE, ID_TOKEN, BOTH_TOKENS],
            [REFRESH],
            [
                (0, CODE, f"{AUTHORIZATION} or {DEVICE}"),
                (1, ID_TOKEN, IMPLICIT),
                (2, BOTH_TOKENS, IMPLICIT),
            ],
        ),
    ],
)
def test_every_response_type_needs_a_grant_that_gives_it(
    responses: list[str], grants: list[str], uncovered: list[tuple[int, str, str]]
) -> None:
    """Each that nothing gives is told by its place in the list, with what would."""
    assert oidc_problems(spec(responseTypes=responses, grantTypes=grants)) == [
        FieldProblem("responseTypes", place, f"{response} needs {wanted} among grantTypes")
        for place, response, wanted in uncovered
    ]


def test_what_is_wrong_is_told_all_at_once() -> None:
    """Response types and origins, each by its field and place."""
    found = oidc_problems(
        spec(
            responseTypes=[ID_TOKEN],
            additionalOrigins=["https://a.test", "https://a.test/path", "b"],
        )
    )

    assert found == [
        FieldProblem("responseTypes", 0, f"{ID_TOKEN} needs {IMPLICIT} among grantTypes"),
        FieldProblem(
            "additionalOrigins",
            1,
            "an origin has no path, query or fragment: write https://a.test",
        ),
        FieldProblem(
            "additionalOrigins",
            2,
            "write scheme, host and port only, such as https://app.example.com",
        ),
    ]


CODE = "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"
IMPLICIT = "OIDC_GRANT_TYPE_IMPLICIT"
REFRESH = "OIDC_GRANT_TYPE_REFRESH_TOKEN"
DEVICE = "OIDC_GRANT_TYPE_DEVICE_CODE"
SECURE, PLAIN, LOCAL, CUSTOM = (
    "https://a.test/cb",
    "http://a.test/cb",
    "http://localhost/cb",
    "app:/",
)


def problems(app_type: str, grants: list[str], auth: str, uris: list[str]) -> list[str]:
    spec = normal_form(
        Kind.OIDC_APPLICATION,
        {
            "appType": f"OIDC_APP_TYPE_{app_type}",
            "grantTypes": grants,
            "authMethodType": f"OIDC_AUTH_METHOD_TYPE_{auth}",
            "redirectUris": uris,
        },
    )
    return [key.removeprefix(PREFIX + "V1.") for key in compliance_problems(spec)]


@each_row(
    ("app_type", "grants", "auth", "uris", "keys"),
    [
        ("WEB", [CODE], "BASIC", [SECURE], []),
        ("WEB", [CODE], "BASIC", [PLAIN], []),
        ("WEB", [CODE], "BASIC", [], ["NotCompliant", "NoRedirectUris"]),
        (
            "WEB",
            [CODE],
            "BASIC",
            ["app://cb"],
            ["NotCompliant", "Code.RedirectUris.CustomOnlyForNative"],
        ),
        (
            "USER_AGENT",
            [CODE],
            "NONE",
            [LOCAL],
            ["NotCompliant", "Code.RedirectUris.HttpOnlyForWeb"],
        ),
        (
            "USER_AGENT",
            [CODE],
            "BASIC",
            [SECURE],
            ["NotCompliant", "UserAgent.AuthMethodType.NotNone"],
        ),
        (
            "NATIVE",
            [CODE],
            "NONE",
            ["http://10.0.0.1/cb"],
            ["NotCompliant", "Native.RedirectUris.MustBeHttpLocalhost"],
        ),
        ("NATIVE", [CODE, REFRESH], "NONE", ["app://cb", "http://127.0.0.1/cb"], []),
        ("NATIVE", [CODE], "NONE", ["http://[::1]:8080/cb"], []),
        (
            "NATIVE",
            [CODE],
            "NONE",
            ["http://localhost.evil.test/cb"],
            ["NotCompliant", "Native.RedirectUris.MustBeHttpLocalhost"],
        ),
        (
            "NATIVE",
            [CODE],
            "NONE",
            ["http://[::1/cb"],
            ["NotCompliant", "Native.RedirectUris.MustBeHttpLocalhost"],
        ),
        ("NATIVE", [CODE], "BASIC", [SECURE], ["NotCompliant", "Native.AuthMethodType.NotNone"]),
        ("WEB", [CODE, IMPLICIT], "BASIC", ["http://a"], ["NotAllCombinationsAreAllowed"]),
        ("WEB", [CODE, IMPLICIT], "BASIC", [SECURE], []),
        ("WEB", [CODE], "BASIC", [SECURE, PLAIN], []),
        (
            "WEB",
            [REFRESH, IMPLICIT],
            "BASIC",
            [PLAIN],
            [
                "NotCompliant",
                "GrantType.Refresh.NoAuthCode",
                "Implicit.RedirectUris.HttpNotAllowed",
            ],
        ),
        (
            "WEB",
            [CODE, IMPLICIT],
            "BASIC",
            [CUSTOM],
            ["NotCompliant", "Implicit.RedirectUris.CustomNotAllowed"],
        ),
        (
            "WEB",
            [IMPLICIT],
            "NONE",
            ["http://a"],
            ["NotCompliant", "Implicit.RedirectUris.HttpNotAllowed"],
        ),
        (
            "NATIVE",
            [IMPLICIT],
            "NONE",
            [CUSTOM],
            ["NotCompliant", "Implicit.RedirectUris.CustomNotAllowed"],
        ),
        ("WEB", [DEVICE], "NONE", [], []),
        ("WEB", [DEVICE, CODE], "NONE", [], ["NotCompliant", "NoRedirectUris"]),
        (
            "WEB",
            [REFRESH],
            "NONE",
            [],
            ["NotCompliant", "NoRedirectUris", "GrantType.Refresh.NoAuthCode"],
        ),
        ("WEB", [REFRESH, DEVICE], "NONE", [], []),
    ],
)
def test_the_examples_of_the_wire_facts(
    app_type: str, grants: list[str], auth: str, uris: list[str], keys: list[str]
) -> None:
    assert problems(app_type, grants, auth, uris) == keys


def test_over_every_configuration() -> None:
    """Each key once, each with its sentence, and the headline exactly where it belongs."""
    every = [CODE, IMPLICIT, REFRESH, DEVICE]
    grants = list(chain.from_iterable(combinations(every, size) for size in range(1, 5)))
    kinds = [SECURE, PLAIN, LOCAL, CUSTOM]
    uris = list(chain.from_iterable(combinations(kinds, size) for size in range(4)))
    for app_type, grant, auth, uri in product(
        ("WEB", "USER_AGENT", "NATIVE"), grants, ("NONE", "BASIC"), uris
    ):
        keys = [PREFIX + "V1." + key for key in problems(app_type, [*grant], auth, [*uri])]

        assert len(keys) == len(set(keys))
        assert set(keys) <= set(MESSAGES)
        assert (PREFIX + "V1.NotCompliant" in keys) == is_none_compliant(keys)
        assert (NOTE not in keys) or keys == [NOTE] or "AuthMethodType" in keys[-1]


def test_every_key_has_a_sentence_of_ours() -> None:
    assert all(sentence.endswith(".") for sentence in MESSAGES.values())


HTTPS, HTTP, LOOPBACK, CUSTOM = (
    "https://a.example.com/",
    "http://a.example.com/",
    "http://[::1]/",
    "app:/callback",
)


@each_row(
    ("rule", "uris", "position"),
    [
        ("V1.Code.RedirectUris.HttpOnlyForWeb", [HTTPS, CUSTOM, HTTP], 2),
        ("V1.Code.RedirectUris.CustomOnlyForNative", [HTTPS, HTTP, CUSTOM], 2),
        ("V1.Implicit.RedirectUris.HttpNotAllowed", [HTTPS, LOOPBACK], 1),
        ("V1.Implicit.RedirectUris.CustomNotAllowed", [CUSTOM], 0),
        ("V1.Native.RedirectUris.MustBeHttpLocalhost", [LOOPBACK, HTTPS, CUSTOM, HTTP], 3),
        ("V1.Native.RedirectUris.MustBeHttpLocalhost", [LOOPBACK], None),
        ("V1.NoRedirectUris", [HTTP], None),
    ],
)
def test_the_first_uri_that_breaks_a_rule_is_found(
    rule: str, uris: list[str], position: int | None
) -> None:
    assert f"{PREFIX}{rule}" in MESSAGES
    assert breaking_uri(f"{PREFIX}{rule}", uris) == position
