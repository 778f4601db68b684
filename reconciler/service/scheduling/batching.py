"""Batching of calls: every transport hands them over here, and threads carry them out.

Calls that come in while a batch is being committed make up the next one, so that a busy server
commits for many at a time.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from enum import IntEnum, auto
from functools import partial
from itertools import islice
from operator import itemgetter
from threading import Barrier
from weakref import WeakValueDictionary

from reconciler.resources.call import WRITE_BATCH
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.dispatch import (
    OUT_OF_RESOURCES,
    Dispatcher,
    Incoming,
    Received,
)
from reconciler.service.operations.request import bearer_token
from reconciler.service.operations.table import needs_token, writes
from reconciler.service.scheduling.reading import (
    BATCH,
    TURN_SECONDS,
    Job,
    Readers,
    Spent,
    gathered,
)
from reconciler.service.scheduling.shares import (
    WAITING,
    WAITING_OF_ONE,
    Shares,
)

LOG = logging.getLogger("reconciler.service")
THREADS = 16
HELD_UP_SECONDS = 0.05  # for one commit; longer ones are kept apart from those of others
APART_SECONDS = 1.0
SHARED_SIZE = 64 * 1024  # characters that a queue may write in a shared commit: some 10 ms
VALUE_SIZE = 16  # that a value counts beside its characters
READY_SECONDS = 3.0  # which the store has to show that it can be read
BUSY = Received(
    "", Refusal(Code.RESOURCE_EXHAUSTED, "the service is busy; ask again", "service.busy")
)
NO_CALL = Incoming("", {}, {})
ENDING = Refusal(Code.UNAVAILABLE, "the service is about to stop; ask again", "service.ending")
LEFT = Refusal(Code.UNAVAILABLE, "the caller closed its connection", "service.left")


class Turn(IntEnum):  # hashed in C; an Enum is hashed in Python
    """Locks of writers: one holder at a time, in the order in which they came."""

    CALLER = auto()  # batches of one caller, by its account
    BATCH = auto()  # batches of one queue
    WRITE = auto()  # commits of one queue
    SHARED = auto()  # commits of several queues, none of which keeps the others waiting
    OWN = auto()  # commits of one caller whose writes have no queue


Key = tuple[Turn, str]
SHARED: Key = (Turn.SHARED, "")


@dataclass(slots=True)
class WriteQueue:
    """Writes that wait for their turn, and whether batches of them are taken to a thread.

    They are the keys of a dictionary, so that one whose caller leaves is removed at once. Each has
    the name of its queue, which stays the same although callers are forgotten meanwhile.
    """

    waiting: dict[Job, str] = field(default_factory=dict)
    is_carried: bool = False


class Batcher:
    """Answers calls from any transport, on one event loop."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        queue_of: Callable[[Incoming], str],
        *,
        queues_share: bool = False,
    ) -> None:
        """Serve a dispatcher.

        ``queue_of`` says which writes wait for one another and share commits: those of one queue.
        Where it answers nothing, writes of one caller do. If ``queues_share``, all queues share
        commits, but for those that something keeps waiting. Reads of one caller share views of the
        store: a thread for each would fight over the interpreter.
        """
        dispatcher.load()
        self._reception = dispatcher
        self._queue_of = queue_of
        self._queues_share = queues_share
        self._apart: dict[str, float] = {}  # queues that were held up, and until when
        self._queues: dict[Key, WriteQueue] = {}
        self._readers = Readers(partial(self._carry_out, seconds=TURN_SECONDS))
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting = Shares(WAITING, WAITING_OF_ONE)
        self._threads = _started(THREADS)
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._is_ending = False
        self._is_ready = StoreCheck(dispatcher.is_ready, READY_SECONDS)

    async def answer(self, call: Incoming) -> Received:
        """Carry out a call. Nothing is raised: a refusal is an answer."""
        try:
            if isinstance(call.fields, Refusal) and needs_token(call.operation):
                bearer_token(call.headers)  # without one, a call takes no turn to be refused
            with self._waiting.place(call.caller):
                if call.operation == WRITE_BATCH:
                    return await self._carry_out_orders(call)
                job = Job(call, asyncio.get_running_loop().create_future())
                if writes(call.operation) and not isinstance(call.fields, Refusal):
                    return await self._written(job)
                return await self._read_in_turn(job)
        except Refusal as refusal:
            return Received("", refusal)
        except (MemoryError, RuntimeError) as failure:
            is_defect = not isinstance(failure, MemoryError)
            LOG.warning("a call could not be carried out: %r", failure, exc_info=is_defect)
            return Received("", OUT_OF_RESOURCES)

    def end_waiting(self) -> None:
        """End what would wait for long, as the server stops: batches, and reads of slow callers.

        A batch ends after the commit it is at.
        """
        self._is_ending = True
        self._readers.end(Received("", ENDING))

    async def is_ready(self) -> bool:
        """Return whether the store can be read, and takes writes."""
        return await self._is_ready.answer() is True

    async def close(self) -> None:
        """Wait for what is under way, and end the threads."""
        self._is_ready.close()
        await asyncio.gather(*self._tasks)
        await self._readers.close()
        # Off the event loop, which must stay free to receive a second signal.
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)

    async def _read_in_turn(self, job: Job) -> Received:
        try:
            return await job.done if self._readers.add(job) else BUSY
        finally:
            job.call = NO_CALL  # of a caller that left, only its place in the line is kept

    async def _written(self, job: Job) -> Received:
        """Let a write take its turn in its queue."""
        name = self._queue_of(job.call)
        if not name:
            key = Turn.OWN, job.call.caller.hex()
        elif self._queues_share and not self._is_apart(name):
            key = SHARED
        else:
            key = Turn.WRITE, name
        self._enqueue(job, name, key)
        try:
            return await job.done
        finally:
            # Its caller may have left before its turn, in any of the queues that it can be in.
            for each in (key, SHARED, (Turn.WRITE, name)):
                if queue := self._queues.get(each):
                    queue.waiting.pop(job, None)

    def _is_apart(self, name: str) -> bool:
        """Return whether writes of a queue go on alone."""
        return (Turn.WRITE, name) in self._queues or self._is_held_up(name)

    def _is_held_up(self, name: str) -> bool:
        """Return whether writes of a queue wait for something that others need not wait for."""
        batches = self._turns.get((Turn.BATCH, name))
        return (batches is not None and batches.locked()) or (
            self._apart.get(name, 0.0) > time.monotonic()
        )

    async def _commit(self, key: Key, batch: Mapping[Job, str]) -> None:
        """Carry out writes in one commit; each queue alone, if one kept a shared commit waiting."""
        spent = await self._carry_out(list(batch), key)
        for job, name in islice(batch.items(), spent.answered, None):
            if not job.done.done():
                self._enqueue(job, name, (Turn.WRITE, name))
        if key[0] is Turn.WRITE and spent.clock > HELD_UP_SECONDS:
            now = time.monotonic()
            self._apart = {name: until for name, until in self._apart.items() if until > now}
            self._apart[key[1]] = now + APART_SECONDS

    def _set_apart(self, batch: dict[Job, str]) -> None:
        """Take queues out of a shared commit that are apart by now, or would make it long."""
        sizes: Counter[str] = Counter()
        for job, name in batch.items():
            sizes[name] += size_of(job.call.fields)
        apart = {name for name, size in sizes.items() if size > SHARED_SIZE or self._is_apart(name)}
        for job in [job for job, name in batch.items() if name in apart]:
            name = batch.pop(job)
            self._enqueue(job, name, (Turn.WRITE, name))

    def _share_again(self, name: str, waiting: dict[Job, str]) -> None:
        """Let writes of a queue share commits again, unless something keeps them waiting.

        They need not all be done before: where there is much to do, more always come.
        """
        if not self._is_held_up(name):
            for job in waiting:
                self._enqueue(job, name, SHARED)
            waiting.clear()

    def _enqueue(self, job: Job, name: str, key: Key) -> None:
        """Add a write to a queue, which goes on even if the caller leaves."""
        queue = self._queues.setdefault(key, WriteQueue())
        queue.waiting[job] = name
        if not queue.is_carried:
            task = asyncio.get_running_loop().create_task(self._drain(key, queue))
            queue.is_carried = True
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _drain(self, key: Key, queue: WriteQueue) -> None:
        waiting = queue.waiting
        try:
            while waiting:
                await gathered(waiting)
                async with self._turn(*key):
                    # Taken only now: what came while the last commit was made shares the next one.
                    batch = {job: waiting.pop(job) for job in in_turns(waiting, BATCH)}
                    if key == SHARED:
                        self._set_apart(batch)
                    if batch:
                        await self._commit(key, batch)
                    if key[0] is Turn.WRITE and self._queues_share:
                        self._share_again(key[1], waiting)
        finally:
            # After an error, writes that are left start another task with the next one that comes.
            queue.is_carried = False
            if not waiting:
                del self._queues[key]

    async def _carry_out_orders(self, call: Incoming) -> Received:
        """Carry out a batch of orders in as many commits as it takes, taking turns with others.

        Batches of one caller are carried out one after the other, so that the first is answered
        while the next is carried out. Of several callers' batches in a queue only one at a time
        waits for its turn there, so that other writes wait for one commit of one batch at most.
        How many there are at a time is bounded by their bytes.
        """
        loop = asyncio.get_running_loop()
        orders = await loop.run_in_executor(self._threads, self._reception.take_batch, call)
        if isinstance(orders, Received):
            return orders
        queue = self._queue_of(call) or orders.organization
        async with self._turn(Turn.CALLER, orders.caller.account):
            while not orders.are_done:
                async with self._turn(Turn.BATCH, queue), self._turn(Turn.WRITE, queue):
                    if self._is_ending:
                        orders.end(ENDING)
                    elif call.has_left():  # it sends the batch again, if it needs it
                        orders.end(LEFT)
                    else:
                        await loop.run_in_executor(self._threads, self._reception.carry_out, orders)
        return await loop.run_in_executor(self._threads, self._reception.answer_of, call, orders)

    def _turn(self, kind: Turn, name: str) -> AbstractAsyncContextManager[object]:
        """Return the lock of a kind of turn and a name; none where the name is empty.

        The kind is part of the key: a caller chooses some of the names, and must not be able to
        choose one whose lock it holds already.
        """
        return self._turns.setdefault((kind, name), asyncio.Lock()) if name else nullcontext()

    async def _carry_out(
        self, batch: Sequence[Job], key: Key | None = None, seconds: float = math.inf
    ) -> Spent:
        """Answer calls that share a commit or a view, from the first on, for so many seconds."""
        loop = asyncio.get_running_loop()
        answers = [Received("", OUT_OF_RESOURCES)] * len(batch)
        spent = Spent(len(batch), 0, 0)
        try:
            calls = [job.call for job in batch]
            receive = partial(self._receive, calls, seconds, is_shared=key == SHARED)
            answers, spent = await loop.run_in_executor(self._threads, receive)
        except (MemoryError, RuntimeError) as failure:
            LOG.warning("calls could not be handed over: %r", failure)
        finally:  # without this, a failure would leave callers waiting for ever
            for job, answer in zip(batch, answers, strict=False):
                if not job.done.done():
                    job.done.set_result(answer)
        return spent

    def _receive(
        self, calls: Sequence[Incoming], seconds: float, *, is_shared: bool
    ) -> tuple[list[Received], Spent]:
        """Answer calls, and see what that takes."""
        processor, clock = time.thread_time(), time.perf_counter()
        answers = self._reception.receive(calls, seconds, is_shared=is_shared)
        processor, clock = time.thread_time() - processor, time.perf_counter() - clock
        return answers, Spent(len(answers), processor, clock)


