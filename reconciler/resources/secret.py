"""A value that must not be seen."""

from __future__ import annotations

from typing import NoReturn

MAX_KEEP_OWED_SECONDS = 30 * 24 * 60 * 60
"""The longest time that a service keeps a client secret whose delivery is not acknowledged."""


class Secret:
    """A secret that shows itself only to who calls ``reveal``.

    Every other way to text (str, repr, format, pickling, JSON) gives stars or fails, so that
    a log line or a traceback cannot carry it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself. Call it only where the value is delivered or hashed."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __format__(self, spec: str) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")
