"""JSON from outside, read in one way only.

Whatever two readers could understand differently is refused: another encoding, a name given
twice, a number that not every reader can hold, text that not every store can keep. ``2.0`` is 2, as
in the JSON form of protobuf. Names are in camelCase only, and enums are names: one spelling for
each thing.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

from reconciler.service.domain.refusal import Refusal, invalid
from reconciler.service.operations.fields import shown

MAX_DEPTH = 32
_LONGEST_NUMBER = 64
_EXACT = 2**53
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})", re.ASCII)
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


def read_object(body: bytes) -> dict[str, Any]:
    """Return the object that a body is; an empty body is an empty one.

    Raises:
        Refusal: it is not JSON, not an object, or not beyond doubt.
    """
    if not body:
        return {}
    try:
        value = _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise invalid("request", "must be UTF-8") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise invalid("request", "must be one JSON object and nothing else") from None
    if not isinstance(value, dict):
        raise invalid("request", "must be an object")
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _check_depth(value)
    if _SUSPECT.search(body):
        _check_text(value)
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of its members, each given once."""
    members = dict(pairs)
    if len(members) != len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise invalid(shown(twice), "must be given once")
    return members


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise invalid("request", "must not contain a number beyond 19 digits")
    return int(text)


def _float(text: str) -> float | int:
    """Return a number; one that is whole is a whole number, however it is written (1.0, 1e3)."""
    value = float(text) if len(text) <= _LONGEST_NUMBER else math.inf
    if math.isinf(value):
        raise invalid("request", "must not contain a number that is too large or too long")
    return int(value) if value.is_integer() and abs(value) <= _EXACT else value


def _constant(text: str) -> NoReturn:
    raise invalid("request", f"must not contain {text}")


def _check_depth(value: dict[str, Any]) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _parts(outer)]
        if not level:
            return
    raise _too_deep()


def _parts(outer: Any) -> Iterator[Any]:
    inside = outer.values() if isinstance(outer, dict) else outer
    return (inner for inner in inside if isinstance(inner, (dict, list)))


def _check_text(value: Any, path: str = "request") -> None:
    """Refuse text that not every store can keep; how deep it is nested is known by now."""
    if isinstance(value, dict):
        for name, inner in value.items():
            here = shown(name)
            _check_text(name, here)
            _check_text(inner, here if path == "request" else f"{path}.{here}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _check_text(inner, f"{path}[{index}]")
    elif isinstance(value, str):
        if "\0" in value:
            raise invalid(path, "must not contain NUL")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise invalid(path, "must be Unicode text, without lone surrogates")


def _too_deep() -> Refusal:
    return invalid("request", f"must not be nested deeper than {MAX_DEPTH}")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_float, parse_constant=_constant
)
