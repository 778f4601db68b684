"""Types of plain YAML scalars: YAML 1.2 core, and text where versions of YAML disagree.

``no``, ``on``, ``12:30:00``, ``010``, ``1_000`` and dates stay the text they are. Nothing a
manifest may say is a number, so numbers exist only to be told from text.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

YamlValue: TypeAlias = Any
"""A text, a number, true, false, None, a list of values, or a mapping of texts to values."""

YamlMapping: TypeAlias = dict[str, YamlValue]

# Longer ones are no number anybody means, and int() is quadratic in the length.
MAX_NUMBER = 64

# Plain scalars that start otherwise are text; most do, so this is asked before anything else.
MAY_BE_TYPED: Final = frozenset({"", *"nNtTfF~+-.0123456789"})

_WORDS: dict[str, bool | None] = {
    "": None,
    **dict.fromkeys(("~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII
)
_ODD = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)


def typed(text: str) -> YamlValue:
    """Return what a plain scalar stands for.

    Raises:
        ValueError: it is a number that no value can hold.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(_checked(text))
    if _BASED.fullmatch(text):
        return int(_checked(text), 0)
    if _ODD.fullmatch(text):
        raise ValueError("not a finite number")
    if _FLOAT.fullmatch(text):
        return _finite(float(_checked(text)))
    return text


def _checked(text: str) -> str:
    if len(text) > MAX_NUMBER:
        raise ValueError(f"a number of {len(text)} characters")
    return text


def _finite(number: float) -> float:
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number too large to hold")
    return number
