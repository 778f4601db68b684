"""Digests of calls under an idempotency key: equal where two calls mean the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.examples import CODE
from tests.unit.service.asking import Asking


@pytest.mark.parametrize(
    "said",
    [
        {"responseTypes": []},
        {"responseTypes": ["OIDC_RESPONSE_TYPE_CODE"] * 2},
        {"grantTypes": []},
        {"grantTypes": [CODE]},
        {"clockSkew": "0.0s"},
        {"loginVersion": None},
        {"devMode": False, "version": "OIDC_VERSION_1_0", "additionalOrigins": []},
    ],
)
def test_a_default_may_be_said_or_left_out(ask: Asking, said: dict[str, Any]) -> None:
    first = ask.an_app(idempotency_key="k1")

    assert ask.an_app(idempotency_key="k1", **said) == first


def test_types_are_compared_as_sets(ask: Asking) -> None:
    grants = [CODE, "OIDC_GRANT_TYPE_IMPLICIT"]
    types = ["OIDC_RESPONSE_TYPE_CODE", "OIDC_RESPONSE_TYPE_ID_TOKEN"]
    first = ask.an_app(idempotency_key="k1", responseTypes=types, grantTypes=grants)
    again = ask.an_app(idempotency_key="k1", responseTypes=types[::-1], grantTypes=grants[::-1])

    assert again == first


def test_the_order_of_addresses_matters(ask: Asking) -> None:
    uris = ["https://a.example", "https://b.example"]
    ask.an_app(idempotency_key="k1", redirectUris=uris)

    refusal = ask.refused(
        "AddOIDCApp",
        projectId=ask.project,
        name="web",
        idempotency_key="k1",
        redirectUris=uris[::-1],
    )

    assert refusal.reason == "idempotency.reused"
