"""Ids: decimal numbers below 2**63, growing with time, made by the service alone."""

from __future__ import annotations

from collections.abc import Callable

EPOCH = 1_556_496_000_000  # 2019-04-29 in milliseconds, as the service we are compatible with
RANDOM_BITS = 22


class Identifiers:
    """Makes ids, each greater than the one before it.

    Two processes may, once in ages, make the same one. The store then refuses the second, whose
    maker asks again.
    """

    def __init__(self, now: Callable[[], int], random_bits: Callable[[int], int]) -> None:
        """Take the clock, in microseconds since the epoch, and a source of random bits."""
        self._now = now
        self._random_bits = random_bits
        self._last = 0

    def next(self) -> str:
        """Return a new id."""
        milliseconds = max(self._now() // 1000 - EPOCH, 0)
        made = (milliseconds << RANDOM_BITS) | self._random_bits(RANDOM_BITS)
        self._last = made if made > self._last else self._last + 1
        return str(self._last)
