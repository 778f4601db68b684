"""What the emitter writes, the reader reads back: for every value there can be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.manifests.export import emit
from reconciler.manifests.text import decode
from reconciler.manifests.yaml_source import read_documents
from tests.effort import cases

CHARACTERS = st.characters(exclude_categories=["Cs"])
ODD = st.sampled_from(
    [
        "", " ", "no", "on", "Yes", "null", "~", "true", "010", "1_000", "12:30:00", "0x1f", "1e3",
        "2024-01-01", "-", "- a", "a: b", "a:", "a #b", "#", "&a", "*a", "!t", "%x", "@x", "`x",
        "|", ">", "'", '"', "{", "[", "a,b", "?", "? a", "---", "...", "<<", "=", "\\", "\t", "\n",
        "a\n", "a\nb", "a\n\n", "\na", " a\nb\n", "a\n b\n", "a\r\nb\n", "a\n\tb\n", "\ta\nb\n",
        "a\n   \nb\n", "a \nb\n", "a\nb", "a\n\nb\n", "a\n#b\n", "a\n---\nb\n", "a\x85b",
        "a\u2028b\n", "\ufeff", "\u202e", "\x00"[1:], "\x7f", "\U0001f600", "x" * 5000,
        "5s", "1.5s", "function f() {\n  return 'x';\n}\n", "1.", "+1", ".5", ".inf", "0o7",
        "a b  c", "trailing ",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(CHARACTERS), ODD, st.text("ab \n\t#:-'\"|", max_size=12))
KEYS = TEXTS.filter(lambda text: len(text) < 100)  # YAML has no long keys
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(TEXTS, st.booleans(), st.none(), st.integers(-(10**18), 10**18)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=cases(150), deadline=None)
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_what_is_written_is_read_back(document: dict[str, Any]) -> None:
    """Whatever a service holds survives the way into a file and back."""
    text = emit(document)

    assert read_documents(decode(text.encode())) == [document]


@pytest.mark.slow
@settings(max_examples=cases(100), deadline=None)
@given(st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=2), min_size=2, max_size=4))
def test_a_stream_of_documents_is_read_back(documents: list[dict[str, Any]]) -> None:
    """Nothing in a document ends it."""
    stream = "---\n".join(map(emit, documents))

    assert read_documents(decode(stream.encode())) == documents


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("https://shop.example.com/cb?x=1", "https://shop.example.com/cb?x=1"),
        ("OIDC_APP_TYPE_WEB", "OIDC_APP_TYPE_WEB"),
        ("1.5s", "1.5s"),
        ("no", '"no"'),
        ("010", '"010"'),
        ("12:30:00", '"12:30:00"'),
        ("a: b", '"a: b"'),
        ("", '""'),
        ("a\u202eb", '"a\\u202eb"'),
        (True, "true"),
        ([], "[]"),
        (["a", "no"], '\n  - a\n  - "no"'),
        ("a\nb\n", "|\n  a\n  b"),
        ("a\nb", "|-\n  a\n  b"),
    ],
)
def test_values_look_as_a_person_would_write_them(value: Any, written: str) -> None:
    """Quotes only where another reader could be misled."""
    gap = "" if written.startswith("\n") else " "

    assert emit({"key": value}) == f"key:{gap}{written}\n"
