"""A body has one reading, or none and a refusal that names the place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.resources.strict_json import MAX_DEPTH
from reconciler.service.domain.refusal import Refusal
from reconciler.service.transport.json_bodies import MAX_SIGNS, read_body
from tests.effort import cases
from tests.rows import each_row

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.booleans() | st.integers(-(10**18), 10**18) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@given(st.dictionaries(TEXT, VALUES, max_size=5), st.booleans())
@settings(max_examples=cases(100), deadline=None)
def test_what_is_written_is_read(value: dict[str, Any], ascii_only: Any) -> None:
    """Whatever JSON holds comes back as it was."""
    assert read_body(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=200))
@settings(max_examples=cases(50), deadline=None)
def test_whatever_comes_in_is_read_or_refused(body: bytes) -> None:
    """No other error ever leaves."""
    try:
        read: Any = read_body(body)
    except Refusal as refusal:
        read = refusal.code

    assert read == 3 or isinstance(read, dict)


@each_row(
    ("body", "message"),
    [
        (b'{"a":1,"b":2,"a":3}', "a: must be given once"),
        (b'{"\\u202e":1,"\\u202e":2}', "'\\u202e': must be given once"),
        (b'{"a":{"b":["x","\\u0000"]}}', "a.b[1]: must not contain NUL"),
        (b'{"a":"\\uD83D"}', "a: must be Unicode text, without lone surrogates"),
        (b'{"a":NaN}', "request: must not contain NaN or Infinity"),
        (b"\xff", "request: must be UTF-8"),
        (b"[]", "request: must be an object"),
        (b"{", "request: must be one JSON object and nothing else"),
    ],
)
def test_a_refusal_names_the_place(body: bytes, message: str) -> None:
    """So that its author finds it; odd names are shown as escapes."""
    with pytest.raises(Refusal) as caught:
        read_body(body)

    assert caught.value.message == message


@pytest.mark.parametrize(("depth", "is_taken"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
@pytest.mark.parametrize("shape", ["lists", "objects"])
def test_depth_is_counted(depth: int, shape: str, *, is_taken: bool) -> None:
    """The outermost object is the first."""
    opening, closing = ("[", "]") if shape == "lists" else ('{"a":', "}")
    inner = depth - 1 if shape == "lists" else depth - 2
    end = "" if shape == "lists" else "{}"
    body = f'{{"x":{opening * inner}{end}{closing * inner}}}'.encode()

    if is_taken:
        assert read_body(body)
    else:
        with pytest.raises(Refusal, match="deeper"):
            read_body(body)


def test_names_and_values_are_counted_before_they_take_memory() -> None:
    """The largest body that is taken, and one value more."""
    largest = b'{"x":[%b]}' % b",".join([b"0"] * (MAX_SIGNS - 2))

    assert len(read_body(largest)) == 1
    with pytest.raises(Refusal) as caught:
        read_body(largest.replace(b"0]", b"0,0]"))
    assert caught.value.message == "request: must not have more than 60000 names and values"
    assert caught.value.details == {"field": "request"}


def test_many_openings_are_not_depth() -> None:
    """Breadth is limited by size alone."""
    broad: dict[str, object] = {"x": [[]] * 1000}

    assert read_body(json.dumps(broad).encode()) == broad


@each_row(
    ("text", "value"),
    [
        ("2.0", 2),
        ("1e3", 1000),
        ("-0", 0),
        ("-0.0", 0),
        ("9007199254740992.0", 2**53),
        ("0.5", 0.5),
    ],
)
def test_whole_numbers_are_whole_however_they_are_written(text: str, value: float) -> None:
    """As in the JSON form of protobuf, as far as a float is exact."""
    read = read_body(f'{{"x":{text}}}'.encode())["x"]

    assert (read, type(read)) == (value, type(value))
