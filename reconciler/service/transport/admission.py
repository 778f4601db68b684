"""Admission of requests: judged by their headers, and given room, before bodies are taken in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from reconciler.service.domain.refusal import Code, Refusal, always
from reconciler.service.operations.dispatch import Incoming
from reconciler.service.operations.request import Headers, caller_key
from reconciler.service.scheduling.shares import Tally
from reconciler.service.transport.observer import Answer

# A token that is revoked meanwhile can have a message read, but no call carried out.
FRESH_SECONDS = 2.0
MOST_KNOWN = 1024  # tokens; where there are more, the oldest verdict is forgotten
no_room = always(
    Code.RESOURCE_EXHAUSTED,
    "service.busy",
    "the service is busy with other large requests; ask again",
)
_ADMITTED = Refusal(Code.INTERNAL, "no request was read", "request.unread")


class Admission:
    """Judges callers by their tokens, before anything large of theirs is taken in.

    The service answers a caller why its request cannot be read, and others that they are no
    callers. So a call whose request "cannot be read" asks just that, and many share one look.
    """

    def __init__(self, answer: Answer, now: Callable[[], float] = time.monotonic) -> None:
        """Judge tokens by ``answer``, which says what is wrong with a call only to its caller."""
        self._answer = answer
        self._now = now
        self._valid_until: dict[bytes, float] = {}  # by hash, the oldest verdict first

    async def caller(self, headers: Headers) -> bytes:
        """Return the key of a caller that may send a large message: the hash of its token.

        A token that was valid within the last ``FRESH_SECONDS`` needs no look at the store. The
        call itself is judged later all the same.

        Raises:
            Refusal: the token is not valid, or the store cannot be asked.
        """
        key = caller_key(headers)
        if self._valid_until.get(key, 0.0) <= self._now():
            received = await self._answer(Incoming("", _ADMITTED, headers))
            why = received.answer
            if isinstance(why, Refusal) and why is not _ADMITTED:
                # A copy: one that several calls share would gather a traceback of each.
                raise Refusal(why.code, why.message, why.reason, **why.details)
            self._remember(key)
        return key

    def _remember(self, key: bytes) -> None:
        self._valid_until.pop(key, None)
        if len(self._valid_until) >= MOST_KNOWN:
            del self._valid_until[next(iter(self._valid_until))]
        self._valid_until[key] = self._now() + FRESH_SECONDS


@dataclass(eq=False, slots=True)
class _Waiting:
    caller: bytes
    size: int
    granted: asyncio.Future[None]
    timeout: asyncio.Timeout


class Budget:
    """Bytes of large requests that a server holds at one time: a sum for all, a share for each.

    A request takes its place before its body is read, and gives it back once it is answered. While
    there is no room the caller is not read from, so that the network holds it back. Small requests
    take no place: the number of connections bounds them. One event loop; no locks.
    """

    def __init__(self, total: int, share: int, wait_seconds: float) -> None:
        """Allow ``total`` bytes, and ``share`` of them to one caller.

        A request waits for ``wait_seconds``, counted again from each place that its caller gives
        back: many long requests of one caller are slow together, but none is refused for it.
        """
        self._total = total
        self._share = share
        self._wait_seconds = wait_seconds
        self._held = Tally()
        self._queue: list[_Waiting] = []

    @property
    def held(self) -> int:
        """Return the bytes in use, all callers together."""
        return self._held.total

    @asynccontextmanager
    async def place(self, caller: bytes, size: int) -> AsyncIterator[None]:
        """Hold room for a request of a caller as long as the block runs; wait for it if need be.

        A request longer than a share is counted as one whole share, so that it gets its turn.

        Raises:
            Refusal: there was no room in time.
        """
        size = min(size, self._share, self._total)
        await self._take(caller, size)
        try:
            yield
        finally:
            self._give_back(caller, size)

    async def _take(self, caller: bytes, size: int) -> None:
        granted = asyncio.get_running_loop().create_future()
        waiting = _Waiting(caller, size, granted, asyncio.timeout(self._wait_seconds))
        self._queue.append(waiting)
        self._grant()
        if waiting.granted.done():
            return
        try:
            async with waiting.timeout:
                await waiting.granted
        except BaseException as failure:
            # The place may have been granted in the same turn in which the wait ended.
            if waiting.granted.done() and not waiting.granted.cancelled():
                self._give_back(caller, size)
            else:
                self._queue.remove(waiting)
                self._grant()
            if isinstance(failure, TimeoutError):
                raise no_room() from None
            raise

    def _give_back(self, caller: bytes, size: int) -> None:
        self._held.add(caller, -size)
        self._grant()
        until = asyncio.get_running_loop().time() + self._wait_seconds
        for waiting in self._queue:
            if waiting.caller == caller and not waiting.timeout.expired():
                waiting.timeout.reschedule(until)

    def _grant(self) -> None:
        """Give room to those who wait.

        The caller that holds least is first, then the one that came first. Where that one does
        not fit, no other one passes it: small requests could keep a large one waiting for ever.
        """
        while allowed := [
            waiting
            for waiting in self._queue
            if not waiting.granted.done()  # its caller went away in this very turn
            and self._held.of(waiting.caller) + waiting.size <= self._share
        ]:
            # Of callers that hold equally much, ``min`` takes the first in the queue.
            first = min(allowed, key=lambda waiting: self._held.of(waiting.caller))
            if self.held + first.size > self._total:
                return
            self._queue.remove(first)
            self._held.add(first.caller, first.size)
            first.granted.set_result(None)
