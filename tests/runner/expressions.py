"""Expressions of GitHub workflows: ``${{ }}`` in texts, and the conditions of jobs and steps.

Contexts, text, numbers, ``!``, ``==``, ``!=``, ``&&``, ``||``, brackets, ``toJSON`` and the four
functions of a condition. A name that a context does not have is null, as on GitHub; anything else
that is not understood is an error, so that a template cannot come to rely on it unseen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(r"\s*(?:('(?:[^']|'')*')|(==|!=|&&|\|\||[()!])|([\w-]+(?:\.[\w-]+)*))")
_EMBEDDED = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
STATUS = ("success", "failure", "always", "cancelled")


def names_a_status(condition: str) -> bool:
    """Return whether a condition calls a status function; otherwise ``success()`` is implied."""
    return any(f"{name}()" in condition for name in STATUS)


def filled_in(text: str, contexts: Mapping[str, Any]) -> str:
    """Return a text with each expression in it replaced by its value."""
    return _EMBEDDED.sub(lambda found: as_text(evaluated(found[1], contexts)), text)


def holds(condition: str, contexts: Mapping[str, Any]) -> bool:
    """Return whether the condition of a job or step holds."""
    found = _EMBEDDED.fullmatch(condition.strip())
    return bool(evaluated(found[1] if found else condition, contexts))


def as_text(value: Any) -> str:
    """Return a value as it stands in a text."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def evaluated(expression: str, contexts: Mapping[str, Any]) -> Any:
    """Return the value of an expression.

    Raises:
        ValueError: it has something that is not understood here.
    """
    return _Expression(expression, contexts).value()


class _Expression:
    """One expression while it is read, from the left; each method reads what binds closer."""

    def __init__(self, text: str, contexts: Mapping[str, Any]) -> None:
        self._tokens = _tokens_of(text)
        self._contexts = contexts

    def value(self) -> Any:
        value = self._either()
        if self._tokens:
            raise ValueError(f"not understood: {self._tokens}")
        return value

    def _either(self) -> Any:
        value = self._both()
        while self._took("||"):
            other = self._both()
            value = value or other
        return value

    def _both(self) -> Any:
        value = self._compared()
        while self._took("&&"):
            other = self._compared()
            value = value and other
        return value

    def _compared(self) -> Any:
        value = self._single()
        if self._took("=="):
            return _folded(value) == _folded(self._single())
        if self._took("!="):
            return _folded(value) != _folded(self._single())
        return value

    def _single(self) -> Any:
        if self._took("!"):
            return not self._single()
        if self._took("("):
            value = self._either()
            self._expect(")")
            return value
        word = self._tokens.pop(0)
        if word.startswith("'"):
            return word[1:-1].replace("''", "'")
        if word in {"true", "false"}:
            return word == "true"
        if self._took("("):
            value = json.dumps(self._either()) if word == "toJSON" else None
            self._expect(")")
            return self._contexts["status"][word] if value is None else value
        return self._looked_up(word)

    def _looked_up(self, name: str) -> Any:
        context, *path = name.split(".")
        value: Any = self._contexts[context]
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def _took(self, token: str) -> bool:
        if self._tokens[:1] != [token]:
            return False
        self._tokens.pop(0)
        return True

    def _expect(self, token: str) -> None:
        if not self._took(token):
            raise ValueError(f"{token} is missing before {self._tokens}")


def _tokens_of(text: str) -> list[str]:
    tokens, at, text = [], 0, text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"not understood: {text[at:]}")
        tokens.append(found[0].strip())
        at = found.end()
    return tokens


def _folded(value: Any) -> Any:
    """Return a value as ``==`` compares it: text ignores case, and null is the empty text."""
    return as_text(value).lower()
