"""Fair reading: callers take turns with the threads that read.

Every caller has a queue of its own. A worker (task) takes the next queue in the round and
answers some of its calls, for a short time; what is left waits for the next round. Callers whose
calls take long share a few workers, so that some are always there for the others.

Calls that cannot be read are in a second queue of their caller, and one worker refuses them. By
such a call the token of another one is judged, before more of its connection is read. Over HTTP/2
the frames by which the caller takes its answers may come later on that same connection: if the
verdict had to wait for them, neither would ever come.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence, Sized
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.scheduling.shares import (
    READERS,
    UNCOUNTED,
    UNREAD,
    WAITING_OF_ONE,
    Tally,
)

BATCH = 256
READERS_OF_ONE = 4  # for one caller
READERS_OF_SLOW = 2
GATHER_SECONDS = 0.002  # for several calls of one caller to become more
TURN_SECONDS = 0.025  # a call that has begun is finished
SLOW_SECONDS = 0.1  # of the processor; more than a page of 1,000 objects takes
SLOW_WAIT_SECONDS = 0.5  # of the clock, while others were answered; a database works elsewhere
SLOW_FOR_SECONDS = 10.0
PATIENCE_SECONDS = 1.0  # that others wait for answers which a caller does not take
SEVERAL = 4  # calls of one batch, whose caller is about to have more
MOST_BUSY = 64  # callers that are remembered for it
UNREADABLE = b"unreadable"  # follows the key of a caller, in the name of its second queue


@dataclass(eq=False, slots=True)
class Job:
    """A call that waits for its answer."""

    call: Incoming
    done: asyncio.Future[Received]


@dataclass(slots=True)
class CallerQueue:
    """Calls of one caller that wait, and how many workers answer some of them."""

    is_unreadable: bool = False
    waiting: deque[Job] = field(default_factory=deque)
    workers: int = 0
    is_gathered: bool = False  # a worker is about to take all that wait: no other is needed


class Spent(NamedTuple):
    """The time that one turn of a caller took."""

    answered: int  # calls, from the first on
    processor: float  # seconds of the processor, of the thread that answered
    clock: float  # seconds from begin to end


@dataclass(eq=False, slots=True)
class Turn:
    """A turn that is under way, and the longest time in it without a quick answer to others.

    A database that stalls, or is slow for all, is no fault of a caller: then the others have no
    quick answers either. So only the rest of a turn counts against its caller. For example, a turn
    of 2.1 s with a stall of 2 s counts as 0.1 s; a turn of 2.1 s in which others were answered
    every 0.1 s counts as 2 s.
    """

    name: bytes
    since: float  # when another caller was last answered quickly, or when the turn began
    longest_gap: float = 0.0

    def end_gap(self, now: float) -> None:
        """Note a quick answer to another caller, or the end of the turn."""
        self.longest_gap = max(self.longest_gap, now - self.since)
        self.since = now

    def is_slow(self, spent: Spent) -> bool:
        """Return whether the caller of a turn that has ended keeps others waiting."""
        # All calls before the last fit in the time of a turn: what is more is the last call's.
        is_heavy = spent.processor > TURN_SECONDS + SLOW_SECONDS
        return is_heavy or spent.clock - self.longest_gap > SLOW_WAIT_SECONDS


CarryOut = Callable[[Sequence[Job]], Awaitable[Spent]]


class Readers:
    """Hands reads to threads, on one event loop."""

    def __init__(
        self,
        carry_out: CarryOut,
        now: Callable[[], float] = time.monotonic,
        pause: float = GATHER_SECONDS,
    ) -> None:
        """Have reads carried out by ``carry_out``, which answers some from the first on.

        ``pause`` is how long several calls of one caller wait for more; see ``gathered``.
        """
        self._carry_out = carry_out
        self._now = now
        self._pause = pause
        self._queues: dict[bytes, CallerQueue] = {}  # in the order of their turns
        self._slow: dict[bytes, float] = {}  # until when
        self._busy: dict[bytes, int] = {}  # calls of the last batch, if several, the oldest first
        self._slow_workers = 0
        self._workers: set[asyncio.Task[None]] = set()
        self._turns: set[Turn] = set()
        self._ending: Received | None = None
        self._unread = Unread(self._start, now=now)
        self._is_pressing = False  # for room among the answers that are not taken

    def add(self, job: Job) -> bool:
        """Let a call take its turn, and return whether its caller may have one more wait.

        A caller is known by its token alone: whether the token is valid is only known once the
        call is answered.
        """
        name = job.call.caller
        is_unreadable = isinstance(job.call.fields, Refusal)
        if is_unreadable:
            name += UNREADABLE
        queue = self._queues.setdefault(name, CallerQueue(is_unreadable))
        if len(queue.waiting) >= WAITING_OF_ONE:
            return False
        queue.waiting.append(job)
        self._start()
        return True

    def end(self, answer: Received) -> None:
        """Answer this to calls that wait behind long ones, from now on: the server stops.

        The time it has left is for callers whose calls do not take long.
        """
        self._ending = answer
        for name, queue in self._queues.items():
            if self._is_slow(name):
                _refuse(queue.waiting, answer)

    async def close(self) -> None:
        """Wait until nothing is left."""
        while self._workers:
            await asyncio.gather(*self._workers, return_exceptions=True)

    def _start(self) -> None:
        """Start a worker if there is something for one more to do."""
        if len(self._workers) < READERS and self._next() is not None:
            task = asyncio.get_running_loop().create_task(self._work())
            self._workers.add(task)
            task.add_done_callback(self._ended)
        elif self._unread.is_full and not self._is_pressing and self._others_wait():
            self._is_pressing = True
            asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._press)

    def _others_wait(self) -> bool:
        """Return whether a caller waits that has taken all its answers."""
        return any(
            queue.waiting and not queue.is_unreadable and not self._unread.holds(name)
            for name, queue in self._queues.items()
        )

    def _press(self) -> None:
        self._is_pressing = False
        if self._others_wait():
            self._unread.make_room()
        self._start()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._workers.discard(task)
        if not task.cancelled():
            task.exception()  # its callers got it; read, or asyncio logs it as never retrieved
            self._start()

    def _next(self) -> bytes | None:
        """Return the caller whose turn it is, or None if no caller may have a worker."""
        # The dictionary is in the order of turns: ``_work`` moves a caller to its end.
        for name, queue in self._queues.items():
            if queue.waiting and not queue.is_gathered and self._has_room(name, queue):
                return name
        return None

    def _has_room(self, name: bytes, queue: CallerQueue) -> bool:
        if queue.is_unreadable:
            return not queue.workers
        if not self._unread.has_room(name):
            return False
        if self._is_slow(name):
            return self._slow_workers < READERS_OF_SLOW
        return queue.workers < READERS_OF_ONE

    def _is_slow(self, name: bytes) -> bool:
        return self._slow.get(name, 0.0) > self._now()

    def _is_slow_turn(self, turn: Turn, spent: Spent) -> bool:
        """Judge a turn that has ended, and let the others know of a quick one."""
        now = self._now()
        turn.end_gap(now)
        if spent.clock <= TURN_SECONDS + SLOW_WAIT_SECONDS:  # no call of it took long
            for other in self._turns:
                if other.name != turn.name:
                    other.end_gap(now)
        return turn.is_slow(spent)

    def _mark_slow(self, name: bytes) -> None:
        """Mark a caller for a while, and drop the marks of others that are over."""
        now = self._now()
        self._slow = {each: until for each, until in self._slow.items() if until > now}
        self._slow[name] = now + SLOW_FOR_SECONDS

    def _mark_busy(self, name: bytes, calls: int) -> None:
        """Remember how many calls of a caller are likely to come soon."""
        self._busy.pop(name, None)
        if calls >= SEVERAL:
            if len(self._busy) >= MOST_BUSY:
                del self._busy[next(iter(self._busy))]
            self._busy[name] = calls

    async def _work(self) -> None:
        while (name := self._next()) is not None:
            queue = self._queues[name] = self._queues.pop(name)  # to the end of the round
            was_slow = self._is_slow(name)
            queue.workers += 1
            self._slow_workers += was_slow
            try:
                await self._turn(name, queue)
            finally:
                queue.workers -= 1
                self._slow_workers -= was_slow
                if not queue.workers and not queue.waiting:
                    del self._queues[name]

    async def _turn(self, name: bytes, queue: CallerQueue) -> None:
        waiting = queue.waiting
        queue.is_gathered = True
        try:
            await gathered(waiting, self._pause, self._busy.get(name, 0))
        finally:
            queue.is_gathered = False
        batch: list[Job] = []
        while waiting and len(batch) < BATCH:
            job = waiting.popleft()
            if not job.done.done():  # a caller that went away has ended it
                batch.append(job)
        self._mark_busy(name, len(batch))
        if not batch:  # another worker took them
            return
        turn = Turn(name, self._now())
        self._turns.add(turn)
        try:
            spent = await self._carry_out(batch)
        finally:
            self._turns.discard(turn)
        # Calls that the time of the turn did not reach keep their places at the front.
        waiting.extendleft(reversed(batch[spent.answered :]))
        self._count_answers(name, batch[: spent.answered])
        if self._is_slow_turn(turn, spent):
            self._mark_slow(name)
            if self._ending is not None:
                _refuse(waiting, self._ending)

    def _count_answers(self, name: bytes, batch: Sequence[Job]) -> None:
        """Count answers that are on their way, but for those of callers that went away."""
        for job in batch:
            delivery = job.call.delivery
            if delivery is not None and not job.done.cancelled():
                size = len(job.done.result().body)
                self._unread.count(name, size, delivery, job.call.drop)


def _refuse(waiting: deque[Job], answer: Received) -> None:
    while waiting:
        job = waiting.popleft()
        if not job.done.done():
            job.done.set_result(answer)


async def gathered(waiting: Sized, pause: float = 0.0, expected: int = 0) -> None:
    """Wait while every turn of the loop brings more, but for no more than are ``expected``.

    They would have to be taken in anyway, and a thread at work would fight over the interpreter
    with the loop that does so. A call that comes alone waits for one turn. Calls over gRPC
    come one in a turn, and not in every one: where there are several, ``pause`` seconds are
    waited for more, which costs less than a look at the store for each. So it is for the first
    call of a caller that has just had several answered, so many of which are ``expected`` again:
    once they are there, nothing is waited for.
    """
    known = 0
    while known < len(waiting) < (expected or BATCH):
        known = len(waiting)
        await asyncio.sleep(pause if known > 1 or expected else 0)


class _Answer(NamedTuple):
    """An answer that is not taken yet: when it was made, and what ends its delivery."""

    since: float
    drop: Callable[[], None]


class Unread:
    """Answers to reads that their callers have not taken yet: bytes of all callers, and of each.

    An answer counts from the moment it is made until the network has taken it. Reads of a caller
    are carried out only while it has fewer bytes than are left for all, so that some are always
    left. Otherwise its calls wait until it takes its answers, or until its connections are ended
    because it does not.
    """

    def __init__(
        self,
        on_taken: Callable[[], None],
        total: int = UNREAD,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Let all answers together have ``total`` bytes; call ``on_taken`` after each delivery."""
        self._on_taken = on_taken
        self._most = total
        self._now = now
        self._held = Tally()
        self._answers: dict[bytes, dict[object, _Answer]] = {}  # of each caller, the oldest first

    @property
    def is_full(self) -> bool:
        """Return whether no caller may have an answer made, not even one that has taken all."""
        return self._held.total >= self._most

    def has_room(self, caller: bytes) -> bool:
        """Return whether one more answer of a caller may be made."""
        return self._held.of(caller) < self._most - self._held.total

    def holds(self, caller: bytes) -> bool:
        """Return whether a caller leaves answers unread."""
        return caller in self._answers

    def count(
        self, caller: bytes, size: int, delivery: ExitStack, drop: Callable[[], None]
    ) -> None:
        """Count an answer of so many bytes until its delivery has ended; ``drop`` ends that."""
        if size > UNCOUNTED:
            name = object()
            self._held.add(caller, size)
            self._answers.setdefault(caller, {})[name] = _Answer(self._now(), drop)
            delivery.callback(partial(self._taken, caller, size, name))

    def make_room(self) -> None:
        """Drop what the caller with most has left unread for longer than others can wait.

        Answers count once they are made. So several long ones at once may go beyond the bound, and
        a caller that does not take them would keep all others waiting.
        """
        if self.is_full:
            most = max(self._answers, key=self._held.of)
            late = self._now() - PATIENCE_SECONDS
            for answer in [*self._answers[most].values()]:
                if answer.since <= late:
                    answer.drop()

    def _taken(self, caller: bytes, size: int, name: object) -> None:
        self._held.add(caller, -size)
        answers = self._answers[caller]
        del answers[name]
        if not answers:
            del self._answers[caller]
        self._on_taken()
