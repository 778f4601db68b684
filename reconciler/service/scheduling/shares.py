"""Shares of what callers have together, and how much of it there is while calls are carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.service.domain.refusal import Code, always

WAITING = 4096  # calls that are not answered yet
WAITING_OF_ONE = 1024  # those of one caller
READERS = 8  # threads that read at one time
UNREAD = 16 * 1024 * 1024  # bytes of answers that callers have not taken yet
UNCOUNTED = 8 * 1024  # bytes; the number of connections and of calls bounds shorter answers


too_many_calls = always(
    Code.RESOURCE_EXHAUSTED, "service.busy", "there are too many calls at once; ask again"
)


class Tally:
    """A number for each caller, and their sum. One event loop; no locks."""

    def __init__(self) -> None:
        self.total = 0
        self._of: Counter[bytes] = Counter()

    def of(self, caller: bytes) -> int:
        """Return the number of a caller."""
        return self._of[caller]

    def add(self, caller: bytes, number: int) -> None:
        """Add to the number of a caller. Where it becomes 0, nothing is kept of the caller."""
        self.total += number
        self._of[caller] += number
        if not self._of[caller]:
            del self._of[caller]


class Shares:
    """Calls at one time: a number for all callers, and a smaller one for each."""

    def __init__(self, total: int, share: int) -> None:
        self._total = total
        self._share = share
        self._calls = Tally()

    @contextmanager
    def place(self, caller: bytes) -> Iterator[None]:
        """Count a call of a caller for as long as the block runs.

        Raises:
            Refusal: there are too many calls already, of this caller or of all.
        """
        if self._calls.total >= self._total or self._calls.of(caller) >= self._share:
            raise too_many_calls()
        self._calls.add(caller, 1)
        try:
            yield
        finally:
            self._calls.add(caller, -1)
