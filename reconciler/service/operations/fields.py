"""Reading JSON-shaped fields strictly, where loading a model library would cost too much.

The requests of an unchanged plan are read here, and all other requests for lists: they have few
fields, and an import of the models takes longer than the whole listing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from reconciler.service.domain.refusal import invalid

_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
LARGEST = 2**63 - 1
MAX_TEXT = 200


class Fields:
    """The fields of a request or of a part of one. Each is read once; the rest is unknown.

    None is the same as left out, but only for a field that is known.
    """

    def __init__(self, fields: Mapping[str, object], path: str = "") -> None:
        self._left = dict(fields)
        self._path = path

    def text(self, name: str, *, required: bool = False, limit: int = MAX_TEXT) -> str:
        """Return a text; one that is left out is empty."""
        value = self._taken(name, "")
        if not isinstance(value, str):
            raise self.wrong(name, "must be a string")
        if len(value) > limit:
            raise self.wrong(name, f"must be at most {limit} characters long")
        if required and not value:
            raise self.wrong(name, "is required")
        if "\0" in value or not _is_encodable(value):
            raise self.wrong(name, "must be text without NUL")
        return value

    def number(self, name: str, default: int = 0) -> int:
        """Return a number, which JSON may also carry as a string of its digits."""
        value = self._taken(name, default)
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise self.wrong(name, "must be a whole number, 0 or more")
        return value

    def limit(self, most: int) -> int:
        """Return the length of a page, at most ``most``, which is also what 0 and none mean."""
        return min(self.number("limit") or most, most)

    def flag(self, name: str) -> bool:
        """Return a flag; one that is left out is false."""
        value = self._taken(name, default=False)
        if not isinstance(value, bool):
            raise self.wrong(name, "must be true or false")
        return value

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return one of some words; the first if it is left out."""
        value = self._taken(name, choices[0])
        if value not in choices:
            raise self.wrong(name, f"must be one of {', '.join(choices)}")
        return str(value)

    def part(self, name: str) -> Fields:
        """Return a part that has fields of its own; empty if it is left out."""
        return self._part(name, self._taken(name, {}))

    def parts(self, name: str) -> Sequence[Fields]:
        """Return a list of parts that have fields of their own."""
        return [self._part(f"{name}[{at}]", item) for at, item in enumerate(self.values(name))]

    def values(self, name: str) -> Sequence[object]:
        """Return a list of values of any kind."""
        value = self._taken(name, [])
        if not isinstance(value, (list, tuple)):
            raise self.wrong(name, "must be a list")
        return value

    def names(self) -> Sequence[str]:
        """Return the names of the fields that were not read yet."""
        return [name for name, value in self._left.items() if value is not None]

    def end(self) -> None:
        """Refuse what was not read: a misspelt field that is ignored misleads its author."""
        for name in self._left:
            raise self.wrong(shown(name), "is not a field of this request")

    def wrong(self, name: str, rule: str) -> Exception:
        """Return the refusal of a field."""
        return invalid(f"{self._path}{name}", rule)

    def _taken(self, name: str, default: object) -> object:
        value = self._left.pop(name, None)
        return default if value is None else value

    def _part(self, name: str, value: object) -> Fields:
        if not isinstance(value, Mapping):
            raise self.wrong(name, "must be an object")
        return Fields(value, f"{self._path}{name}.")


def shown(name: object) -> str:
    """Return the name of a field, which the caller chose, as a refusal may show it."""
    text = str(name)[:64]
    return text if text.isascii() and text.isprintable() else ascii(text)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
