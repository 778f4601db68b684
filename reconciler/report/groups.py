"""Grouping of items that are described in the same words, so that a long report stays short.

Pure, and linear in the number of items. Which items are equal is for the caller to say.
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
    keys = [key(item) for item in items]
    members: dict[Hashable, list[Item]] = {}
    for each, item in zip(keys, items, strict=True):
        members.setdefault(each, []).append(item)
    groups: list[tuple[Item, ...]] = []
    for each, item in zip(keys, items, strict=True):
        equal = members.get(each)
        if equal is None:  # stands with its group already
            continue
        if len(equal) > above:
            groups.append(tuple(members.pop(each)))
        else:
            groups.append((item,))
    return groups


def in_short(names: Sequence[str]) -> str:
    """Return the first few names in the order of the alphabet, and how many more there are."""
    return listed(sorted(names), NAMED)
