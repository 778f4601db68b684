"""Variables of documents in which nothing can be wrong with them: on the path of every manifest.

That is a file without escapes whose variables all have a value. No places are needed then, and what
is put in is counted once for a document. Everything else is for ``variables``, which looks closely.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from reconciler.manifests.layers import VariableValue
from reconciler.manifests.placeholders import LITERAL, OPENING, as_text, size_of
from reconciler.manifests.yaml_source import MAX_SCALAR

SECTIONS = frozenset({"metadata", "spec"})
"""The parts of a document in whose values variables can stand."""

_SCRIPTS = frozenset({"script", "scriptFile"})  # they have rules of their own
_TOKENS = re.compile(r"\$\{[^}]*\}?")


class PlainSet(NamedTuple):
    """Variables that a file may hold, by their tokens such as ``${host}``.

    Attributes:
        values: What stands for each alone.
        texts: What stands for each inside of a text; lists, which cannot be there, are left out.
        largest: About how many characters of a manifest the largest takes.
    """

    values: Mapping[str, Any]
    texts: Mapping[str, str]
    largest: int


class PlainVariables:
    """The variables of a run that have a value in which no part of another variable can be."""

    def __init__(self, variables: Mapping[str, VariableValue | None]) -> None:
        self._by_token = {
            f"{OPENING}{name}}}": found.value
            for name, found in variables.items()
            if found is not None and not _may_begin_another(found.value)
        }
        self._last = self._set(())

    def of(self, text: str) -> PlainSet | None:
        """Return the variables of a file or text, and maybe others; None if one is not plain."""
        if LITERAL in text:
            return None
        # Files of one tree mostly have the same variables, and to count is quicker than to search.
        if sum(map(text.count, self._last.values)) != text.count(OPENING):
            tokens = set(_TOKENS.findall(text))
            if not tokens <= self._by_token.keys():
                return None
            self._last = self._set(tokens)
        return self._last

    def _set(self, tokens: Collection[str]) -> PlainSet:
        values = {token: self._by_token[token] for token in tokens}
        texts = {token: as_text(value) for token, value in values.items()}
        return PlainSet(
            values,
            {token: text for token, text in texts.items() if text is not None},
            max(map(size_of, values.values()), default=0),
        )


def _may_begin_another(value: Any) -> bool:
    """Return whether a value can make a variable together with what stands beside it."""
    return isinstance(value, str) and ("$" in value or "{" in value)


class UnusualError(Exception):
    """Something in a document needs a closer look."""


class PlainDocument:
    """One document of a file, in which plain variables are replaced.

    Attributes:
        put_in: About how many characters were put in.
    """

    def __init__(self, variables: PlainSet, used: set[str]) -> None:
        """Take variables, and the names of those that are used, to which new ones are added."""
        self.put_in = 0
        self._values, self._texts, _ = variables
        self._used = used
        self._unused = [name for name in self._values if _name(name) not in used]

    def replace(self, document: Mapping[str, Any]) -> None:
        """Replace the variables where they stand.

        Raises:
            UnusualError: the rest needs a closer look; some may be replaced already.
        """
        for key, value in document.items():
            if key in SECTIONS and isinstance(value, dict):
                self._mapping(value)
            elif OPENING in key or OPENING in str(value):
                raise UnusualError

    def _mapping(self, values: dict[str, Any]) -> None:
        for key, inner in values.items():
            kind = type(inner)
            if kind is str:
                if OPENING in inner:
                    if key in _SCRIPTS:
                        raise UnusualError
                    values[key] = self._value(inner)
            elif kind is dict:
                self._mapping(inner)
            elif kind is list:
                self._list(inner)
            if OPENING in key:
                raise UnusualError

    def _list(self, values: list[Any]) -> None:
        for index, inner in enumerate(values):
            kind = type(inner)
            if kind is str:
                if OPENING in inner:
                    values[index] = self._value(inner)
            elif kind is dict:
                self._mapping(inner)
            elif kind is list:
                self._list(inner)

    def _value(self, written: str) -> Any:
        if written not in self._values:
            return self.text(written)
        value = self._values[written]
        self._used.add(_name(written))
        self.put_in += size_of(value)
        return value

    def text(self, written: str) -> str:
        """Return a text with its variables replaced.

        Raises:
            UnusualError: it needs a closer look.
        """
        text = written
        for token, replacement in self._texts.items():
            text = text.replace(token, replacement)
        if len(text) > len(written):
            self.put_in += len(text) - len(written)
        if OPENING in text or len(text) > MAX_SCALAR:
            raise UnusualError
        if self._unused:
            self._used.update(_name(token) for token in self._unused if token in written)
        return text


def _name(token: str) -> str:
    return token[len(OPENING) : -1]
