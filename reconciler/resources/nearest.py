"""The name that was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property

from reconciler.resources.ref import ORGANIZATION, Kind, ResourceRef, fold

MOST_HINTS = 100


def nearest(written: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the known name that is most like a written one, or None where none is.

    ``likeness`` is the least that counts, from 0 for any name to 1 for the same letters.
    """
    from difflib import get_close_matches

    byletters = {letters(name): name for name in known}
    found = get_close_matches(letters(written[:100]), byletters, n=1, cutoff=likeness)
    return byletters[found[0]] if found else None


class NearNames:
    """Finds the name of a group that one was probably meant to be.

    Each name is compared once, and only the first ``MOST_HINTS`` names: a comparison takes a while.
    """

    def __init__(self, known: Iterable[tuple[Hashable, str]]) -> None:
        self._known = known
        self._found: dict[tuple[Hashable, str], str | None] = {}

    @cached_property
    def _names(self) -> Mapping[Hashable, Sequence[str]]:
        """Return the names of each group; mostly none is missing, and nothing asks for them."""
        names: dict[Hashable, list[str]] = {}
        for group, name in self._known:
            names.setdefault(group, []).append(name)
        return names

    def name_for(self, written: str, group: Hashable) -> str | None:
        """Return the known name that a written one is most like, if there is one."""
        key = group, written
        if key not in self._found and len(self._found) < MOST_HINTS:
            self._found[key] = nearest(written, self._names.get(group, ()))
        return self._found.get(key)


def near_refs(known: Iterable[ResourceRef]) -> Callable[[ResourceRef], str | None]:
    """Return a function that finds the known name that is most like that of a missing resource.

    It is compared with names of its kind, in its own organization.
    """
    near = NearNames((_family(ref), ref.name) for ref in known)
    return lambda missing: near.name_for(missing.name, _family(missing))


def _family(ref: ResourceRef) -> tuple[Kind, str]:
    return ref.kind, "" if ref.kind is ORGANIZATION else fold(ref.organization)


def within(written: str, known: Iterable[str], letters: int) -> str | None:
    """Return the known name that a written one becomes by the fewest edits, if those are few.

    An edit puts in, takes out or replaces one letter; ``letters`` is how many are allowed.
    """
    near = [name for name in known if abs(len(name) - len(written)) <= letters]
    found = min(((edits(written, name), name) for name in near), default=(letters + 1, ""))
    return found[1] if found[0] <= letters else None


def edits(one: str, other: str) -> int:
    """Return how many letters must be put in, taken out or replaced to make one the other."""
    # Each row is the distances of a beginning of ``one`` from every beginning of ``other``.
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, 1):
        before, row = row, [count]
        for index, wanted in enumerate(other, 1):
            replaced = before[index - 1] + (letter != wanted)
            row.append(min(replaced, before[index] + 1, row[-1] + 1))
    return row[-1]


def one_of(names: Iterable[str]) -> str:
    """Return a choice of names as part of a sentence."""
    names = list(names)
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} or {names[-1]}"


def letters(name: str) -> str:
    """Drop what people vary: case, hyphens, underscores."""
    return "".join(filter(str.isalnum, name)).lower()
