"""Variables, and text with variables in it: ``${name}`` is a value, ``$${`` the characters ``${``.

There are no loops, conditions or functions, and what is filled in is never looked at again. The
placeholders of other tools are recognised so that one left over can be reported.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.text import YamlValue


class VariableValue(NamedTuple):
    """The value of one variable in one environment.

    Attributes:
        value: A plain JSON value, which is of the declared type and fits the declared pattern.
        origin: Where the value is written: a place in the configuration, or a location whose
            ``file`` is the option or environment variable, such as ``--var shopHost``.
    """

    value: YamlValue
    origin: SourceLocation


Values: TypeAlias = Mapping[str, VariableValue | None]
"""Values of declared variables by their names; None for one that has none."""


@dataclass(frozen=True)
class Layers:
    """Everything that is laid over the manifests of a run.

    Attributes:
        environment: Name of the environment; empty where none was chosen.
        variables: Every declared variable, with its value in this environment.
        declarations: Places where variables are declared, for the warning about unused ones.
        overlay: Folder of the overlay as it is shown; empty for none.
        overlay_place: Where the configuration names it.
        other_overlays: Overlay folders of the other environments. They belong to other services:
            a variable that only they use is used.
        root: The configured folder of manifests. Defaults of the folders between it and the PATHS
            count too. Empty without a configuration.
    """

    environment: str = ""
    variables: Values = field(default_factory=dict)
    declarations: Mapping[str, SourceLocation] = field(default_factory=dict)
    overlay: str = ""
    other_overlays: tuple[str, ...] = ()
    root: str = ""
    overlay_place: SourceLocation | None = None

    @property
    def overlays(self) -> tuple[str, ...]:
        """Return the overlay folders of all environments."""
        return (*([self.overlay] if self.overlay else []), *self.other_overlays)

    @property
    def is_shared(self) -> bool:
        """Return whether the overlay is that of another environment, too."""
        return os.path.normpath(self.overlay) in map(os.path.normpath, self.other_overlays)

    @property
    def variables_alone(self) -> Layers:
        """Return the same for manifests that are not of the tree: no overlay is laid over them."""
        return replace(self, overlay="", other_overlays=self.overlays)


NO_LAYERS = Layers()


# ``${{`` is a placeholder of another tool. A text without ``}`` reaches to the next brace or end.
TOKEN = re.compile(r"\$\$\{|\$\{(?!\{)([^{}]*)(\}?)")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
LITERAL = "$${"
OPENING = "${"

# An escaped ``$${{`` is meant. A line of a script may well hold ``{{``, so the rest must fit too.
_LEFT_OVER = re.compile(
    r"##[A-Za-z0-9_.-]{1,80}##"
    r"|@@[A-Za-z0-9_.-]{1,80}@@"
    r"|(?<!\$)\$\{\{[^{}\n]{0,200}\}\}"
    r"|(?<![${])\{\{-? ?[\w.$|\"' -]{1,200}\}\}(?!\})",
    re.ASCII,
)

_LINE_END = re.compile("\r\n|[\n\r\u2028\u2029]")  # as JavaScript counts lines


class Token(NamedTuple):
    """A variable in a text, or the escape of two characters.

    Attributes:
        start: Number of characters before it.
        end: Number of characters up to its end.
        name: Name of the variable; empty for the escape and for something that is no name.
        text: The token as it is written.
    """

    start: int
    end: int
    name: str
    text: str

    @property
    def is_literal(self) -> bool:
        """Return whether it is the escape."""
        return self.text == LITERAL


def tokens(text: str) -> Iterator[Token]:
    """Return the variables and escapes of a text in their order."""
    return map(token_of, TOKEN.finditer(text))


def token_of(found: re.Match[str]) -> Token:
    """Return the variable or escape of a match of ``TOKEN``."""
    name = found[1] if found[2] and _NAME.fullmatch(found[1]) else ""
    return Token(found.start(), found.end(), name, found[0])


def names_in(text: str) -> list[str]:
    """Return the names of the variables in a text, each once, in their order."""
    return list(dict.fromkeys(token.name for token in tokens(text) if token.name))


def _replaced(text: str, variables: Values) -> Iterator[tuple[Token, str]]:
    """Yield each token of a text with what replaces it: its name, where it has no value."""
    for token in tokens(text):
        found = variables.get(token.name)
        value = OPENING if token.is_literal else as_text(found.value) if found else None
        yield token, token.name if value is None else value


def expanded(text: str, variables: Values) -> str:
    """Return a text with its variables replaced and its escapes resolved."""
    values = (value for _, value in _replaced(text, variables))
    return TOKEN.sub(lambda _: next(values), text)


def written_position(text: str, variables: Values, line: int, column: int) -> tuple[int, int, str]:
    """Return where a line and column of the expanded text come from in the text as it is written.

    Lines and columns count from 1. The name is that of the variable whose value is there, if any;
    then the place is that of its ``${``.
    """
    starts = _line_starts(expanded(text, variables))
    offset = starts[min(line, len(starts)) - 1] + column - 1
    before = end = 0  # characters before the end of the last token: of the expanded text, of this
    for token, value in _replaced(text, variables):
        start = before + token.start - end
        if offset < start:
            break
        if offset < start + len(value):
            return (*position(text, token.start), token.name)
        before, end = start + len(value), token.end
    return (*position(text, end + offset - before), "")


def position(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, from 1, of a character of a text."""
    starts = _line_starts(text[:offset])
    return len(starts), offset - starts[-1] + 1


def _line_starts(text: str) -> list[int]:
    return [0, *(found.end() for found in _LINE_END.finditer(text))]


def as_text(value: YamlValue) -> str | None:
    """Return what a value is inside of a text; None for a list or a mapping, which cannot be."""
    if isinstance(value, str):
        return value
    return None if isinstance(value, (list, dict)) else json.dumps(value)


def size_of(value: YamlValue) -> int:
    """Return about how many characters of a manifest a value takes."""
    if isinstance(value, str):
        return len(value) + 8
    if isinstance(value, list):
        return 8 + sum(map(size_of, value))
    if isinstance(value, dict):
        return 8 + sum(len(name) + size_of(inner) for name, inner in value.items())
    return 8


def escaped(text: str) -> str:
    """Return a text that stands for exactly this one where variables are replaced."""
    return text.replace(OPENING, LITERAL)


def may_have_left_over(text: str) -> bool:
    """Return whether a placeholder of another tool can be in a text, by a quick look."""
    return "##" in text or "@@" in text or "{{" in text


def left_over(text: str) -> Token | None:
    """Return the first placeholder of another tool in a text."""
    found = _LEFT_OVER.search(text)
    return Token(found.start(), found.end(), "", found[0]) if found else None
