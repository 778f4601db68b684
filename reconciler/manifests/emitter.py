"""Plain values become YAML: what our reader reads back is what was written.

Block style, two spaces, no anchors, no tags. A text stands in quotes wherever our reader, or one
of another version of YAML, could take it for something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.manifests.scalars import typed

STEP = "  "
_PLAIN = re.compile(r"[A-Za-z_/](?:[A-Za-z0-9 _./:@?=&%+~-]*[A-Za-z0-9_./@?=&%+~-])?", re.ASCII)
_DURATION = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?s", re.ASCII)
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def emit(document: Mapping[str, Any]) -> str:
    """Return one document as YAML, without a line of dashes."""
    return "".join(f"{line}\n" for line in _mapping(document, ""))


def _mapping(values: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in values.items():
        yield from _entry(f"{indent}{scalar(key)}:", value, indent + STEP)


def _sequence(values: list[Any], indent: str) -> Iterator[str]:
    for value in values:
        if isinstance(value, (dict, list)) and value:
            nested = list(_block(value, indent + STEP))
            yield f"{indent}- {nested[0].lstrip(' ')}"
            yield from nested[1:]
        else:
            yield from _entry(f"{indent}-", value, indent + STEP)


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        if value:
            yield head
            yield from _block(value, indent)
        else:
            yield f"{head} {'{}' if isinstance(value, dict) else '[]'}"
    elif isinstance(value, str) and _fits_a_block(value):
        yield f"{head} {'|' if value.endswith(_NEWLINE) else '|-'}"
        lines = value.removesuffix(_NEWLINE).split(_NEWLINE)
        yield from (f"{indent}{line}" if line else "" for line in lines)
    else:
        yield f"{head} {scalar(value)}"


def _block(value: dict[str, Any] | list[Any], indent: str) -> Iterator[str]:
    return _mapping(value, indent) if isinstance(value, dict) else _sequence(value, indent)


_NEWLINE = "\n"


def scalar(value: Any) -> str:
    """Return a value that is neither a mapping nor a list, on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    return text if _is_plain(text) else f'"{"".join(map(_escaped, text))}"'


def _is_plain(text: str) -> bool:
    if _DURATION.fullmatch(text):
        return True
    return (
        _PLAIN.fullmatch(text) is not None
        and ": " not in text
        and text.casefold() not in _WORDS
        and isinstance(typed(text), str)
    )


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _fits_a_block(text: str) -> bool:
    """Return whether a text of several lines reads back the same as a literal block."""
    lines = text.removesuffix(_NEWLINE).split(_NEWLINE)
    return (
        _NEWLINE in text
        and lines[0][:1] not in {"", " ", "\t"}
        and lines[-1] != ""
        and all(line.replace("\t", "").isprintable() and not line.isspace() for line in lines)
    )
