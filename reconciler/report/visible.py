"""Text that is safe to print: nothing hidden, nothing obeyed, no password; its colours and sizes.

Terminals obey control characters, readers are deceived by bidirectional and zero-width ones,
and CI runners take commands from log lines (reliability-security T-06, finding 12). Every string
that this program did not write itself goes through ``visible`` on its way out.

What is shown stays as it is when it is shown again, so a text that was written like an escape
looks like one: no way to tell the two apart would leave scripts and patterns readable.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, NamedTuple

from reconciler.diagnostics import BLANK

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Runners obey :: at the start of a line, blanks aside, and ##[ anywhere in it.
_COMMAND = re.compile(r"^\s*::|##\[")


def visible(text: str) -> str:
    """Return a text with every invisible character written out, on one line."""
    if text.isprintable() and not _COMMAND.search(text) and not BLANK.search(text):
        return text
    shown = "".join(_shown(character) for character in text)
    return _COMMAND.sub(_broken, shown)


def with_escaped_forms(text: str) -> str:
    """Return a text with the characters escaped that keep it from Unicode's normal form NFC.

    For values that stand beside each other: ``a`` with U+0308 and U+00E4 are drawn alike.
    Compare them first, then escape each line: one letter decides on all marks of the text.
    """
    normal = unicodedata.normalize("NFC", text)
    if normal == text:
        return text
    usual = {*normal, *string.printable}
    return "".join(
        _escaped(each) if unicodedata.category(each)[0] == "M" or each not in usual else each
        for each in text
    )


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
        or BLANK.match(character)
    )
    return _escaped(character) if hidden else character


def _escaped(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@dataclass(frozen=True, slots=True)
class Style:
    """Colours of text on one stream."""

    colour: bool = False

    def __call__(self, text: str, *looks: str) -> str:
        """Return a text in these looks."""
        if not self.colour or not text or not looks:
            return text
        return f"\x1b[{';'.join(_CODES[look] for look in looks)}m{text}\x1b[0m"


PLAIN = Style()


class Sentence(NamedTuple):
    """A sentence about a whole report, whose first words have a look of their own."""

    first: str
    rest: str = ""
    looks: tuple[str, ...] = ("bold",)

    def __str__(self) -> str:
        """Return it without colours."""
        return self.first + self.rest

    def drawn(self, style: Style) -> str:
        """Return it in a style."""
        return style(self.first, *self.looks) + self.rest


_COLOURS = re.compile("\x1b\\[[0-9;]*m")


def without_colours(text: str) -> str:
    """Return a text of ours as it is where there are no colours."""
    return _COLOURS.sub("", text)


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
"""Changes without a risk, deletes alike, or objects that were made, that a folded report shows.

The others are counted.
"""

_IN_USER = re.compile(r"(://[^/?#@:]*):[^/?#]*@")
# Signs without an escape: libpq takes all up to "@" for the password, unless a slash comes first.
_OF_DATABASE = re.compile(r"(\bpostgres(?:ql)?://[^/\s@:]*):(?:[^/\s]*|[^?#\s]*)@")
_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)[^&#]*", re.IGNORECASE)


def without_credentials(address: str) -> str:
    """Return an address with every password in it replaced by ``***``."""
    hidden = _IN_USER.sub(r"\1:***@", _OF_DATABASE.sub(r"\1:***@", address))
    return _IN_QUERY.sub(r"\1***", hidden)


_ANY_USER = re.compile(r"://[^/?#]*@")
_BEHIND_PATH = re.compile(r"[?#].+", re.DOTALL)


def shown_address(service: str) -> str:
    """Return the address of a service without what can be a secret.

    One over HTTP has no user, query or fragment, so that a token was put there by mistake.
    """
    if not service.lower().startswith(("http:", "https:")):
        return without_credentials(service)
    return _BEHIND_PATH.sub("?***", _ANY_USER.sub("://***@", service))


def shortened(text: str, longest: int) -> str:
    """Return a text, or its beginning and how much longer it is."""
    over = len(text) - longest
    return f"{text[:longest]} [{over} more characters]" if over > 0 else text


_TICKS = re.compile("`+")


def longest_ticks(text: str) -> int:
    """Return the length of the longest run of back-ticks: a fence must be longer."""
    return max(map(len, _TICKS.findall(text)), default=0)
