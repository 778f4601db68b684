"""JSON from somewhere is read in one way, and as what a dataclass says, or refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from reconciler.resources import strict_json
from reconciler.resources.strict_json import (
    MAX_SEQUENCE,
    ContentError,
    Count,
    Fault,
    JsonError,
    Seconds,
    SequenceNumber,
    check_count,
    read_as,
    read_object,
)
from tests.rows import each_row


@each_row(
    "content",
    [
        b"", b" ", b"null", b"1", b'"a"', b"[]", b"{", b"{}x", b"{'a': 1}", b'{"a": 1,}',
        b'{"a": 1, "a": 1}', b'{"b": {"a": 1, "a": 2}}', b'{"a": NaN}', b'{"a": -Infinity}',
        b'{"a": 1.0}', b'{"a": 1e3}', b'{"a": "\\u0000"}', b'{"a": "\\udc00"}', b'{"a": "\xff"}',
        b"\xef\xbb\xbf{}", b'{"a": 1} // b', b"[" * 100_000, b'{"a":' * 33 + b"{}" + b"}" * 33,
        b'{"a": 123456789012345678901}', b'{"a": -' + b"1" * 5000 + b"}",
    ],
)  # fmt: skip
def test_what_two_readers_could_understand_differently_is_refused(content: bytes) -> None:
    """Also what would only make one of them fail."""
    with pytest.raises(JsonError):
        read_object(content)


@each_row(
    ("content", "fault", "path"),
    [
        (b'{"a": "\xff"}', Fault.ENCODING, ()),
        (b"{", Fault.SYNTAX, ()),
        (b"[]", Fault.SHAPE, ()),
        (b'{"a":' * 33 + b"{}" + b"}" * 33, Fault.DEPTH, ()),
        (b"[" * 100_000, Fault.DEPTH, ()),
        (b'{"c": {"b": 1, "a": 2, "b": 3}}', Fault.TWICE, ("b",)),
        (b'{"a": Infinity}', Fault.NO_NUMBER, ()),
        (b'{"a": 1' + b"0" * 20 + b"}", Fault.SIZE, ()),
        (b'{"a": 0.' + b"1" * 63 + b"}", Fault.SIZE, ()),
        (b'{"a": 1e999}', Fault.SIZE, ()),
        (b'{"b": [1, {"a": "\\u0000"}]}', Fault.NUL, ("b", 1, "a")),
        (b'{"b": {"\\u0000": 1}}', Fault.NUL, ("b", "\0")),
        (b'{"a": "\\ud800"}', Fault.HALF, ("a",)),
        (b'{"a": "\\udfff"}', Fault.HALF, ("a",)),
        (b'{"b": [{"\\udc00": 1}]}', Fault.HALF, ("b", 0, "\udc00")),
    ],
)
def test_why_and_where_is_told(content: bytes, fault: Fault, path: tuple[str | int, ...]) -> None:
    """Whoever tells it to a person has its own words, and these where it has none."""
    with pytest.raises(ContentError) as caught:
        read_object(content, fractions=True)

    assert (caught.value.fault, caught.value.path) == (fault, path)
    assert str(caught.value) == fault.value


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (b"{}", 1),
        (b'{"a": 1, "b": 2}', 4),
        (b'{"a": [{}, {}, []]}', 8),
        (b'{"a": "{[,:", "[,": "\\"{,"}', 4),
        (b'{"a": "\\\\", "b": "\\\\\\","}', 4),
    ],
)
def test_names_and_values_are_counted_before_they_are_read(content: bytes, count: int) -> None:
    """The signs in a text are none: a script is full of them."""
    check_count(content, count)
    with pytest.raises(JsonError, match=f"too many names and values .the most is {count - 1}.$"):
        check_count(content, count - 1)


@pytest.mark.parametrize(
    "content",
    [b'"' + b'\\"' * 500_000 + b",,", b'"' + b'\\"' * 500_000 + b",,\\", b'"",""' * 300_000],
)
def test_nothing_is_looked_at_twice_to_count_it(content: bytes) -> None:
    """A text without an end would take a day otherwise."""
    check_count(content, max(1, content.count(b'","')))


def test_a_fraction_may_be_as_long_as_any_that_means_something() -> None:
    """Longer ones are refused, for reading them takes time."""
    content = b'{"a": 0.' + b"1" * 62 + b"}"

    assert read_object(content, fractions=True) == {"a": 1 / 9}


def test_the_largest_number_is_read() -> None:
    """Sequences are numbers of 64 bits."""
    assert read_object(b'{"a": [18446744073709551615, -1]}') == {"a": [2**64 - 1, -1]}


def test_what_is_plain_is_read() -> None:
    """Escapes included, those of characters beyond the basic plane, too."""
    assert read_object(b'{"a": ["\\ud83d\\ude00", 1, true, null, {}]}') == {
        "a": ["\U0001f600", 1, True, None, {}]
    }


class Colour(StrEnum):
    RED = "red"


class Spot(NamedTuple):
    name: str
    colour: Colour
    line: Count = 0


@dataclass(frozen=True, slots=True)
class Part:
    """One field of each form that saved files have."""

    text: str = ""
    number: int = 0
    flag: bool = False
    perhaps: bool | None = None
    texts: tuple[str, ...] = ()
    some: frozenset[str] = frozenset()
    fields: Mapping[str, Any] = field(default_factory=dict)
    spot: Spot | tuple[()] = ()
    part: Part | None = None
    time: Seconds = 0
    at: SequenceNumber = 0


@dataclass(frozen=True, slots=True)
class Whole:
    name: str
    parts: tuple[Part, ...] = ()


def read(name: str, value: object) -> Any:
    """Return what a field of a part is read as."""
    whole = read_as(Whole, json.dumps({"name": "x", "parts": [{name: value}]}).encode())
    return getattr(whole.parts[0], name)


@each_row(
    ("name", "wanted", "right", "wrong"),
    [
        ("text", "a text", ["", "a"], [None, 1, True, [], {}]),
        ("number", "a number", [0, 2**64 - 1], [None, "1", True, 1.0, []]),
        ("time", "in range", [0, 2**53 - 1], [-1, 2**53]),
        ("at", "in range", [0, 2**64 - 1], [-1]),
        ("flag", "true or false", [True, False], [None, 0, "true"]),
        ("perhaps", "true or false", [True, False, None], [0, "true"]),
        ("texts", "a list", [(), ("a",)], [None, "a", {}]),
        ("texts", "a text", [], [[1], ["a", None]]),
        ("some", "a list", [frozenset({"a"})], [None, "a", {}]),
        ("fields", "an object", [{}, {"a": 1}], [None, [], "a"]),
        ("part", "an object", [None, Part()], ["a", 1]),
        ("spot", "valid", [(), Spot("a", Colour.RED)], [["a", "blue"], ["a"], None]),
    ],
)
def test_a_field_is_read_as_what_it_must_be(
    name: str, wanted: str, right: list[Any], wrong: list[Any]
) -> None:
    """Nothing is made into something else."""
    for value in right:
        written = sorted(value) if isinstance(value, frozenset) else value
        read_value = read(name, {} if isinstance(value, Part) else written)
        assert (read_value, type(read_value)) == (value, type(value))
    for value in wrong:
        with pytest.raises(JsonError, match=f"^has (a field .* that is not {wanted}|no field .*)$"):
            read(name, value)


def test_a_field_that_is_missing_is_named() -> None:
    """One with a default is not needed."""
    with pytest.raises(JsonError, match=r"^has no field name$"):
        read_as(Whole, b"{}")
    assert read_as(Whole, b'{"name": "x"}') == Whole("x")


def test_a_field_that_is_not_known_is_named_as_far_as_it_is_readable() -> None:
    """Its name, and how long it is, come from outside. It may mean anything."""
    message = rf"^has a field parts\[0\]\.{'n' * 40} that is not known here$"
    with pytest.raises(JsonError, match=message):
        read(f"{'n' * 41}", 1)


@each_row(
    ("part", "message"),
    [
        ({"spot": 1}, "has a field parts[0].spot that is not valid"),
        ({"spot": ["a"]}, "has a field parts[0].spot that is not valid"),
        ({"spot": ["a", "blue"]}, "has a field parts[0].spot[1] that is not valid"),
        ({"spot": ["a", "red", -1]}, "has a field parts[0].spot[2] that is not in range"),
        ({"part": {"part": {"text": 1}}}, "has a field parts[0].part.part.text that is not a text"),
        ({"fields": {"Spot": 1}, "x": 1}, "has a field parts[0].x that is not known here"),
        ([], "has a field parts[0] that is not an object"),
    ],
)
def test_the_place_is_named_as_the_json_has_it(part: object, message: str) -> None:
    """The names of Python types, and of the fields of a list, mean nothing to its reader."""
    with pytest.raises(JsonError) as caught:
        read_as(Whole, json.dumps({"name": "x", "parts": [part]}).encode())

    assert str(caught.value) == message


@each_row("content", [b"null", b"[]", b'"a"', b"1", b"", b"{", b"[" * 100_000])
def test_only_objects_are_read(content: bytes) -> None:
    """A list where an object must be is refused, and so is what is not JSON."""
    with pytest.raises(JsonError, match=r"^holds something else where an object must be$"):
        read_as(Whole, content)


@dataclass(frozen=True)
class Numbers:
    """One number of each range."""

    count: Count = 0
    seconds: Seconds = 0
    sequence: SequenceNumber = 0


@pytest.mark.parametrize(
    ("name", "most"), [("count", 2**31 - 1), ("seconds", 2**53 - 1), ("sequence", MAX_SEQUENCE)]
)
def test_both_ends_of_a_range_belong_to_it(name: str, most: int) -> None:
    """One less or one more is refused, and the field is named."""
    strict_json._adapter.cache_clear()  # a range is asked for when a reader is made
    for number in (0, most):
        read = read_as(Numbers, f'{{"{name}": {number}}}'.encode())
        assert getattr(read, name) == number
    for number in (-1, most + 1):
        with pytest.raises(JsonError, match=f"^has a field {name} that is not "):
            read_as(Numbers, f'{{"{name}": {number}}}'.encode())
