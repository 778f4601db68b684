"""Configurations that are refused, client secrets, and origins."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service.domain.oidc_application import (
    ALPHABET,
    allowed_origins,
    check_spec,
    hash_of,
    make_secret,
)
from reconciler.service.domain.refusal import Refusal

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


def test_a_secret_is_letters_and_digits_each_equally_likely() -> None:
    """Bytes that would favour some letters are thrown away, and more are asked for."""
    asked = []

    def unlucky_at_first(count: int) -> bytes:
        asked.append(count)
        return bytes([255] * count) if len(asked) < 3 else bytes(range(count))

    secret = make_secret(unlucky_at_first)

    assert re.fullmatch("[A-Za-z0-9]{64}", secret.reveal())
    assert len(asked) == 3
    counts = [0] * 62
    for byte in range(248):
        letter = make_secret(bytes([byte]).__mul__).reveal()[0]
        counts[ALPHABET.index(letter)] += 1
    assert set(counts) == {4}


def test_a_secret_is_kept_as_its_hash() -> None:
    """SHA-256 in hexadecimal: a random secret needs no slow hash."""
    assert hash_of(Secret("a")) == (
        "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    )
