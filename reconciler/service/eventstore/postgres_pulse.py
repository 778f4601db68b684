"""Whether a database answers at all: found out in the background, for every thread that waits.

A database can fall silent without a word: its machine is paused, or a network swallows what is
sent. The threads that wait for it notice only that nothing comes, which a lock explains as well.
So one thread asks on a connection of its own, once there is doubt. Without an answer the database
counts as away: what waits for it is given up, and what comes is refused at once, until the same
thread gets an answer again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Lock, Thread
from time import monotonic

from reconciler.service.eventstore.errors import StoreUnreachableError

LOG = logging.getLogger("reconciler.store")
LOG.addHandler(logging.NullHandler())  # a command tells the failure itself
PAUSE_SECONDS = 1.0


class Pulse:
    """What is known of a database. Any thread may use it.

    Attributes:
        losses: How often the database went away. A connection from before the last loss is
            not used any more: what was sent on it may never arrive.
    """

    def __init__(self, place: str, ask: Callable[[], None], lost: Callable[[], None]) -> None:
        """Watch a database.

        ``ask`` connects to it, and raises ``StoreUnreachableError`` where there is no answer;
        it must have a time limit. ``lost`` is called each time the database goes away.
        """
        self.losses = 0
        self._place = place
        self._ask = ask
        self._lost = lost
        self._failure: StoreUnreachableError | None = None
        self._lock = Lock()
        self._is_asking = False
        self._next = 0.0  # before that moment it is not asked again
        self._ended = Event()

    def check(self) -> None:
        """Return if the database is not known to be away.

        Raises:
            StoreUnreachableError: it is; no attempt was made.
        """
        failure = self._failure
        if failure is not None:
            raise type(failure)(failure.problem, failure.remedy)

    def doubt(self) -> None:
        """Have the database asked, unless it was just now."""
        with self._lock:
            if self._is_asking or monotonic() < self._next or self._ended.is_set():
                return
            self._is_asking = True
        try:
            Thread(target=self._watch, name="database-pulse", daemon=True).start()
        except RuntimeError:  # no memory for a thread: the time limits of statements remain
            self._is_asking = False

    def end(self) -> None:
        """Give up what waits for the database, for good."""
        self._ended.set()
        self._lose(StoreUnreachableError(f"{self._place} is not waited for any more", "Ask again."))

    def _watch(self) -> None:
        """Ask until the database answers."""
        try:
            while not self._ended.is_set() and not self._answers():
                self._ended.wait(PAUSE_SECONDS)
        finally:
            self._next = monotonic() + PAUSE_SECONDS
            self._is_asking = False

    def _answers(self) -> bool:
        try:
            self._ask()
        except StoreUnreachableError as failure:
            if self._failure is None:
                LOG.warning("%s; it is asked again every second", failure.problem)
                self._lose(failure)
            return False
        with self._lock:
            was_away = self._failure is not None and not self._ended.is_set()
            if was_away:
                self._failure = None
        if was_away:
            LOG.warning("%s answers again", self._place)
        return True

    def _lose(self, failure: StoreUnreachableError) -> None:
        with self._lock:
            self._failure = failure
            self.losses += 1
        self._lost()
