"""The name that somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(written: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a written one, or None where none is."""
    from difflib import get_close_matches

    by_letters = {_letters(name): name for name in known}
    found = get_close_matches(_letters(written[:100]), by_letters, n=1, cutoff=0.6)
    return by_letters[found[0]] if found else None


def one_of(names: Iterable[str]) -> str:
    """Return a choice of names as part of a sentence."""
    names = list(names)
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _letters(name: str) -> str:
    """Drop what people vary: case, hyphens, underscores."""
    return "".join(filter(str.isalnum, name)).lower()
