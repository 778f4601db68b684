"""One table per service: what it takes beyond the source, and what a refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.kinds.action.fields import MAX_SCRIPT
from reconciler.resources.capabilities import (
    CAPABILITIES,
    SOURCE,
    fields_of_source,
    refusal,
    uses,
)
from reconciler.resources.ref import Kind
from tests.rows import each_row

GRANT = "OIDC_GRANT_TYPE_TOKEN_EXCHANGE"
NEWER = ["zitadel-3", "zitadel-4"]


def takers(kind: Kind, spec: dict[str, Any]) -> list[str]:
    """Return the names of the services that take everything of a spec."""
    found = [*uses(kind, spec)]
    return [name for name, each in CAPABILITIES.items() if all(map(each.takes, found))]


def test_the_source_is_what_every_service_takes() -> None:
    assert [*CAPABILITIES] == [SOURCE, *NEWER]
    assert not CAPABILITIES[SOURCE].is_newer


@each_row(
    ("script", "names"),
    [
        pytest.param("x" * 2000, [SOURCE, *NEWER], id="2,000 characters"),
        pytest.param("\U0001f511" * 2000, [SOURCE, *NEWER], id="2,000 characters of 4 bytes"),
        pytest.param("x" * 2001, NEWER, id="2,001 characters"),
        pytest.param("x" * 40_000, NEWER, id="40,000 bytes"),
        pytest.param("é" * 20_000, NEWER, id="20,000 characters of 2 bytes"),
        pytest.param("é" * 20_000 + "x", [], id="40,001 bytes in fewer characters"),
    ],
)
def test_a_script_counts_in_characters_here_and_in_bytes_there(
    script: str, names: list[str]
) -> None:
    assert takers(Kind.ACTION, {"script": script}) == names


@pytest.mark.parametrize("word", [GRANT, "TOKEN_EXCHANGE"])
def test_a_value_beyond_the_source_is_found_where_it_is_written(word: str) -> None:
    spec = {"grantTypes": ["AUTHORIZATION_CODE", word]}

    [found] = uses(Kind.OIDC_APPLICATION, spec)

    assert found.path == ("spec", "grantTypes", 1)
    assert takers(Kind.OIDC_APPLICATION, spec) == NEWER


def test_a_plain_spec_uses_nothing_beyond() -> None:
    assert [*uses(Kind.OIDC_APPLICATION, {"grantTypes": ["IMPLICIT"]})] == []
    assert [*uses(Kind.ACTION, {"script": "x"}), *uses(Kind.PROJECT, {})] == []


def test_an_empty_header_is_for_services_that_follow_the_source() -> None:
    assert takers(Kind.IDP_JWT_CONFIG, {"headerName": ""}) == [SOURCE]
    assert takers(Kind.IDP_JWT_CONFIG, {"headerName": "x-token"}) == [SOURCE, *NEWER]


def test_a_refusal_names_the_capabilities_that_would_do() -> None:
    [long] = uses(Kind.ACTION, {"script": "x" * 2001})

    at_hand = refusal(long, CAPABILITIES[SOURCE], is_chosen=False)
    chosen = refusal(long, CAPABILITIES[SOURCE], is_chosen=True)
    hopeless = refusal(long._replace(text="é" * 30_000), CAPABILITIES[NEWER[1]], is_chosen=False)

    short = "It has 2001; shorten it to at most 2000."
    assert at_hand == (
        "SCHEMA-TOO-LONG",
        "script is longer than 2000 characters",
        f"{short} A service with the capabilities zitadel-3 or zitadel-4 takes it.",
    )
    assert chosen[2].endswith(
        "takes it: choose them with --capabilities, or with `capabilities` of the environment."
    )
    assert hopeless[1:] == (
        "script is longer than 40000 bytes",
        "It has 60000; shorten it to at most 40000.",
    )


def test_this_projects_service_takes_what_the_source_says() -> None:
    script = {each.name: each for each in fields_of_source(Kind.ACTION)}["script"]
    ours = {each.name: each for each in fields_of_source(Kind.OIDC_APPLICATION)}

    assert script.longest == MAX_SCRIPT
    assert GRANT not in ours["grantTypes"].words
    assert len(ours["grantTypes"].words) == 4
