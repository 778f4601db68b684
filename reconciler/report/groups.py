"""Grouping of items that are described in the same words, so that a long report stays short.

Which items are equal is for the caller to say.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from reconciler.diagnostics import listed

Item = TypeVar("Item")

MANY = 10
"""Changes of a plan, or findings of one code, up to which each is shown on its own."""

NAMED = 3
"""Members of a group that are shown or named; the others are counted."""


def grouped(
    items: Sequence[Item], key: Callable[[Item], Hashable], above: int
) -> list[tuple[Item, ...]]:
    """Return the items as groups, each at the place of its first item.

    Items with the same key are one group where there are more than ``above`` of them. Every other
    item is a group of its own.
    """
    alike: dict[Hashable, list[int]] = {}
    for place, item in enumerate(items):
        alike.setdefault(key(item), []).append(place)
    groups: list[list[int]] = []
    for places in alike.values():
        groups += [places] if len(places) > above else [[place] for place in places]
    return [tuple(items[place] for place in places) for places in sorted(groups)]


def in_short(names: Sequence[str]) -> str:
    """Return the first few names in the order of the alphabet, and how many more there are."""
    return listed(sorted(names), NAMED)
