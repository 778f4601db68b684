"""Colours and sizes of reports; quick to load, for the options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@dataclass(frozen=True, slots=True)
class Style:
    """Colours of text on one stream."""

    colour: bool = False

    def __call__(self, text: str, *looks: str) -> str:
        """Return a text in these looks."""
        if not self.colour or not text:
            return text
        return f"\x1b[{';'.join(_CODES[look] for look in looks)}m{text}\x1b[0m"


PLAIN = Style()


def style_of(stream: IO[str], environ: Mapping[str, str], color: str = "auto") -> Style:
    """Return the style of a stream.

    ``color`` decides where it is ``always`` or ``never``; then NO_COLOR, FORCE_COLOR, TERM, and
    last whether the stream is a terminal.
    """
    if color != "auto":
        return Style(colour=color == "always")
    if environ.get("NO_COLOR"):
        return PLAIN
    if environ.get("FORCE_COLOR"):
        return Style(colour=True)
    if environ.get("TERM") == "dumb":
        return PLAIN
    return Style(colour=stream.isatty())


LIMIT = 60_000
"""GitHub refuses comments past 65,536 characters."""

LEAST = 2_000
"""The summary alone is never longer than this."""

WHOLE = 50
"""Plain creates, or objects that were made, that a folded report shows; the others are counted."""
