"""Names people read and compare: one spelling, nothing hidden in them (reliability T-30)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from reconciler.validation.problem import Problem, doubtful, wrong

# Letters of these scripts look like each other's; within any one of them they do not.
_LOOKALIKE = {"LATIN", "CYRILLIC", "GREEK", "COPTIC", "ARMENIAN", "CHEROKEE", "LISU"}
_STYLED = {"FULLWIDTH", "MATHEMATICAL", "CIRCLED", "PARENTHESIZED", "SQUARED", "MODIFIER"}
_CONTROL = {"Cc", "Zl", "Zp", "Cs"}

# Drawn as nothing although they are letters or marks to Unicode, besides all of category Cf.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
)


def is_plain(name: str) -> bool:
    """Return whether a name is of visible ASCII characters only: nothing to judge."""
    return name.isascii() and name.isprintable() and name == name.strip(" ")


@lru_cache(maxsize=4096)  # the names of organizations and projects come back all the time
def name_problems(name: str) -> tuple[Problem, ...]:
    """Return what is wrong or dangerous about a name."""
    return () if is_plain(name) else tuple(_problems(name))


def _problems(name: str) -> Iterator[Problem]:
    hidden = next((character for character in name if _is_hidden(character)), None)
    if name != name.strip():
        yield wrong(
            "NAME-SPACE",
            "the name starts or ends with a space",
            "Remove the space: it cannot be seen, and it is part of the name.",
        )
    if hidden is not None:
        yield wrong(
            "NAME-INVISIBLE",
            f"the name contains the invisible character U+{ord(hidden):04X}",
            "Remove it: the name looks like another one.",
        )
    elif not unicodedata.is_normalized("NFC", name):
        yield wrong(
            "NAME-NFC",
            "the name is not in Unicode's normal form NFC",
            f"Write it as {unicodedata.normalize('NFC', name)!a} (escapes shown).",
        )
    else:
        yield from _confusables(name)


def _is_hidden(character: str) -> bool:
    category = unicodedata.category(character)
    return category in _CONTROL or category == "Cf" or character in _BLANK


def _confusables(name: str) -> Iterator[Problem]:
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in name if letter.isalpha()}
    found = sorted(scripts & (_LOOKALIKE | _STYLED))
    if len(found) > 1 or scripts & _STYLED:
        yield doubtful(
            "NAME-CONFUSABLE",
            f"the name mixes letters that look alike ({', '.join(found).lower()})",
            f"Make sure that it is what it looks like: {name!a}.",
        )
