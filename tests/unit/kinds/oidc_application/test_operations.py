"""Applications: what is refused, origins, and what an answer shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.kinds.oidc_application.operations import (
    allowed_origins,
    app_view,
    check_spec,
    compliance_view,
)
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.service.domain.refusal import Refusal
from tests.unit.service.operations.test_answers import a_row

HASH = "hash of it"
OIDC = dict(DEFAULTS[Kind.OIDC_APPLICATION])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN_TOKEN"]}, "responseTypes[0]"),
        ({"grantTypes": ["OIDC_GRANT_TYPE_REFRESH_TOKEN"]}, "responseTypes[0]"),
        ({"additionalOrigins": ["https://a:443"]}, "additionalOrigins[0]"),
        ({"additionalOrigins": ["https://a", "a"]}, "additionalOrigins[1]"),
    ],
)
def test_a_configuration_that_no_flow_can_carry_out_is_refused(
    changes: dict[str, Any], field: str
) -> None:
    """On create and on update alike; the place in the list is named."""
    with pytest.raises(Refusal) as caught:
        check_spec({**OIDC, **changes})
    assert (caught.value.code, caught.value.details["field"]) == (3, field)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"grantTypes": ["OIDC_GRANT_TYPE_DEVICE_CODE"]},
        {"redirectUris": ["", "no uri", "javascript:x", "http://"]},
    ],
)
def test_redirect_uris_are_not_the_services_to_judge(changes: dict[str, Any]) -> None:
    """The reconciler judges them harder; the service refuses none."""
    check_spec({**OIDC, **changes})


@pytest.mark.parametrize(
    ("uris", "others", "origins"),
    [
        ([], [], []),
        (["https://a/x", "https://a/y?z#f"], ["https://b"], ["https://a", "https://b"]),
        (["https://a:8443/"], ["https://a:8443"], ["https://a:8443"]),
        (["https://user:canary@a/x"], [], ["https://a"]),
        (["no uri", "mailto:a", "http://[bad", "app://b"], [], ["app://b"]),
    ],
)
def test_allowed_origins_are_those_of_the_redirect_uris_then_the_others(
    uris: list[str], others: list[str], origins: list[str]
) -> None:
    """Each once, in order, and never with a password in it."""
    assert allowed_origins({"redirectUris": uris, "additionalOrigins": others}) == origins


def test_an_application_is_answered_without_its_secret() -> None:
    answer = app_view(a_row(spec=json.dumps(OIDC), secret_hash=HASH))

    assert answer["oidcConfig"]["clientId"] == "c"
    assert HASH not in str(answer)


def test_compliance_is_answered_in_sentences() -> None:
    found = compliance_view({**OIDC, "redirectUris": []})

    assert set(found) == {"noneCompliant", "complianceProblems"}
    assert all(each["localizedMessage"] for each in found["complianceProblems"])
