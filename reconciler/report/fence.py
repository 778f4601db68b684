"""Markdown fences around what others wrote: longer than any run of back-ticks in it, and cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

OVERHEAD = 220
"""What a section takes beside what it shows: title, fold, fence, and what is left out."""

_TICKS = re.compile("`+")


class Room:
    """The number of characters that are left."""

    def __init__(self, left: int) -> None:
        self.left = left

    @contextmanager
    def part(self, share: float) -> Iterator[Room]:
        """Lend a share of the room; what is left of it afterwards comes back."""
        part = Room(int(self.left * share))
        self.left -= part.left
        yield part
        self.left += part.left


def fenced(
    items: Sequence[Item], show: Callable[[Item], Sequence[str]], info: str, room: Room
) -> tuple[list[str], int]:
    """Return a fence around the items that fit, and the number of those that do not."""
    lines: list[str] = []
    longest, size, fitting = 2, OVERHEAD, 0
    for item in items:
        block = show(item)
        runs = (len(run) for line in block for run in _TICKS.findall(line))
        longest_now = max(longest, *runs, 0)
        size_now = size + sum(len(line) + 1 for line in block)
        if size_now + 2 * longest_now > room.left:
            break
        lines += block
        longest, size, fitting = longest_now, size_now, fitting + 1
    if not lines:
        return [], len(items)
    room.left -= size + 2 * longest
    ticks = "`" * (longest + 1)
    return ["\n".join([ticks + info, *lines, ticks])], len(items) - fitting
