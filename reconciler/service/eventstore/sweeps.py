"""How often a store looks through all that may have expired."""

from __future__ import annotations

EVERY = 60_000_000  # microseconds


class Sweeps:
    """The time of a store's last look, which need not be in every commit."""

    def __init__(self) -> None:
        self._last = 0

    def is_due(self, now: int) -> bool:
        """Return whether to look now. A clock that was set back makes it due."""
        # Not under a lock: two threads that look at once only do it twice.
        if 0 <= now - self._last < EVERY:
            return False
        self._last = now
        return True
