"""Documents as text: what a drawing of one may know of its stream, and how lines are fitted there.

A document is a value that says what a report shows. A drawing of it is one form, such as JSON.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from reconciler.diagnostics import SourceLocation
from reconciler.report.visible import LIMIT, PLAIN, Style, without_colours

NARROWEST = 40
_INDENT = "    "
# Stands for the blank between a flag and its value, which are copied as one.
_BOUND = "\1"
_FLAG = re.compile(r"(?<!\S)(--[a-z-]+) (?=\S)")


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a report on one stream.

    Attributes:
        style: Their colours.
        width: Columns after which lines are broken, between words; 0 for no such limit.
        line_at: Returns the line of a file at a location, or None where it cannot be shown.
        folded: Whether long lists are cut, and of many findings with one code a few are shown.
        limit: Characters of a comment at most.
    """

    style: Style = PLAIN
    width: int = 0
    line_at: Callable[[SourceLocation], str | None] | None = None
    folded: bool = False
    limit: int = LIMIT


BARE = Layout()

Document = TypeVar("Document")

Drawing: TypeAlias = Callable[[Document, Layout], str]

Forms: TypeAlias = Mapping[str, Drawing[Document]]
"""The drawings of a document by the value of ``--format``; the first is the default."""


def in_json(fields_of: Callable[[Document], object]) -> Drawing[Document]:
    """Return a drawing as one JSON document."""
    return lambda document, _: json_as_text(fields_of(document))


def in_lines(lines_of: Callable[[Document], Iterable[str]]) -> Drawing[Document]:
    """Return a drawing for a person of lines that have no colours."""
    return lambda document, layout: fitted("\n".join(lines_of(document)), layout.width)


def json_as_text(fields: object) -> str:
    """Return one JSON document, with nothing in it that a CI runner would obey."""
    return json.dumps(fields, indent=2, ensure_ascii=True).replace("##[", "##\\u005b")


def wrapped(text: str, width: int, indent: str = _INDENT) -> str:
    """Return one line in lines of at most this width, broken between words only; 0 is no limit.

    A flag and the word after it, mostly its value, stay together.
    """
    if not width:
        return text
    bound = _FLAG.sub(rf"\g<1>{_BOUND}", text)
    return _broken(bound, max(width, NARROWEST), indent, moved=True).replace(_BOUND, " ")


_SPACES = re.compile("( +)")
_COMMAND = "  reconciler "


def fitted(text: str, width: int) -> str:
    """Return a text whose lines are at most this wide, broken at spaces only; 0 is no limit.

    What follows a break hangs beneath its line. A word that fits on no line stays where it is. So
    does a command on a line of its own: it is copied, and would run as two.
    """
    if not width:
        return text
    return "\n".join(_in_width(line, width) for line in text.split("\n"))


def _in_width(line: str, width: int) -> str:
    if line.startswith(_COMMAND):
        return line
    start = len(line) - len(line.lstrip(" "))
    return _broken(line, width, " " * min(start + len(_INDENT), width // 2), moved=False)


def _broken(line: str, width: int, indent: str, *, moved: bool) -> str:
    """Return a line in lines that begin with the indent, but for the first one.

    ``moved`` says whether a word that fits on no line has one of its own.
    """
    if len(line) <= width and line.isascii():
        return line
    lead, start, *rest = (
        _SPACES.split(line) if line.startswith(" ") else ("", "", *_SPACES.split(line))
    )
    first, *others = rest
    parts, column = [lead, start, first], len(start) + columns_of(without_colours(first))
    for space, word in zip(others[::2], others[1::2], strict=True):
        wide = columns_of(without_colours(word))
        if column + len(space) + wide > width and (moved or len(indent) + wide <= width):
            parts += ["\n", indent, word]
            column = len(indent) + wide
        else:
            parts += [space, word]
            column += len(space) + wide
    return "".join(parts)


def columns_of(text: str) -> int:
    """Return the columns of a terminal that a visible text takes."""
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )
