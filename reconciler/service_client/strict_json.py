"""What a service answers, read strictly: the far side is not trusted to be well."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

MAX_DEPTH = 32


def read_object(content: bytes) -> Mapping[str, Any]:
    """Return the JSON object in an answer.

    Raises:
        ValueError: it is no JSON object in UTF-8, names a field twice, is nested too deep, or
            holds a number or a text that has no meaning.
    """
    try:
        text = content.decode("utf-8")
        value = json.loads(
            text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite
        )
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError:
        raise ValueError("it is not JSON") from None
    if isinstance(value, dict):
        _check_depth(value)
        if "\\ud" in text or "\\uD" in text or "\\u0000" in text:
            _check_texts(value)
        return value
    raise ValueError("it is no JSON object")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("it names a field twice")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError("it holds a number that is none")


def _finite(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise ValueError("it holds a number that is too large")
    return number


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
    raise ValueError("it is nested too deep")


def _check_texts(value: Any) -> None:
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, (dict, list)):
        for inner in value:
            _check_texts(inner)
        if isinstance(value, dict):
            _check_texts(list(value.values()))


def _check_text(text: str) -> None:
    if "\0" in text:
        raise ValueError("it holds a text with NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a character") from None
