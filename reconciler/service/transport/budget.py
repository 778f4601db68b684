"""Bytes of large requests that a server holds at one time: a sum for all, a share for each caller.

A request takes its place before its body is read, and gives it back once it is answered. While
there is no room the caller is not read from, so that the network holds it back. Small requests
take no place: the number of connections bounds them.

One event loop; no locks.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.transport.limits import Limits


@dataclass(eq=False, slots=True)
class _Waiting:
    caller: bytes
    size: int
    granted: asyncio.Future[None]
    timeout: asyncio.Timeout

    def wait_on(self, until: float) -> None:
        """Wait until another time, unless the wait is over already."""
        if not self.timeout.expired():
            self.timeout.reschedule(until)


class Budget:
    """Room for large requests, shared fairly.

    Attributes:
        held: Bytes in use, all callers together.
        waiting: How many requests wait for room.
    """

    def __init__(self, total: int, share: int, wait_seconds: float) -> None:
        """Allow ``total`` bytes, and ``share`` of them to one caller.

        A request waits for ``wait_seconds``, counted again from each place that its caller gives
        back: many long requests of one caller are slow together, but none is refused for it.
        """
        self._total = total
        self._share = share
        self._wait_seconds = wait_seconds
        self._held: Counter[bytes] = Counter()
        self._queue: list[_Waiting] = []

    @classmethod
    def of(cls, limits: Limits) -> Budget:
        """Return the budget of a server."""
        return cls(limits.large_bytes, limits.large_share_bytes, limits.large_seconds)

    @classmethod
    def of_grpc(cls, limits: Limits) -> Budget:
        """Return the budget of the messages of gRPC, of which a share is a connection's."""
        return cls(limits.grpc_large_bytes, limits.grpc_share_bytes, limits.room_seconds)

    @property
    def held(self) -> int:
        """Return the bytes in use."""
        return self._held.total()

    @property
    def waiting(self) -> int:
        """Return how many requests wait."""
        return len(self._queue)

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
        self._held[caller] -= size
        if not self._held[caller]:
            del self._held[caller]
        self._grant()
        until = asyncio.get_running_loop().time() + self._wait_seconds
        for waiting in self._queue:
            if waiting.caller == caller:
                waiting.wait_on(until)

    def _grant(self) -> None:
        """Give room to those who wait.

        The caller that holds least is first, then the one that came first. Where that one does
        not fit, no other one passes it: small requests could keep a large one waiting for ever.
        """
        while allowed := [
            waiting
            for waiting in self._queue
            if not waiting.granted.done()  # its caller went away in this very turn
            and self._held[waiting.caller] + waiting.size <= self._share
        ]:
            first = min(allowed, key=lambda waiting: self._held[waiting.caller])
            if self.held + first.size > self._total:
                return
            self._queue.remove(first)
            self._held[first.caller] += first.size
            first.granted.set_result(None)


def no_room() -> Refusal:
    """Refuse a large request because others take all the room."""
    return Refusal(
        Code.RESOURCE_EXHAUSTED,
        "the service is busy with other large requests; ask again",
        "service.busy",
    )
