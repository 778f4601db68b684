"""The line of a file that a finding is about, with a caret beneath the place.

A line can hold what must not be shown: a client secret that was written into a manifest by
mistake. What looks like one is replaced by ``***``.
"""

from __future__ import annotations

import re
import unicodedata

from reconciler.diagnostics import SourceLocation
from reconciler.report.place import without_credentials
from reconciler.report.visible import visible

LONGEST = 100
"""Characters of a line that are shown at most."""

BEFORE = 60
"""Characters of a long line that are shown before the place at most."""

_CUT = "..."
_HIDDEN = "***"
_SECRET_VALUE = re.compile(
    r"([\w-]*(?:secret|passw|token|api[_-]?key|credential|private[_-]?key)[\w-]*[\"']?\s*[:=]\s*)"
    r"(?!(?:true|false|null|OIDC_\w+|[|>][+-]?)\s*$)\S.*",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\brct_[\w-]+|\beyJ[\w-]+\.[\w.-]+|(?<=Bearer )\S+")
_WIDE = frozenset("WF")


def excerpt(line: str, location: SourceLocation) -> list[str]:
    """Return a line with its number, and a caret beneath the column of a location.

    The line is cut around the column where it is long. There is no caret beneath a hidden secret.
    """
    shown = without_secrets(line)
    column = min(location.column, len(line) + 1)
    text, before = _window(shown.rstrip(), max(column - 1, 0))
    number = str(location.line)
    first = f"    {number} | {visible(text)}"
    if not column or line[: column - 1] != shown[: column - 1]:
        return [first]
    return [first, f"    {' ' * len(number)} | {' ' * _width(visible(text[:before]))}^"]


def without_secrets(line: str) -> str:
    """Return a line in which all that looks like a secret is replaced by ``***``."""
    return _TOKEN.sub(_HIDDEN, _SECRET_VALUE.sub(rf"\1{_HIDDEN}", without_credentials(line)))


def _window(line: str, before: int) -> tuple[str, int]:
    """Return the part of a line around a place, and how many characters are before the place."""
    start = max(before - BEFORE, 0) if len(line) > LONGEST else 0
    part = line[start : start + LONGEST]
    left = _CUT if start else ""
    right = _CUT if start + LONGEST < len(line) else ""
    return f"{left}{part}{right}", before - start + len(left)


def _width(text: str) -> int:
    """Return the columns of a terminal that a visible text takes."""
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in _WIDE)
        for each in text
    )
