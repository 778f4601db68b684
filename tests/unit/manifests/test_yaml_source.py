"""Reading YAML is a security boundary: what is built, what is refused, where, and how fast."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.diagnostics import FindingError
from reconciler.manifests.text import decode
from reconciler.manifests.yaml_source import (
    MAX_DEPTH,
    MAX_DOCUMENTS,
    MAX_NODES,
    MAX_NUMBER,
    MAX_SCALAR,
    MAY_BE_TYPED,
    Trace,
    node_of,
    read_documents,
    typed,
)
from tests.rows import each_row
from tests.unit.manifests.trees import codes, places

MEGABYTE = 1024 * 1024


def traced(data: bytes | str) -> Trace:
    """Read as the loader does: decode, then read."""
    try:
        text = decode(data.encode() if isinstance(data, str) else data, "x.yaml")
    except FindingError as fault:
        return Trace([], [fault.finding], [])
    return read_documents(text, "x.yaml")


@each_row(
    ("text", "value"),
    [
        pytest.param("no", "no", id="no is no answer"),
        pytest.param("on", "on", id="on is no switch"),
        pytest.param("yes", "yes", id="yes is text"),
        pytest.param("12:30:00", "12:30:00", id="a time is not a number to the base of 60"),
        pytest.param("010", "010", id="a leading zero is not octal"),
        pytest.param("1_000", "1_000", id="an underscore is no part of a number"),
        pytest.param("2026-01-01", "2026-01-01", id="a date is text"),
        pytest.param("2024-99-99", "2024-99-99", id="a date that does not exist is text"),
        pytest.param("=", "=", id="the value key of YAML 1.1 is text"),
        pytest.param("true", True, id="true"),
        pytest.param("False", False, id="False"),
        pytest.param("~", None, id="a tilde is nothing"),
        pytest.param("null", None, id="null is nothing"),
        pytest.param("5", 5, id="an integer"),
        pytest.param("-17", -17, id="a negative integer"),
        pytest.param("+3", 3, id="an integer with a plus"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("0o17", 15, id="octal as YAML 1.2 writes it"),
        pytest.param("1.5", 1.5, id="a decimal number"),
        pytest.param(".5", 0.5, id="a decimal number without a zero"),
        pytest.param("1e3", 1000.0, id="a number with an exponent"),
        pytest.param("1.2.3", "1.2.3", id="a version is text"),
        pytest.param("5s", "5s", id="a duration is text"),
        pytest.param(".", ".", id="a dot is text"),
        pytest.param("-", "-", id="a hyphen in quotes is text", marks=()),
        pytest.param("'true'", "true", id="quoted words are text"),
        pytest.param('"12"', "12", id="quoted numbers are text"),
        pytest.param('"\\u263a \\x41"', "\u263a A", id="escapes are read"),
        pytest.param("[a, 1, []]", ["a", 1, []], id="a list"),
        pytest.param("{b: {}, c: }", {"b": {}, "c": None}, id="a mapping"),
        pytest.param("|\n   a\n    b\n", "a\n b\n", id="a literal block"),
        pytest.param(">-\n   a\n   b\n", "a b", id="a folded block"),
    ],
)
def test_plain_values_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    text = "'-'" if text == "-" else text

    assert read_documents(f"a: {text}\n").documents == [{"a": value}]


@each_row(
    ("text", "found"),
    [
        pytest.param("a: &x 1\n", [("YAML-ANCHOR", 1, 4)], id="an anchor"),
        pytest.param("a: &x {b: 1}\n", [("YAML-ANCHOR", 1, 4)], id="an anchor of a mapping"),
        pytest.param("&x a: 1\n", [("YAML-ANCHOR", 1, 1)], id="an anchor of a key"),
        pytest.param(
            "a: &x 1\nb: *x\n",
            [("YAML-ANCHOR", 1, 4), ("YAML-ALIAS", 2, 4)],
            id="an alias and its anchor",
        ),
        pytest.param("a: &x [*x]\n", [("YAML-ANCHOR", 1, 4), ("YAML-ALIAS", 1, 8)], id="a cycle"),
        pytest.param("a: !!str 1\n", [("YAML-TAG", 1, 4)], id="a tag"),
        pytest.param("a: !!python/name:os.system x\n", [("YAML-TAG", 1, 4)], id="a Python tag"),
        pytest.param("!x a: 1\n", [("YAML-TAG", 1, 1)], id="a tag of a key"),
        pytest.param(
            "%TAG !e! tag:example.com,2000:\n---\na: !e!x 1\n",
            [("YAML-DIRECTIVE", 1, 1), ("YAML-TAG", 3, 4)],
            id="a tag directive",
        ),
        pytest.param("%YAML 1.1\n---\na: no\n", [("YAML-DIRECTIVE", 1, 1)], id="YAML 1.1"),
        pytest.param("a: 1\n<<: {b: 2}\n", [("YAML-MERGE", 2, 1)], id="a merge key"),
        pytest.param("a: 1\nb: 2\na: 3\n", [("YAML-DUPLICATE-KEY", 3, 1)], id="a key twice"),
        pytest.param(
            'a: 1\n"a": 2\n', [("YAML-DUPLICATE-KEY", 2, 1)], id="a key twice, once in quotes"
        ),
        pytest.param("1: a\n", [("YAML-KEY", 1, 1)], id="a number as key"),
        pytest.param("true: a\n", [("YAML-KEY", 1, 1)], id="true as key"),
        pytest.param("~: a\n", [("YAML-KEY", 1, 1)], id="null as key"),
        pytest.param("?\n: a\n", [("YAML-KEY", 1, 2)], id="nothing as key"),
        pytest.param("? [a]\n: 1\n", [("YAML-KEY", 1, 3)], id="a list as key"),
        pytest.param("? {a: b}\n: 1\n", [("YAML-KEY", 1, 3)], id="a mapping as key"),
        pytest.param("a: .inf\n", [("YAML-NUMBER", 1, 4)], id="infinity"),
        pytest.param("a: -.INF\n", [("YAML-NUMBER", 1, 4)], id="negative infinity"),
        pytest.param("a: .nan\n", [("YAML-NUMBER", 1, 4)], id="not a number"),
        pytest.param("a: 1e999\n", [("YAML-NUMBER", 1, 4)], id="a number too large for a float"),
        pytest.param(f"a: {'9' * 4301}\n", [("YAML-NUMBER", 1, 4)], id="4,301 digits"),
        pytest.param(f"a: 0x{'f' * 4301}\n", [("YAML-NUMBER", 1, 4)], id="4,301 hex digits"),
        pytest.param("a:\n\tb: 1\n", [("YAML-SYNTAX", 2, 1)], id="a tab as indentation"),
        pytest.param("a: 'x\n", [("YAML-SYNTAX", 1, 4)], id="an open single quote"),
        pytest.param('a: "x\n', [("YAML-SYNTAX", 1, 4)], id="an open double quote"),
        pytest.param("a: [1\nb: 2\n", [("YAML-SYNTAX", 2, 2)], id="an open bracket"),
        pytest.param("a: {b: 1\n", [("YAML-SYNTAX", 2, 1)], id="an open brace"),
        pytest.param("a: b: c\n", [("YAML-SYNTAX", 1, 5)], id="two colons"),
        pytest.param("a:\n  b: 1\n c: 2\n", [("YAML-SYNTAX", 3, 2)], id="wrong indentation"),
        pytest.param("- a\nb: 1\n", [("YAML-SYNTAX", 2, 1)], id="a key in a list"),
        pytest.param("a: - b\n", [("YAML-SYNTAX", 1, 4)], id="a list item behind a key"),
        pytest.param("a: @x\n", [("YAML-SYNTAX", 1, 4)], id="a text that starts with @"),
        pytest.param("a: `x`\n", [("YAML-SYNTAX", 1, 4)], id="a text that starts with a backtick"),
        pytest.param("a: *\n", [("YAML-SYNTAX", 1, 5)], id="a star alone"),
        pytest.param("a: ]\n", [("YAML-SYNTAX", 1, 4)], id="a bracket out of place"),
        pytest.param("a: |x\n", [("YAML-SYNTAX", 1, 5)], id="text behind the mark of a block"),
        pytest.param("a: %x\n", [("YAML-SYNTAX", 1, 4)], id="a text that starts with %"),
        pytest.param('a: "\\q"\n', [("YAML-SYNTAX", 1, 5)], id="an unknown escape"),
        pytest.param('a: "\\ud800"\n', [("YAML-SYNTAX", 1, 7)], id="half a surrogate pair"),
        pytest.param("a: !e!x 1\n", [("YAML-SYNTAX", 1, 4)], id="an unknown tag handle"),
        pytest.param("a: *x\n", [("YAML-ALIAS", 1, 4)], id="an alias of nothing"),
        pytest.param("%FOO\n---\na: 1\n", [("YAML-SYNTAX", 1, 5)], id="an unknown directive"),
        pytest.param("a: \x00\n", [("YAML-CHARACTER", 1, 4)], id="NUL"),
        pytest.param("ok: 1\na: \x1b[31m\n", [("YAML-CHARACTER", 2, 4)], id="a terminal escape"),
        pytest.param("a: x\x85y\n", [("YAML-CHARACTER", 1, 5)], id="a raw NEL"),
        pytest.param("a: x\u2028y\n", [("YAML-CHARACTER", 1, 5)], id="a raw U+2028"),
        pytest.param("é: x\u2029y\n", [("YAML-CHARACTER", 1, 5)], id="a raw U+2029"),
        pytest.param("a: x\ufeffy\n", [("YAML-CHARACTER", 1, 5)], id="a byte order mark inside"),
        pytest.param("a: x\ufffey\n", [("YAML-CHARACTER", 1, 5)], id="a character that is none"),
        pytest.param(b"a: 1\nb: \xff\n", [("YAML-ENCODING", 2, 4)], id="a byte that is not UTF-8"),
        pytest.param(b"a: \xc3", [("YAML-ENCODING", 1, 4)], id="a character cut short"),
        pytest.param(b"a: \xed\xa0\x80", [("YAML-ENCODING", 1, 4)], id="an encoded surrogate"),
        pytest.param("a: 1".encode("utf-16"), [("YAML-ENCODING", 1, 1)], id="UTF-16 with a mark"),
        pytest.param("a: 1".encode("utf-16-be"), [("YAML-CHARACTER", 1, 1)], id="UTF-16 without"),
        pytest.param("a: 1".encode("utf-32"), [("YAML-ENCODING", 1, 1)], id="UTF-32"),
    ],
)
def test_what_is_refused_is_told_with_its_place(
    text: str | bytes, found: list[tuple[str, int, int]]
) -> None:
    trace = traced(text)

    assert places(trace.findings) == found
    assert not any(trace.documents)
    assert all(finding.summary and finding.remedy for finding in trace.findings)


def test_everything_that_can_be_told_is_told_at_once() -> None:
    """Nobody mends a file one error at a time."""
    trace = traced("a: &x 1\nb: !!int 2\na: .inf\n1: x\n---\nc: 1\nc: 2\n")

    assert codes(trace.findings) == [
        *("YAML-ANCHOR", "YAML-TAG", "YAML-DUPLICATE-KEY", "YAML-NUMBER", "YAML-KEY"),
        "YAML-DUPLICATE-KEY",
    ]


def test_a_key_twice_names_both_lines() -> None:
    [finding] = traced("a: 1\nb: 2\n\na: 3\n").findings

    assert "line 1" in finding.summary
    assert "line 1 or line 4" in finding.remedy


def test_documents_without_a_finding_are_kept_for_judging() -> None:
    trace = traced("a: 1\n---\nb: &x 2\n---\nc: 3\n---\n---\nd: [\n")

    assert trace.documents == [{"a": 1}, None, {"c": 3}, None, None]
    assert codes(trace.findings) == ["YAML-ANCHOR", "YAML-SYNTAX"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="an empty file"),
        pytest.param("# a comment\n", id="only a comment"),
        pytest.param("---\n---\n", id="only markers"),
        pytest.param("---\n...\n", id="a document that ends at once"),
    ],
)
def test_nothing_is_nothing(text: str) -> None:
    documents, findings, _ = read_documents(text)

    assert not findings
    assert not any(documents)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\ufeffa: 1\n", id="a leading UTF-8 byte order mark"),
        pytest.param("a: 1\r\n", id="line ends of Windows"),
        pytest.param("%YAML 1.2\n---\na: 1\n", id="the directive for YAML 1.2"),
        pytest.param("---\na: 1\n...\n", id="explicit markers"),
        pytest.param("{a: 1}", id="flow style without a line end"),
    ],
)
def test_other_ways_to_write_the_same_are_fine(text: str) -> None:
    assert read_documents(decode(text.encode())).documents == [{"a": 1}]


LIMITS = [
    pytest.param("[" * MEGABYTE, "YAML-DEPTH", id="a million brackets"),
    pytest.param("[" * 30_000, "YAML-DEPTH", id="the 30 kB that end the library's loaders"),
    pytest.param("{a: " * 100_000, "YAML-DEPTH", id="100,000 braces"),
    pytest.param("- " * 100_000, "YAML-DEPTH", id="100,000 dashes in one line"),
    pytest.param("? " * 100_000, "YAML-KEY", id="100,000 question marks"),
    pytest.param(
        "".join(f"{' ' * level}a:\n" for level in range(MAX_DEPTH + 1)) + " " * 40 + "b: 1",
        "YAML-DEPTH",
        id="one level too many by indentation",
    ),
    pytest.param(
        "a: [" + "1," * (MAX_NODES + 1) + "]",
        "YAML-NODES",
        id="too many values",
        marks=pytest.mark.slow,
    ),
    pytest.param("[" + "[1,1]," * (MEGABYTE // 6) + "]", "YAML-NODES", id="too many in lists"),
    pytest.param("[" + "?," * MAX_NODES + "]", "YAML-KEY", id="too many empty pairs"),
    pytest.param(
        "".join(f"k{number}: 1\n" for number in range(60_000)),
        "YAML-NODES",
        id="60,000 keys",
        marks=pytest.mark.slow,
    ),
    pytest.param(f"a: {'x' * (MAX_SCALAR + 1)}\n", "YAML-SCALAR", id="a text too long"),
    pytest.param(f"{'x' * (MAX_SCALAR + 1)}: 1\n", "YAML-S", id="a key too long"),
    pytest.param(f'a: "{"x" * (MEGABYTE - 10)}"\n', "YAML-SCALAR", id="a quoted megabyte"),
    pytest.param("--- a\n" * (MAX_DOCUMENTS + 1), "YAML-DOCUMENTS", id="too many documents"),
    pytest.param(
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{chr(98 + level)}: &{chr(98 + level)} [{', '.join(['*' + chr(97 + level)] * 9)}]\n"
            for level in range(9)
        ),
        "YAML-ANCHOR",
        id="a billion laughs",
    ),
    pytest.param(
        "a: &a {x: 1}\n" + "".join(f"b{n}: {{<<: [*a, *a, *a]}}\n" for n in range(1000)),
        "YAML-ANCHOR",
        id="a merge bomb",
    ),
    pytest.param("a: " + "&" * MEGABYTE, "YAML-SYNTAX", id="a megabyte of ampersands"),
    pytest.param("a: " + "!" * MEGABYTE, "YAML-TAG", id="a megabyte of exclamation marks"),
    pytest.param("%" * MEGABYTE, "YAML-SYNTAX", id="a megabyte of percent signs"),
    pytest.param("a: " + "'" * (MEGABYTE - 3), "YAML-S", id="a megabyte of quotes"),
    pytest.param("a:\n" + "\t" * MEGABYTE + "b", "YAML-S", id="a megabyte of tabs"),
    pytest.param("a: |+\n" + " \n" * 400_000, "YAML-SCALAR", id="a megabyte of empty lines"),
    pytest.param("a: " + "b: " * 300_000, "YAML-SYNTAX", id="a megabyte of colons"),
    pytest.param("#" * MEGABYTE + "\na: [", "YAML-SYNTAX", id="a megabyte of comment"),
]


@pytest.mark.parametrize(("text", "code"), LIMITS)
def test_no_file_takes_long_or_ends_the_process(text: str, code: str) -> None:
    """Each within two seconds, with a finding and its place (catalogue B1)."""
    before = time.process_time()

    trace = traced(text)

    assert time.process_time() - before < 2
    assert trace.findings[0].code.startswith(code)
    assert trace.findings[0].location is not None
    assert trace.findings[0].location.line >= 1


@pytest.mark.slow
def test_what_is_just_within_the_limits_is_read() -> None:
    deepest = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    longest = "x" * MAX_SCALAR
    many = ",".join("1" for _ in range(MAX_NODES - 7))

    text = f"a: {deepest}\nb: {longest}\nc: [{many}]\n" + " " * 10
    [document] = read_documents(text).documents

    assert document is None  # more values than the limit, counted together with the depth
    assert not read_documents(f"a: {deepest}\n").findings
    assert read_documents(f"b: {longest}\n").documents == [{"b": longest}]
    assert not read_documents(f"c: [{many}]\n").findings


@each_row(
    ("text", "path", "value", "key"),
    [
        pytest.param("é: {ü: [😀, x]}\n", ("é", "ü", 1), (1, 12), (1, 12), id="an item"),
        pytest.param("é: {ü: [😀, x]}\n", ("é", "ü"), (1, 8), (1, 5), id="a field"),
        pytest.param("a:\n  b: [1]\n", (), (1, 1), (1, 1), id="the document"),
        pytest.param("a:\n  b: [1]\n", ("a", "b", 7, "c"), (2, 6), (2, 3), id="no such item"),
        pytest.param("a:\n  b: [1]\n", ("a", "b", -1), (2, 6), (2, 3), id="none before the first"),
        pytest.param("a:\n  b: [1]\n", ("a", "b", "x"), (2, 6), (2, 3), id="a key in a list"),
        pytest.param("a:\n  b: [1]\n", ("a", "missing"), (2, 3), (1, 1), id="no such field"),
        pytest.param("a:\n  b: [1]\n", ("a", 0), (2, 3), (1, 1), id="a position in a mapping"),
        pytest.param("text", ("a", 0), (1, 1), (1, 1), id="a text"),
    ],
)
def test_a_path_leads_to_its_value_or_to_what_is_above(
    text: str, path: tuple[str | int, ...], value: tuple[int, int], key: tuple[int, int]
) -> None:
    """Places count characters from one, as a reader's editor does."""
    found, node = node_of(text).nearest(path)

    assert (node.line, node.column) == value
    found = found or node
    assert (found.line, found.column) == key


