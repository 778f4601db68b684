"""Variables of documents in which nothing can be wrong with them: on the path of every manifest.

That is a file without escapes whose variables all have a value. No places are needed then, and what
is put in is counted once for a document. Everything else is for ``variables``, which looks closely.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.manifests.placeholders import LITERAL, OPENING, VariableValue, as_text, size_of
from reconciler.manifests.text import YamlMapping, YamlValue
from reconciler.manifests.yaml_source import MAX_SCALAR

SECTIONS = frozenset({"metadata", "spec"})
"""The parts of a document in whose values variables can stand."""

_SCRIPTS = frozenset({"script", "scriptFile"})  # they have rules of their own
_TOKENS = re.compile(r"\$\{[^}]*\}?")


class PlainVariables:
    """The variables of a run that have a value in which no part of another variable can be."""

    def __init__(self, variables: Mapping[str, VariableValue | None], used: set[str]) -> None:
        """Take variables, and the names of those that are used, to which new ones are added."""
        self._by_token = {
            f"{OPENING}{name}}}": found.value
            for name, found in variables.items()
            if found is not None and not _may_begin_another(found.value)
        }
        self._used = used
        self._last = Replacement({}, used)

    def of(self, text: str, number: int) -> Replacement | None:
        """Return how to replace the variables of a file or text; None if one is not plain.

        Args:
            text: The file or text. It holds no escapes.
            number: How often ``${`` is in it.
        """
        if LITERAL in text:
            return None
        # Files of one tree mostly have the same variables, and to count is quicker than to search.
        if sum(map(text.count, self._last.values)) != number:
            tokens = set(_TOKENS.findall(text))
            if not tokens <= self._by_token.keys():
                return None
            self._last = Replacement({token: self._by_token[token] for token in tokens}, self._used)
        return self._last


def _may_begin_another(value: YamlValue) -> bool:
    """Return whether a value can make a variable together with what stands beside it.

    A closer look that comes after it would take that one for a variable of the manifest.
    """
    if isinstance(value, list):
        return any(map(_may_begin_another, value))
    return isinstance(value, str) and ("$" in value or "{" in value)


class UnusualError(Exception):
    """Something in a document needs a closer look."""


class Replacement:
    """Replaces some variables in documents and texts that hold no others.

    Attributes:
        values: What stands for each variable alone, by its token such as ``${host}``.
        largest: About how many characters of a manifest the largest value takes.
        put_in: About how many characters were put in by now.
    """

    __slots__ = ("_has_lists", "_texts", "_unused", "_used", "largest", "put_in", "values")

    def __init__(self, values: Mapping[str, YamlValue], used: set[str]) -> None:
        self.values = values
        self.largest = max(map(size_of, values.values()), default=0)
        self.put_in = 0
        texts = {token: as_text(value) for token, value in values.items()}
        self._texts = tuple((token, text) for token, text in texts.items() if text is not None)
        self._has_lists = len(self._texts) < len(values)
        self._used = used
        self._unused = {token for token in values if _name(token) not in used}

    def replace(self, document: Mapping[str, YamlValue]) -> None:
        """Replace the variables of a document where they stand.

        Raises:
            UnusualError: the rest needs a closer look; some may be replaced already.
        """
        for key, value in document.items():
            if key in SECTIONS and isinstance(value, dict):
                self._mapping(value)
            elif OPENING in key or OPENING in str(value):
                raise UnusualError

    def _mapping(self, values: YamlMapping) -> None:
        for key, inner in values.items():
            kind = type(inner)
            if kind is str:
                if OPENING in inner:
                    if key in _SCRIPTS:
                        raise UnusualError
                    values[key] = self._value(inner)
            elif kind is list:
                self._list(inner)
            elif kind is dict:
                self._mapping(inner)
            if OPENING in key:
                raise UnusualError

    def _list(self, values: list[YamlValue]) -> None:
        for index, inner in enumerate(values):
            kind = type(inner)
            if kind is str:
                if OPENING in inner:
                    values[index] = self._value(inner)
            elif kind is dict:
                self._mapping(inner)
            elif kind is list:
                self._list(inner)

    def _value(self, written: str) -> YamlValue:
        if written not in self.values:
            return self.text(written)
        value = self.values[written]
        self.put_in += size_of(value)
        self._use(written)
        return value

    def text(self, written: str) -> str:
        """Return a text with its variables replaced.

        Raises:
            UnusualError: it needs a closer look.
        """
        text = written
        for token, replacement in self._texts:
            text = text.replace(token, replacement)
        more = len(text) - len(written)
        if more > 0:
            if len(text) > MAX_SCALAR:
                raise UnusualError
            self.put_in += more
        if self._has_lists and OPENING in text:
            raise UnusualError
        if self._unused:
            self._use(written)
        return text

    def _use(self, written: str) -> None:
        found = {token for token in self._unused if token in written}
        self._unused -= found
        self._used.update(map(_name, found))


def _name(token: str) -> str:
    return token[len(OPENING) : -1]
