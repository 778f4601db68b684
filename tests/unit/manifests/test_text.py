"""Text of a YAML file: its encoding, its invisible characters, and words for what is not YAML."""

from __future__ import annotations

import pytest

from reconciler.diagnostics import FindingError, SourceLocation
from reconciler.manifests.text import decode, place_at_end, syntax_fault
from tests.rows import each_row


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a: 1\n", "a: 1\n"),
        ("é: 😀".encode(), "é: 😀"),
        (b"\xef\xbb\xbfa: 1", "\ufeffa: 1".removeprefix("\ufeff")),
    ],
)
def test_utf_8_is_read_without_its_mark(data: bytes, text: str) -> None:
    assert decode(data) == text


@each_row(
    ("data", "code", "place"),
    [
        pytest.param("a: 1".encode("utf-16"), "YAML-ENCODING", (1, 1), id="UTF-16"),
        pytest.param("a".encode("utf-32"), "YAML-ENCODING", (1, 1), id="UTF-32"),
        pytest.param(b"a: 1\nb: \xe9", "YAML-ENCODING", (2, 4), id="Latin-1"),
        pytest.param("a\u2028b".encode(), "YAML-CHARACTER", (1, 2), id="a line separator"),
        pytest.param("a\nbc\ufeff".encode(), "YAML-CHARACTER", (2, 3), id="a mark inside"),
        pytest.param("é\x85".encode(), "YAML-CHARACTER", (1, 2), id="a next line"),
    ],
)
def test_anything_else_is_refused_with_its_place(
    data: bytes, code: str, place: tuple[int, int]
) -> None:
    with pytest.raises(FindingError) as refused:
        decode(data, "a.yaml")

    found = refused.value.finding
    assert (found.code, found.location) == (code, SourceLocation("a.yaml", *place))
    assert found.summary
    assert found.remedy.endswith(".")


@pytest.mark.parametrize(
    ("before", "place"),
    [("", (1, 1)), ("ab", (1, 3)), ("a\n", (2, 1)), ("\ufeffa", (1, 2)), ("é\n\nb", (3, 2))],
)
def test_the_place_after_a_text_counts_from_one(before: str, place: tuple[int, int]) -> None:
    assert place_at_end(before, "a.yaml") == SourceLocation("a.yaml", *place)


@pytest.mark.parametrize(
    ("text", "problem", "place", "summary"),
    [
        ("a: b: c", "mapping values are not allowed in this context", (1, 5), "a colon"),
        ("a: @x", "found character that cannot start any token", (1, 4), "starts with @"),
        ("a:\n\tb: 1", "found character that cannot start any token", (2, 1), "a tab"),
        ("a: ?", "found character that cannot start any token", (9, 9), "not YAML"),
        ("a", "a sentence that no version of the parser has", (1, 1), "not YAML"),
    ],
)
def test_a_sentence_of_the_parser_gets_words_for_its_author(
    text: str, problem: str, place: tuple[int, int], summary: str
) -> None:
    at = SourceLocation("a.yaml", *place)

    found = syntax_fault(text, problem, at)

    assert (found.code, found.location) == ("YAML-SYNTAX", at)
    assert summary in found.summary
    assert found.remedy.endswith(".")
