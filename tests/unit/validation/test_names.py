"""Names: one spelling, nothing hidden, and lengths counted in code points (B14)."""

from __future__ import annotations

import unicodedata

import pytest

from reconciler.validation.semantics import name_problems
from tests.unit.validation.conftest import Judge
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

COMPOSED, DECOMPOSED = "Caf\u00e9", "Cafe\u0301"


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        pytest.param("storefront", [], id="a plain name"),
        pytest.param("Shop (new) #2 / é", [], id="spaces, signs and accents inside"),
        pytest.param("Магазин", [], id="a Cyrillic name"),
        pytest.param("店 shop", [], id="scripts that do not look alike"),
        pytest.param("shop 🛒", [], id="an emoji"),
        pytest.param(COMPOSED, [], id="NFC"),
        pytest.param(DECOMPOSED, ["NAME-NFC"], id="NFD"),
        pytest.param("\u212bngström", ["NAME-NFC"], id="a sign that NFC replaces"),
        pytest.param(" shop", ["NAME-SPACE"], id="a leading space"),
        pytest.param("shop ", ["NAME-SPACE"], id="a trailing space"),
        pytest.param(" ", ["NAME-SPACE"], id="a blank"),
        pytest.param("shop\u00a0", ["NAME-SPACE"], id="a trailing no-break space"),
        pytest.param("shop\n", ["NAME-SPACE", "NAME-INVISIBLE"], id="a trailing line break"),
        pytest.param("a\tb", ["NAME-INVISIBLE"], id="a tab"),
        pytest.param("a\x1b[31mb", ["NAME-INVISIBLE"], id="a terminal escape"),
        pytest.param("a\x7fb", ["NAME-INVISIBLE"], id="DEL"),
        pytest.param("a\x9bb", ["NAME-INVISIBLE"], id="a C1 control"),
        pytest.param("a\u200bb", ["NAME-INVISIBLE"], id="a zero-width space"),
        pytest.param("a\u200db", ["NAME-INVISIBLE"], id="a zero-width joiner"),
        pytest.param("a\u202eb", ["NAME-INVISIBLE"], id="a direction override"),
        pytest.param("a\u2066b", ["NAME-INVISIBLE"], id="a direction isolate"),
        pytest.param("a\u2028b", ["NAME-INVISIBLE"], id="a line separator"),
        pytest.param("a\u00adb", ["NAME-INVISIBLE"], id="a soft hyphen"),
        pytest.param("a\ufe0fb", ["NAME-INVISIBLE"], id="a variation selector"),
        pytest.param("a\u3164b", ["NAME-INVISIBLE"], id="a letter drawn as nothing"),
        pytest.param("a\ufeffb", ["NAME-INVISIBLE"], id="a byte order mark"),
        pytest.param("\u0430pple", ["NAME-CONFUSABLE"], id="a Cyrillic letter among Latin ones"),
        pytest.param("\u03bfffice", ["NAME-CONFUSABLE"], id="a Greek letter among Latin ones"),
        pytest.param("\uff41pple", ["NAME-CONFUSABLE"], id="a full-width letter"),
        pytest.param("\U0001d41aa", ["NAME-CONFUSABLE"], id="a mathematical letter"),
    ],
)
def test_a_name_is_what_it_looks_like(name: str, codes: list[str]) -> None:
    problems = name_problems(name)

    assert [problem.code for problem in problems] == codes
    assert all(problem.is_error is (problem.code != "NAME-CONFUSABLE") for problem in problems)
    assert all(problem.remedy.isascii() for problem in problems)


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


@pytest.mark.parametrize("character", CHARACTERS)
@pytest.mark.parametrize(("document", "field"), NAMED)
@pytest.mark.parametrize(
    ("length", "fits"), [(0, False), (1, True), (199, True), (200, True), (201, False)]
)
def test_names_have_1_to_200_code_points(  # the table has five columns
    judge_text: Judge,
    document: dict[str, object],
    field: str,
    character: str,
    length: int,
    *,
    fits: bool,
) -> None:
    text = text_of(with_metadata(document, **{field: units(character, length)}))

    assert judge_text(text).is_valid is fits


@pytest.mark.parametrize("field", ["jwtEndpoint", "issuer", "keysEndpoint", "headerName"])
@pytest.mark.parametrize(("length", "fits"), [(199, True), (200, True), (201, False)])
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


@pytest.mark.parametrize("character", CHARACTERS)
@pytest.mark.parametrize(
    ("length", "fits"), [(0, False), (1, True), (1999, True), (2000, True), (2001, False)]
)
def test_scripts_have_1_to_2000_code_points(
    judge_text: Judge, character: str, length: int, *, fits: bool
) -> None:
    start = "//" if length > 2 else ";;"[:length]
    text = text_of(with_spec(ACTION, script=start + units(character, length - len(start))))

    assert judge_text(text).is_valid is fits
