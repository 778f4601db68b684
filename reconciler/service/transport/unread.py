"""Answers to reads that their callers have not taken yet: bytes of all callers, and of each.

An answer counts from the moment it is made until the network has taken it. Reads of a caller are
carried out only while it has fewer bytes than are left for all, so that some are always left.
Otherwise its calls wait until it takes its answers, or until its connections are ended because
it does not.

One event loop; no locks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from reconciler.service.transport.limits import KIB, MIB

UNREAD = 16 * MIB  # all answers together
UNCOUNTED = 8 * KIB  # the number of connections and of calls bounds shorter answers


class Unread:
    """Counts answers."""

    def __init__(self, on_taken: Callable[[], None], total: int = UNREAD) -> None:
        """Let all answers together have ``total`` bytes; call ``on_taken`` after each delivery."""
        self._on_taken = on_taken
        self._left = total
        self._held: Counter[bytes] = Counter()

    def has_room(self, caller: bytes) -> bool:
        """Return whether one more answer of a caller may be made."""
        return self._held[caller] < self._left

    def count(self, caller: bytes, size: int, delivery: ExitStack) -> None:
        """Count an answer of so many bytes until its delivery has ended."""
        if size > UNCOUNTED:
            self._left -= size
            self._held[caller] += size
            delivery.callback(partial(self._taken, caller, size))

    def _taken(self, caller: bytes, size: int) -> None:
        self._left += size
        self._held[caller] -= size
        if not self._held[caller]:
            del self._held[caller]
        self._on_taken()
