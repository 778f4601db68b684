"""Text of a YAML file: its encoding, its invisible characters, and words for what is not YAML."""

from __future__ import annotations

import pytest

from reconciler.diagnostics import SourceLocation, error
from reconciler.manifests.text import (
    NOWHERE,
    Mark,
    TextError,
    Trace,
    decode,
    place_at_end,
    syntax_fault,
)
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
    with pytest.raises(TextError) as refused:
        decode(data)

    found, summary, remedy, mark = refused.value.fault
    assert (found, mark[:2]) == (code, place)
    assert summary
    assert remedy.endswith(".")


@pytest.mark.parametrize(
    ("before", "place"),
    [("", (1, 1)), ("ab", (1, 3)), ("a\n", (2, 1)), ("\ufeffa", (1, 2)), ("é\n\nb", (3, 2))],
)
def test_the_place_after_a_text_counts_from_one(before: str, place: tuple[int, int]) -> None:
    assert place_at_end(before)[:2] == place


@pytest.mark.parametrize(
    ("text", "problem", "mark", "summary"),
    [
        ("a: b: c", "mapping values are not allowed in this context", Mark(1, 5), "a colon"),
        ("a: @x", "found character that cannot start any token", Mark(1, 4), "starts with @"),
        ("a:\n\tb: 1", "found character that cannot start any token", Mark(2, 1), "a tab"),
        ("a: ?", "found character that cannot start any token", Mark(9, 9), "not YAML"),
        ("a", "a sentence that no version of the parser has", Mark(1, 1), "not YAML"),
    ],
)
def test_a_sentence_of_the_parser_gets_words_for_its_author(
    text: str, problem: str, mark: Mark, summary: str
) -> None:
    code, told, remedy, place = syntax_fault(text, problem, mark)

    assert (code, place) == ("YAML-SYNTAX", mark)
    assert summary in told
    assert remedy.endswith(".")


INNER = [1]
TOP = {"a": INNER}


@pytest.fixture
def trace() -> Trace:
    """Return the trace of a file with one document: a mapping with a list in it."""
    trace = Trace("a.yaml", documents=[TOP])
    trace.values = {
        (id(trace.documents), 0): Mark(1, 1),
        (id(TOP), "a"): Mark(2, 4),
        (id(INNER), 0): Mark(2, 5, "'"),
    }
    trace.keys = {(id(TOP), "a"): Mark(2, 1)}
    return trace


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ((), (1, 1), (1, 1)),
        (("a",), (2, 4), (2, 1)),
        (("a", 0), (2, 5), (2, 5)),
        (("a", 7), (2, 4), (2, 1)),
        (("a", -1), (2, 4), (2, 1)),
        (("a", "x", "y"), (2, 4), (2, 1)),
        (("missing",), (1, 1), (1, 1)),
    ],
)
def test_a_path_leads_to_its_value_or_to_what_is_above(
    trace: Trace, path: tuple[str | int, ...], value: tuple[int, int], key: tuple[int, int]
) -> None:
    assert trace.value_mark(0, path)[:2] == value
    assert trace.key_mark(0, path)[:2] == key


def test_what_has_no_place_is_nowhere() -> None:
    assert Trace("a.yaml", documents=[None]).value_mark(0, ()) == NOWHERE


def test_a_finding_stops_the_run_at_its_place(trace: Trace) -> None:
    trace.refuse("YAML-X", "summary", "Remedy.", Mark(3, 4))
    trace.refuse("YAML-Y", "summary", "Remedy.")

    assert trace.findings == [
        error("YAML-X", "summary", "Remedy.", SourceLocation("a.yaml", 3, 4)),
        error("YAML-Y", "summary", "Remedy.", SourceLocation("a.yaml")),
    ]
