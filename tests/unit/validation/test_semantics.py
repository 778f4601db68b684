"""What is wrong or dangerous about one resource, and where it says so."""

from __future__ import annotations

import unicodedata

import pytest

from reconciler.resources.capabilities import SOURCE
from reconciler.validation.desired import unmet_needs
from tests.builders import is_valid
from tests.rows import each_row
from tests.unit.conftest import Judge
from tests.unit.validation.documents import (
    ACTION,
    APPLICATION,
    IDP,
    ORGANIZATION,
    PROJECT,
    text_of,
    with_metadata,
    with_spec,
)


def test_of_very_many_findings_the_errors_are_told(judge_text: Judge) -> None:
    """Nobody mends more of one document at a time; but an error never hides behind warnings."""
    uris = [*(f"http://a{number}.test/" for number in range(150)), "https://b.test/#"]

    judgement = judge_text(text_of(with_spec(APPLICATION, redirectUris=uris)))

    assert len(judgement.diagnostics) == 101
    [more] = [found for found in judgement.diagnostics if found.code == "MANIFEST-MORE"]
    assert (more.summary, more.is_error) == ("51 more findings in this document", False)
    assert [found.code for found in judgement.diagnostics if found.is_error] == ["URI-FRAGMENT"]
    assert not judgement.desired.resources


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

    assert is_valid(judge_text(text)) is fits


@each_row("character", CHARACTERS)
@each_row(("length", "fits"), LENGTHS)
def test_a_character_of_a_name_counts_once(
    judge_text: Judge, character: str, length: int, *, fits: bool
) -> None:
    """However many bytes it has."""
    text = text_of(with_metadata(APPLICATION, name=units(character, length)))

    assert is_valid(judge_text(text)) is fits


@each_row("field", ["jwtEndpoint", "issuer", "keysEndpoint", "headerName"])
@each_row(("length", "fits"), [(199, True), (200, True), (201, False)])
def test_fields_of_an_identity_provider_have_up_to_200(
    judge_text: Judge, field: str, length: int, *, fits: bool
) -> None:
    start = "" if field == "headerName" else "https://login.example.com/"
    text = text_of(with_spec(IDP, **{field: start.ljust(length, "x")}))

    assert is_valid(judge_text(text)) is fits


@pytest.mark.parametrize(
    ("field", "fits"),
    [("jwtEndpoint", False), ("issuer", False), ("keysEndpoint", False), ("headerName", True)],
)
def test_only_the_header_may_be_empty(judge_text: Judge, field: str, *, fits: bool) -> None:
    assert is_valid(judge_text(text_of(with_spec(IDP, **{field: ""})))) is fits


@each_row("character", CHARACTERS)
@each_row(("length", "fits"), [(0, False), (1, True), (1999, True), (2000, True), (2001, False)])
def test_scripts_have_1_to_2000_code_points(
    judge_text: Judge, character: str, length: int, *, fits: bool
) -> None:
    start = "//" if length > 2 else ";;"[:length]
    text = text_of(with_spec(ACTION, script=start + units(character, length - len(start))))
    judgement = judge_text(text)

    assert (is_valid(judgement) and not unmet_needs(judgement.desired, SOURCE)) is fits
