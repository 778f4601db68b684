"""The items that two lists have in common, in their order."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

from reconciler.manifests.text import YamlValue


def paired(old: Sequence[YamlValue], new: Sequence[YamlValue]) -> list[tuple[int, int]]:
    """Return the positions of items that stay, in both lists, in rising order.

    Where no item repeats, they are the most that can stay. Of items that repeat, the n-th of one
    list is paired with the n-th of the other between the ends that are alike, so that the time
    grows as ``n log n``: lists come from a service, and may be long and hostile.
    """
    before, after = [*map(repr, old)], [*map(repr, new)]  # True is not 1
    start = _alike(before, after)
    rest = min(len(before), len(after)) - start
    ends = min(_alike(before[::-1], after[::-1]), rest)
    middle = _longest_rise(
        list(_same_turn(before[start : len(before) - ends], after[start : len(after) - ends]))
    )
    return [
        *((index, index) for index in range(start)),
        *((start + first, start + second) for first, second in middle),
        *((len(old) - index, len(new) - index) for index in range(ends, 0, -1)),
    ]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many items at the start of two lists are the same."""
    pairs = zip(one, other, strict=False)
    shorter = min(len(one), len(other))
    return next((index for index, (a, b) in enumerate(pairs) if a != b), shorter)


def _same_turn(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the positions of the n-th of each item in both lists, in the order of the first."""
    places: dict[str, list[int]] = defaultdict(list)
    for index in range(len(new) - 1, -1, -1):
        places[new[index]].append(index)
    for index, item in enumerate(old):
        if places[item]:
            yield index, places[item].pop()


def _longest_rise(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the most pairs whose second positions rise as the first ones do.

    For each length, the lowest position that a row of it ends with is kept, and for each pair the
    one before it: (5, 2, 3) has rows that end at 2 and at 3, of which the longest is 2, 3.
    """
    lowest: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for index, (_, position) in enumerate(pairs):
        length = bisect_left(lowest, position)
        lowest[length : length + 1] = [position]
        ends[length : length + 1] = [index]
        before.append(ends[length - 1] if length else -1)
    found = []
    index = ends[-1] if ends else -1
    while index >= 0:
        found.append(pairs[index])
        index = before[index]
    return found[::-1]
