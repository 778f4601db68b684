"""The clock that leases end by: it never goes back, and does not jump when the wall clock is set.

It begins with the time of the wall clock, and then runs with a steady clock, which cannot be set. A
wall clock that is set back would make a lease last that much longer; set forward, it would end all
leases at once.

Several servers, and processes that follow one another, share leases and have a clock each. None
may be behind the time of a lease that it meets: it is moved forward to that, and goes on from
there. Times of events do not count, for they are those of the wall. The lease of a holder that died
thus ends on every server when its time has passed there, whatever the wall says; after a restart
with a wall that was set back, at the latest an hour later, which is the longest lease. Where clocks
differ, a lease may end early, for one whose clock is ahead: fencing refuses the holder's writes
then, so nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class LeaseClock:
    """Microseconds since the epoch, as far as the wall was right when the process began."""

    def __init__(self, wall: Callable[[], int], steady: Callable[[], int]) -> None:
        """Take the time, and a clock that is never set; both in microseconds."""
        self._steady = steady
        self._ahead = wall() - steady()
        self._lock = Lock()

    def __call__(self) -> int:
        """Return the time."""
        return self._steady() + self._ahead

    def after(self, met: int) -> int:
        """Return the time, moved forward to one that was met if that is later."""
        with self._lock:
            self._ahead = max(self._ahead, met - self._steady())
        return self()
