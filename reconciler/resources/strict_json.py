"""Strict reading of JSON from outside: every text has one meaning, or is refused.

Whatever two readers could understand differently is refused: another encoding, a name given
twice, a number that not every reader can hold, nesting without bound, text that not every store
can keep. What is read can then be decoded into a dataclass, whose annotations say what is right.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import cache
from itertools import islice
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_DEPTH = 32
MAX_DIGITS = 20  # those of 2**64; and int() is quadratic in the length
_LONGEST_NUMBER = 64
_EXACT = 2**53
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
HALF = re.compile("[\ud800-\udfff]")
_SIGNS = (b"{", b"[", b",", b":")
# The next sign, and before it the texts, which may hold the same ones. A text without an end ends
# with the content, so that nothing is looked at twice.
_NEXT_SIGN = re.compile(
    rb'(?:[^"{\[,:]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+(?:([{\[,:])|\Z)', re.DOTALL
)

T = TypeVar("T")
Path = tuple[str | int, ...]
Nested: TypeAlias = dict[str, object] | list[object]


class JsonError(ValueError):
    """JSON of another shape than was expected; the message goes after "it ..."."""


class Fault(Enum):
    """Reason why content is refused; its words go after "it ..."."""

    ENCODING = "is not UTF-8"
    SYNTAX = "is not JSON"
    SHAPE = "is not a JSON object"
    DEPTH = "is nested too deep"
    TWICE = "names a field twice"
    NO_NUMBER = "holds NaN or Infinity for a number"
    FRACTION = "holds a number that is not whole"
    SIZE = "holds a number that is too large or too long"
    NUL = "holds a text with NUL"
    HALF = "holds an incomplete character"


class ContentError(JsonError):
    """A content is not read.

    Attributes:
        fault: Why.
        path: Where; empty for the whole of it. Of a field that is named twice, the name alone.
    """

    def __init__(self, fault: Fault, path: Path = ()) -> None:
        super().__init__(fault.value)
        self.fault = fault
        self.path = path


def read_object(
    content: bytes, *, fractions: bool = False, depth: int = MAX_DEPTH
) -> dict[str, Any]:
    """Return the JSON object in a content, nested no deeper than so.

    ``fractions`` takes numbers that are not whole, too; one that is whole is a whole number
    however it is written (``1.0``, ``1e3``), as in the JSON form of protobuf.

    Raises:
        ContentError: it is anything else.
    """
    try:
        value = (_WITH_FRACTIONS if fractions else _WHOLE_ONLY).decode(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise ContentError(Fault.ENCODING) from None
    except RecursionError:
        raise ContentError(Fault.DEPTH) from None
    except json.JSONDecodeError:
        raise ContentError(Fault.SYNTAX) from None
    if not isinstance(value, dict):
        raise ContentError(Fault.SHAPE)
    if content.count(b"{") + content.count(b"[") > depth:
        _check_depth(value, depth)
    if _SUSPECT.search(content):
        _check_text(value, ())
    return value


def check_count(content: bytes, most: int) -> None:
    """Refuse a content with more names and values than so, before they are there.

    In memory they can be thirty times as long as their text. Each has a sign of its own in it,
    and an empty object or list may have two.

    Raises:
        JsonError: it has more signs than so.
    """
    if sum(map(content.count, _SIGNS)) <= most:
        return
    signs = (found[1] for found in _NEXT_SIGN.finditer(content))
    if sum(1 for sign in islice(signs, most + 1) if sign) > most:
        raise JsonError(f"holds too many names and values (the most is {most})")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ContentError(Fault.TWICE, (twice,))
    return fields


def _refusing(fault: Fault) -> Callable[[str], NoReturn]:
    def refuse(_: str) -> NoReturn:
        raise ContentError(fault)

    return refuse


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise ContentError(Fault.SIZE)
    return int(text)


def _fraction(text: str) -> float | int:
    value = float(text) if len(text) <= _LONGEST_NUMBER else math.inf
    if math.isinf(value):
        raise ContentError(Fault.SIZE)
    return int(value) if value.is_integer() and abs(value) <= _EXACT else value


_WHOLE_ONLY, _WITH_FRACTIONS = (
    json.JSONDecoder(
        object_pairs_hook=_once,
        parse_int=_integer,
        parse_float=parse_float,
        parse_constant=_refusing(Fault.NO_NUMBER),
    )
    for parse_float in (_refusing(Fault.FRACTION), _fraction)
)


def _check_depth(value: Nested, depth: int) -> None:
    # A full page has 200,000 values. The decoder makes plain dicts and lists alone, and two
    # looks at a type take a third of the time of isinstance with both.
    level: list[Nested] = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return
    raise ContentError(Fault.DEPTH)


def _check_text(value: object, path: Path) -> None:
    """Refuse what is no text: NUL and halves of characters, which escapes can write."""
    if isinstance(value, str):
        if "\0" in value:
            raise ContentError(Fault.NUL, path)
        if HALF.search(value):
            raise ContentError(Fault.HALF, path)
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check_text(name, (*path, name))
            _check_text(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_text(inner, (*path, index))


_WANTED = {
    "string_type": "a text",
    "int_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "frozen_set_type": "a list",
    "mapping_type": "an object",
    "dict_type": "an object",
    "dataclass_type": "an object",
    "greater_than_equal": "in range",
    "less_than_equal": "in range",
}
_SHORT = 40  # characters of a name from outside that a message repeats


def read_as(kind: type[T], content: bytes) -> T:
    """Return the dataclass that a JSON object stands for; nothing in it is converted.

    Named tuples and sets are lists there, and members of enums are their values. A field that
    has a default may be left out. A field that the dataclass does not have is an error.

    Raises:
        JsonError: it is anything else.
    """
    from pydantic import ValidationError

    value: T
    try:
        (value,) = _adapter(cast("Any", kind)).validate_json(b"[%b]" % content)
    except ValidationError as failure:
        found = failure.errors()[0]
        raise JsonError(_in_words(found["type"], found["loc"][1:], content)) from None
    return value


def _in_words(fault: str, path: Path, content: bytes) -> str:
    if not path:
        return "holds something else where an object must be"
    place, value = _reached(path, json.loads(content))
    if fault == "missing" and isinstance(value, dict):
        return f"has no field {_joined((*place, path[-1]))}"
    if fault == "unexpected_keyword_argument":
        return f"has a field {_joined(place)} that is not known here"
    return f"has a field {_joined(place)} that is not {_WANTED.get(fault, 'valid')}"


def _reached(path: Path, value: Any) -> tuple[Path, object]:
    """Return how far a path of pydantic's leads within a JSON value, and the value there.

    Beside names and positions it has the Python types of each union that was tried. For instance,
    ``("blocks", 0, "place", "SourceLocation", 1)`` leads to ``("blocks", 0, "place", 1)``.
    """
    reached: list[str | int] = []
    for part in path:
        with suppress(LookupError, TypeError):
            value = value[part]
            reached.append(part)
    return tuple(reached), value


def _joined(path: Path) -> str:
    """Return a path as ``blocks[0].place[1]``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part[:_SHORT]}" for part in path)
    return "".join(parts).removeprefix(".")


@cache
def _adapter(kind: Any) -> TypeAdapter[tuple[Any]]:
    """Return the reader of a dataclass; in a tuple, since a plain dataclass takes no settings."""
    from pydantic import ConfigDict, TypeAdapter

    one: Any = GenericAlias(tuple, kind)
    return TypeAdapter(one, config=ConfigDict(strict=True, extra="forbid"))


class Within(NamedTuple):
    """A range of a whole number, as an annotation; both ends belong to it.

    Python itself ignores it: the decoder of saved files holds each number to its range.
    """

    least: int
    most: int

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Hold a number to the range. Pydantic calls this, so it need not be imported here."""
        return {**handler(source), "ge": self.least, "le": self.most}


MAX_SEQUENCE = 2**64 - 1

SequenceNumber: TypeAlias = Annotated[int, Within(0, MAX_SEQUENCE)]
"""The number of an event: a uint64 on the wire."""

Count: TypeAlias = Annotated[int, Within(0, 2**31 - 1)]
"""A number of things, or of a line or a column."""

Seconds: TypeAlias = Annotated[int, Within(0, 2**53 - 1)]
"""A time since the epoch; any JSON reader holds it exactly, and not every one has a date."""
