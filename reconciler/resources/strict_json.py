"""JSON that somebody else may have written, read in one way only.

UTF-8, no name twice, no number that is none, nothing nested deep, no text that no store keeps.
What is read is then taken field by field, and a field that nobody takes is an error, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

MAX_DEPTH = 32
_LARGEST = 2**64 - 1
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")

T = TypeVar("T")


class JsonError(ValueError):
    """What was read is not what it must be; the message goes after "it ..."."""


def read_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object in a content.

    Raises:
        JsonError: it is anything else.
    """
    try:
        text = content.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_no_number
        )
    except UnicodeDecodeError:
        raise JsonError("is not UTF-8") from None
    except RecursionError:
        raise JsonError("is nested too deep") from None
    except json.JSONDecodeError:
        raise JsonError("is not JSON") from None
    if not isinstance(value, dict):
        raise JsonError("is no JSON object")
    _check_depth(value)
    if _SUSPECT.search(text):
        _check_texts(value)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise JsonError("names a field twice")
    return fields


def _no_number(text: str) -> NoReturn:
    raise JsonError("holds a number that is not whole")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise JsonError("is nested too deep")


def _check_texts(value: Any) -> None:
    """Refuse what is no text: NUL and halves of characters, which escapes can write."""
    if isinstance(value, str):
        if "\0" in value:
            raise JsonError("holds a text with NUL")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise JsonError("holds half a character") from None
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_texts(name)
            _check_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_texts(inner)


class Fields:
    """The fields of one object, each to be taken once and as what it must be."""

    def __init__(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise JsonError("holds something else where an object must be")
        self._left: dict[str, Any] = dict(value)

    def text(self, name: str) -> str:
        """Take a text."""
        value = self._take(name)
        if type(value) is not str:
            raise _wrong(name, "a text")
        return str(value)

    def number(self, name: str) -> int:
        """Take a whole number, none below zero."""
        value = self._take(name)
        if type(value) is not int or not 0 <= value <= _LARGEST:
            raise _wrong(name, "a number")
        return int(value)

    def flag(self, name: str) -> bool:
        """Take true or false."""
        value = self._take(name)
        if type(value) is not bool:
            raise _wrong(name, "true or false")
        return value is True

    def flag_or_none(self, name: str) -> bool | None:
        """Take true, false or null."""
        if name in self._left and self._left[name] is None:
            del self._left[name]
            return None
        return self.flag(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Take a list of texts."""
        values = self._list(name)
        if not all(type(value) is str for value in values):
            raise _wrong(name, "a list of texts")
        return tuple(values)

    def each(self, name: str, read: Callable[[Any], T]) -> tuple[T, ...]:
        """Take a list, and read each item of it."""
        return tuple(read(value) for value in self._list(name))

    def one(self, name: str, read: Callable[[Any], T]) -> T:
        """Take a value, and read it."""
        return read(self._take(name))

    def part(self, name: str) -> Fields:
        """Take an object."""
        return Fields(self._take(name))

    def plain(self, name: str) -> Mapping[str, Any]:
        """Take an object of which any field may be."""
        value = self._take(name)
        if not isinstance(value, dict):
            raise _wrong(name, "an object")
        return value

    def end(self) -> None:
        """Refuse what was not taken."""
        if self._left:
            raise JsonError(f"has a field {min(self._left)[:40]} that is not known here")

    def _list(self, name: str) -> Sequence[Any]:
        value = self._take(name)
        if not isinstance(value, list):
            raise _wrong(name, "a list")
        return value

    def _take(self, name: str) -> Any:
        if name not in self._left:
            raise JsonError(f"has no field {name}")
        return self._left.pop(name)


def _wrong(name: str, wanted: str) -> JsonError:
    return JsonError(f"has a field {name} that is not {wanted}")
