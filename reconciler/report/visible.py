"""Making text from manifests and services safe to print: nothing hidden, nothing obeyed.

Terminals obey control characters, readers are deceived by bidirectional and zero-width ones,
and CI runners take commands from log lines (reliability-security T-06, finding 12). Every string
that this program did not write itself goes through here on its way out.

What is shown stays as it is when it is shown again, so a text that was written like an escape
looks like one: no way to tell the two apart would leave scripts and patterns readable.
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks, by Unicode's categories, that nevertheless show nothing (most of them are its
# "default ignorable" code points). With them two names look the same and are not.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)
# Runners obey :: at the start of a line, blanks aside, and ##[ anywhere in it.
_COMMAND = re.compile(r"^\s*::|##\[")


def visible(text: str) -> str:
    """Return a text with every invisible character written out, on one line."""
    if text.isprintable() and not _COMMAND.search(text) and not _BLANK.search(text):
        return text
    shown = "".join(_shown(character) for character in text)
    return _COMMAND.sub(_broken, shown)


def _broken(command: re.Match[str]) -> str:
    text = command.group()
    return text[:-1] + _escaped(text[-1])


def _shown(character: str) -> str:
    if character == "\n":
        return "\\n"
    if character == "\t":
        return "\\t"
    hidden = (
        unicodedata.category(character) in _HIDDEN
        or not character.isprintable()
        or _BLANK.match(character)
    )
    return _escaped(character) if hidden else character


def _escaped(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"