def in_turns(waiting: Mapping[Job, str], most: int) -> list[Job]:
    """Return the first jobs, so many at most; where there are more, each queue has its turn.

    One queue with very many writes delays those of the others by none of its own.
    """
    if len(waiting) <= most:
        return list(waiting)
    before: Counter[str] = Counter()
    turns: list[tuple[int, Job]] = []
    for job, name in waiting.items():
        turns.append((before[name], job))
        before[name] += 1
    turns.sort(key=itemgetter(0))
    return [job for _, job in turns[:most]]


def size_of(fields: object) -> int:
    """Return about how much there is in the fields of a call; past ``SHARED_SIZE``, only that."""
    size, left = 0, [fields]
    while left and size <= SHARED_SIZE:
        value = left.pop()
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, (dict, list)):
            size += VALUE_SIZE * len(value)
            left.extend(value.values() if isinstance(value, dict) else value)
    return size


def _started(count: int) -> ThreadPoolExecutor:
    """Return threads that have all begun: there may be no memory for one later."""
    threads = ThreadPoolExecutor(count, "operations")
    together = Barrier(count)
    for begun in [threads.submit(together.wait) for _ in range(count)]:
        begun.result()
    return threads


class StoreCheck:
    """A check of the store that runs once at a time: callers that come meanwhile share its result.

    It has a thread of its own, so that pages are answered while calls keep all others busy.
    """

    def __init__(self, ask: Callable[[], bool | None], seconds: float) -> None:
        """Take what asks the store, on a thread; None means that the store gives no answer.

        ``seconds`` is the longest wait for an answer.
        """
        self._ask = ask
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1, "question")
        self._asked: asyncio.Future[bool | None] | None = None

    async def answer(self) -> bool | None:
        """Return the answer, or None if it does not come in time. Nothing is raised."""
        try:
            if self._asked is None or self._asked.done():
                loop = asyncio.get_running_loop()
                self._asked = loop.run_in_executor(self._thread, self._ask)
            return await asyncio.wait_for(asyncio.shield(self._asked), self._seconds)
        except TimeoutError:
            return None
        except Exception:  # a page is answered all the same
            LOG.exception("a question to the store failed")
            return None

    def close(self) -> None:
        """Ask nothing more; a question that is under way is not waited for."""
        self._thread.shutdown(wait=False)
