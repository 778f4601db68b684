"""Names: what can never be right, what is dangerous, and what is fine."""

from __future__ import annotations

import pytest

from reconciler.rules.texts import name_problems
from tests.rows import each_row

COMPOSED, DECOMPOSED = "Caf\u00e9", "Cafe\u0301"


@each_row(
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
        pytest.param("a\U000e0100b", ["NAME-INVISIBLE"], id="a variation selector of ideographs"),
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
