"""JSON from somewhere is read in one way, field by field, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reconciler.resources.strict_json import Fields, JsonError, read_object


@pytest.mark.parametrize(
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


def test_the_largest_number_is_read() -> None:
    """Sequences are numbers of 64 bits."""
    assert read_object(b'{"a": [18446744073709551615, -1]}') == {"a": [2**64 - 1, -1]}


def test_what_is_plain_is_read() -> None:
    """Escapes included, those of characters beyond the basic plane, too."""
    assert read_object(b'{"a": ["\\ud83d\\ude00", 1, true, null, {}]}') == {
        "a": ["\U0001f600", 1, True, None, {}]
    }


@pytest.mark.parametrize(
    ("take", "right", "wrong"),
    [
        (Fields.text, ["", "a"], [None, 1, True, [], {}]),
        (Fields.number, [0, 2**64 - 1], [None, "1", True, -1, 2**64, []]),
        (Fields.flag, [True, False], [None, 0, "true"]),
        (Fields.flag_or_none, [True, False, None], [0, "true"]),
        (Fields.texts, [(), ("a",)], [None, "a", [1], {}]),
        (Fields.plain, [{}, {"a": 1}], [None, [], "a"]),
    ],
)
def test_a_field_is_taken_as_what_it_must_be(
    take: Callable[[Fields, str], Any], right: list[Any], wrong: list[Any]
) -> None:
    """Nothing is made into something else."""
    for value in right:
        written = list(value) if isinstance(value, tuple) else value
        assert take(Fields({"a": written}), "a") == value
    for value in wrong:
        with pytest.raises(JsonError, match="a field a"):
            take(Fields({"a": value}), "a")
    with pytest.raises(JsonError, match="no field a"):
        take(Fields({}), "a")


def test_a_field_is_taken_once_and_what_is_left_is_refused() -> None:
    """A field that nobody knows may mean anything."""
    fields = Fields({"a": "1", "b": 2})
    fields.text("a")

    with pytest.raises(JsonError):
        fields.text("a")
    with pytest.raises(JsonError, match="a field b"):
        fields.end()


@pytest.mark.parametrize("value", [None, [], "a", 1])
def test_only_objects_have_fields(value: Any) -> None:
    """A list where an object must be is refused before anything is taken."""
    with pytest.raises(JsonError, match="an object"):
        Fields(value)
