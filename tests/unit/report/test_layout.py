"""Lines that fit their stream, and one JSON document."""

from __future__ import annotations

import pytest

from reconciler.report.layout import fitted, wrapped
from tests.rows import each_row


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        pytest.param("one two three", 0, "one two three", id="no limit"),
        pytest.param("one two three", 13, "one two three", id="it fits"),
        pytest.param("one two three", 12, "one two\n    three", id="one too many"),
        pytest.param("  + one two three", 12, "  + one two\n      three", id="an indent"),
        pytest.param("one two\n\nthree four", 8, "one two\n\nthree\n    four", id="lines"),
        pytest.param("  reconciler plan --full", 10, "  reconciler plan --full", id="a command"),
        pytest.param("one x23456789 two", 10, "one x23456789\n    two", id="a word too long"),
        pytest.param(
            "\x1b[1mone\x1b[0m two three", 12, "\x1b[1mone\x1b[0m two\n    three", id="colour"
        ),
        pytest.param(
            "\u5b57\u5b57 \u5b57\u5b57 a", 9, "\u5b57\u5b57 \u5b57\u5b57\n    a", id="wide"
        ),
    ],
)
def test_a_line_is_broken_at_spaces_only(text: str, width: int, shown: str) -> None:
    assert fitted(text, width) == shown


@each_row(
    ("text", "width", "shown"),
    [
        pytest.param("a b", 0, "a b", id="no limit"),
        pytest.param("a " * 30 + "b", 60, "a " * 29 + "a\n  b", id="between words"),
        pytest.param(
            "a " * 25 + "--full now", 56, "a " * 24 + "a\n  --full now", id="a flag with its value"
        ),
        pytest.param("名 " * 20 + "b", 60, "名 " * 19 + "名\n  b", id="columns, not characters"),
        pytest.param("a " + "x" * 70, 60, "a\n  " + "x" * 70, id="a long word on its own line"),
    ],
)
def test_a_note_is_broken_with_its_own_indent(text: str, width: int, shown: str) -> None:
    """A wide character takes two columns, so that nothing has to be broken again."""
    assert wrapped(text, width, "  ") == shown
