"""The grammar of variables in a text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.placeholders import (
    NO_LAYERS,
    Layers,
    VariableValue,
    as_text,
    escaped,
    expanded,
    left_over,
    may_have_left_over,
    names_in,
    position,
    size_of,
    tokens,
    written_position,
)
from tests.rows import each_row

VALUES = {
    "host": VariableValue("shop.example.com", SourceLocation("r.yaml", 1, 1)),
    "port": VariableValue(8443, SourceLocation("r.yaml", 2, 1)),
    "lines": VariableValue("a\nb", SourceLocation("r.yaml", 3, 1)),
    "none": VariableValue("", SourceLocation("r.yaml", 4, 1)),
    "on": VariableValue(value=True, origin=SourceLocation("r.yaml", 5, 1)),
    "later": None,
}


@each_row(
    ("text", "value"),
    [
        pytest.param("https://${host}/callback", "https://shop.example.com/callback", id="inside"),
        pytest.param("${host}:${port}", "shop.example.com:8443", id="two, one a number"),
        pytest.param("${on}", "true", id="as JSON has it"),
        pytest.param("$${host}", "${host}", id="the escape"),
        pytest.param("$$${host}", "$${host}", id="a dollar and the escape"),
        pytest.param("${{ host }}", "${{ host }}", id="of another tool"),
        pytest.param("$host {host} $", "$host {host} $", id="no variable"),
        pytest.param("${later} ${unknown}", "later unknown", id="without a value: its name"),
        pytest.param("a${none}b", "ab", id="an empty one"),
    ],
)
def test_variables_are_replaced_and_escapes_resolved(text: str, value: str) -> None:
    assert expanded(text, VALUES) == value


@given(st.text(alphabet="${}ab\n"))
def test_an_escaped_text_stands_for_itself(text: str) -> None:
    written = escaped(text)

    assert expanded(written, VALUES) == text
    assert not any(token.name for token in tokens(written))


@each_row(
    ("text", "name"),
    [
        ("${host}", "host"),
        ("${shop_host2}", "shop_host2"),
        ("${shop-host}", ""),
        ("${host} ", ""),
        ("$${host}", ""),
        ("${ host }", ""),
        ("${host", ""),
        ("${}", ""),
        ("${1}", ""),
        ("", ""),
    ],
)
def test_a_variable_alone_is_told_from_one_inside_of_a_text(text: str, name: str) -> None:
    assert "".join(token.name for token in tokens(text) if token.text == text) == name


def test_the_names_in_a_text_come_once_each() -> None:
    assert names_in("${b}${a} ${b} $${c} ${d e} ${{f}}") == ["b", "a"]


def test_what_is_no_name_is_a_token_too() -> None:
    found = tokens("${a.b} ${c ${} $${")

    assert [(token.text, token.name) for token in found] == [
        ("${a.b}", ""),
        ("${c $", ""),
        ("$${", ""),
    ]


@each_row(
    ("text", "found"),
    [
        ("https://##HOST##/", "##HOST##"),
        ("@@host@@", "@@host@@"),
        ("x ${{ env.HOST }}", "${{ env.HOST }}"),
        ("{{ .Values.host }}", "{{ .Values.host }}"),
        ('{{- name | quote "x" -}}', '{{- name | quote "x" -}}'),
        ("{{host}}", "{{host}}"),
        ("$${{ env }}", None),
        ("## a heading ##", None),
        ("function f() {{ return 1; }}", None),
        ("a@@b", None),
        ("${host}", None),
        ("{{}}", None),
    ],
)
def test_placeholders_of_other_tools_are_recognised(text: str, found: str | None) -> None:
    token = left_over(text)

    assert (token.text if token else None) == found
    assert may_have_left_over(text) or not found


@each_row(
    ("line", "column", "written"),
    [
        pytest.param(1, 1, (1, 1, ""), id="before the first"),
        pytest.param(1, 3, (1, 3, "lines"), id="the first line of a value"),
        pytest.param(2, 1, (1, 3, "lines"), id="its second line"),
        pytest.param(2, 2, (1, 11, ""), id="right behind it"),
        pytest.param(3, 2, (2, 2, ""), id="a line that a value moved down"),
        pytest.param(3, 3, (2, 3, ""), id="the escape"),
        pytest.param(3, 5, (2, 6, ""), id="behind the escape"),
        pytest.param(9, 1, (2, 1, ""), id="a line that is not there"),
    ],
)
def test_a_place_in_the_expanded_text_is_one_in_the_written_text(
    line: int, column: int, written: tuple[int, int, str]
) -> None:
    """The text is ``x ${lines}y`` and, below, ``z $${ w``."""
    assert written_position("x ${lines}y\nz $${ w", VALUES, line, column) == written


def test_a_position_counts_lines_as_javascript_does() -> None:
    assert position("a\r\nb\u2028c", 5) == (3, 1)


def test_sizes_grow_with_what_a_value_holds() -> None:
    assert size_of(["a" * 100] * 10) > 1000
    assert size_of({"a": {"b": ["c" * 50]}}) > 50
    assert size_of(None) < 20


def test_lists_and_mappings_have_no_text() -> None:
    values: list[Any] = [[1], {}, "x", 1.5, None]

    assert [as_text(each) for each in values] == [None, None, "x", "1.5", "null"]


@pytest.mark.parametrize(
    ("layers", "folders"),
    [
        (NO_LAYERS, ()),
        (Layers(overlay="a"), ("a",)),
        (Layers(other_overlays=("b", "c")), ("b", "c")),
        (Layers(overlay="a", other_overlays=("b",)), ("a", "b")),
    ],
)
def test_the_overlays_of_all_environments(layers: Layers, folders: tuple[str, ...]) -> None:
    assert layers.overlays == folders