WORDS = st.text("abcdefgh xyz.:/-_", min_size=1, max_size=12).map(str.strip).filter(bool)
VALUES = st.recursive(
    WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@given(value=st.dictionaries(WORDS, VALUES, max_size=5), flow=st.booleans())
def test_what_the_library_writes_is_read_as_it_was(value: dict[str, Any], *, flow: bool) -> None:
    """Text that is quoted wherever it must be comes back, in block style and in flow style."""
    text = yaml.safe_dump(value, default_flow_style=flow)

    assert read_documents(text).documents == [value]
    assert yaml.CBaseLoader(text).get_single_data() == value


@given(text=st.text("ab:-[]{}&*!%'\"|>#,? \n\t01.~<", max_size=60))
def test_no_text_makes_reading_fail(text: str) -> None:
    """A text is read as another reader reads it, or has findings."""
    documents, findings, _ = read_documents(text)

    assert findings or len(documents) == len([*yaml.compose_all(text, yaml.CBaseLoader)])


@given(data=st.binary(max_size=200))
def test_no_bytes_make_reading_fail(data: bytes) -> None:
    trace = traced(data)

    assert all(finding.location is not None for finding in trace.findings)


TYPED = {
    "": None, "~": None, "null": None, "NULL": None,
    "true": True, "True": True, "FALSE": False,
    "0": 0, "-12": -12, "+7": 7, "0o17": 15, "0xFf": 255,
    "1.5": 1.5, ".5": 0.5, "-1e3": -1000.0, "1.": 1.0,
}  # fmt: skip
TEXT = [
    "no", "on", "yes", "Off", "y", "12:30:00", "010", "1_000", "2001-12-14", "0b11", "nUll", "tRUE",
    "1.2.3", "0x", "0o8", "1e", "+", "-", ".", "5s", "\N{ARABIC-INDIC DIGIT ONE}",
]  # fmt: skip


@each_row(("written", "value"), TYPED.items())
def test_a_scalar_of_the_core_schema_has_its_type(written: str, value: object) -> None:
    assert typed(written) == value
    assert type(typed(written)) is type(value)


@each_row("written", TEXT)
def test_anything_else_is_the_text_that_it_is(written: str) -> None:
    assert typed(written) == written


@each_row(
    "written", [".inf", "-.Inf", ".nan", "1e999", "1" * (MAX_NUMBER + 1), "0x" + "1" * MAX_NUMBER]
)
def test_a_number_that_no_value_can_hold_is_an_error(written: str) -> None:
    with pytest.raises(ValueError, match="number"):
        typed(written)


@each_row("written", [*TYPED, ".inf", ".NAN"])
def test_the_first_character_tells_what_may_be_typed(written: str) -> None:
    """Most scalars are text, and are not looked at further."""
    assert written[:1] in MAY_BE_TYPED
