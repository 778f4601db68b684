"""The availability of a database: probed in the background, for every thread that waits.

A database can fall silent without a word: its machine is paused, or a network swallows what is
sent. The threads that wait for it notice only that nothing comes, which a lock explains as well.
So after a quiet second one thread probes the database on a connection of its own. Without an answer
the database counts as away: what waits for it is given up, and what comes is refused at once, until
a later probe of the same thread is answered.
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


class Availability:
    """The last known state of a database: answering, or away. It is thread-safe.

    Attributes:
        outages: How often the database went away. A connection from before the last outage is
            not used any more: what was sent on it may never arrive.
    """

    def __init__(
        self, place: str, probe: Callable[[], None], on_outage: Callable[[], None]
    ) -> None:
        """Watch a database.

        ``probe`` connects to it, and raises ``StoreUnreachableError`` where there is no answer;
        it must have a time limit. ``on_outage`` is called each time the database goes away.
        """
        self.outages = 0
        self._place = place
        self._probe = probe
        self._on_outage = on_outage
        self._failure: StoreUnreachableError | None = None
        self._lock = Lock()
        self._is_probing = False
        self._next = 0.0  # before that moment it is not probed again
        self._ended = Event()

    def require(self) -> None:
        """Return if the database is not known to be away; otherwise have it probed again.

        Raises:
            StoreUnreachableError: it is away; nothing was sent to it.
        """
        failure = self._failure
        if failure is not None:
            self.request_probe()  # so that an outage ends also where the thread that probed did
            raise type(failure)(failure.problem, failure.remedy)

    def request_probe(self) -> None:
        """Have the database probed in the background, unless it was within the last second."""
        with self._lock:
            if self._is_probing or monotonic() < self._next or self._ended.is_set():
                return
            self._is_probing = True
        try:
            Thread(target=self._probe_until_answered, name="database-probe", daemon=True).start()
        except (RuntimeError, MemoryError):  # no thread: the time limits of statements remain
            self._is_probing = False

    def end(self) -> None:
        """Give up what waits for the database, for good."""
        self._ended.set()
        problem = f"{self._place} is not waited for any more: the server ends"
        self._mark_away(StoreUnreachableError(problem, "Ask again."))

    def _probe_until_answered(self) -> None:
        """Probe the database until it answers."""
        try:
            while not self._ended.is_set() and not self._answers():
                self._ended.wait(PAUSE_SECONDS)
        finally:
            self._next = monotonic() + PAUSE_SECONDS
            self._is_probing = False

    def _answers(self) -> bool:
        """Probe once, and keep what is found. Nothing is raised, so that probing goes on."""
        try:
            self._probe()
        except StoreUnreachableError as failure:
            if self._failure is None:
                LOG.warning("%s; it is asked again every second", failure.problem)
                self._mark_away(failure)
            return False
        except (OSError, MemoryError, RuntimeError) as failure:
            # This machine fails, which says nothing of the database.
            LOG.warning("%s cannot be probed: %r", self._place, failure)
            return self._failure is None
        except Exception:  # a defect of ours must not keep the database away
            LOG.exception("%s cannot be probed", self._place)
            return self._failure is None
        with self._lock:
            was_away = self._failure is not None and not self._ended.is_set()
            if was_away:
                self._failure = None
        if was_away:
            LOG.warning("%s answers again", self._place)
        return True

    def _mark_away(self, failure: StoreUnreachableError) -> None:
        with self._lock:
            self._failure = failure
            self.outages += 1
        try:
            self._on_outage()
        except Exception:  # the database is away all the same
            LOG.exception("the outage of %s was not handled", self._place)
