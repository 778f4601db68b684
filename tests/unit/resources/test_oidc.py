"""The rules that span several fields of an application, which both sides refuse by."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.resources.normal import normal_form
from reconciler.resources.oidc import FieldProblem, has_client_secret, oidc_problems
from reconciler.resources.ref import Kind

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


@pytest.mark.parametrize(
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
