"""A way to a service on which requests and answers come to harm, as often as a test says."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple
from urllib.parse import urlsplit

FAULTS = (
    "reset before",
    "half a request",
    "reset after",
    "half an answer",
    "unavailable before",
    "unavailable after",
    "garbage",
    "twice",
    "late",
)
FAILURES = ("failed before", "failed after")
CUT_OFF = ("reset before", "half a request", "reset after", "half an answer")
HARMLESS = ("", "twice", "late")
LATE = 0.05
ANSWER = b"HTTP/1.1 %s\r\ncontent-length: %d\r\n%sconnection: close\r\n\r\n%s"
GATEWAY = ANSWER % (b"502 Bad Gateway", 0, b"", b"")
FAILURE = ANSWER % (b"500 Internal Server Error", 0, b"", b"")
GARBAGE = ANSWER % (b"200 OK", 9, b"content-type: application/json\r\n", b'{"id": 1,')


class Message(NamedTuple):
    """A request or a response: its first line, and all of its bytes."""

    first: bytes
    whole: bytes


class FaultProxy:
    """Passes requests on, one at a time on each connection, and harms some of them.

    Attributes:
        choose: Told the first line of a request; returns the harm it comes to, or nothing.
        spoil: Told the first line of a request and the answer to it; returns another answer.
        done: How often each harm was done.
    """

    def __init__(self, target: str, choose: Callable[[bytes], str]) -> None:
        self._host, self._port = urlsplit(target).hostname or "", urlsplit(target).port or 0
        self.choose = choose
        self.spoil: Callable[[bytes, bytes], bytes] = _as_it_is
        self.done: Counter[str] = Counter()
        self.address = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        """Serve until told to stop."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        await stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while (request := await _message(reader)) and await self._pass(request, writer):
                    pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _pass(self, request: Message, writer: asyncio.StreamWriter) -> bool:
        """Pass a request on and say whether the connection goes on."""
        fault = self.choose(request.first)
        self.done[fault] += 1
        if fault == "late":
            await asyncio.sleep(LATE)
        answer = b""
        if fault == "half a request":
            await self._forward_half(request)
        elif not fault.endswith(" before"):
            answer = self.spoil(request.first, await self._forward(request))
        if fault == "twice":
            await self._forward(request)
        writer.write(_harmed(fault, answer))
        await writer.drain()
        if fault in CUT_OFF:
            writer.transport.abort()
        return fault in HARMLESS

    async def _forward(self, request: Message) -> bytes:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(request.whole)
            await writer.drain()
            answer = await _message(reader)
            return answer.whole if answer else b""
        finally:
            writer.close()

    async def _forward_half(self, request: Message) -> None:
        _, writer = await asyncio.open_connection(self._host, self._port)
        writer.write(request.whole[: len(request.whole) // 2])
        await writer.drain()
        writer.close()


async def _message(reader: asyncio.StreamReader) -> Message | None:
    """Return the next message, or nothing at the end. Bodies have a length, here."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split(b"\r\n")
    lengths = [line.split(b":")[1] for line in lines if line.lower().startswith(b"content-length:")]
    body = await reader.readexactly(int(lengths[0])) if lengths else b""
    return Message(first, head + body)


def _as_it_is(first: bytes, answer: bytes) -> bytes:
    del first
    return answer


def _harmed(fault: str, answer: bytes) -> bytes:
    """Return what is left of an answer."""
    if fault.startswith("reset") or fault == "half a request":
        return b""
    if fault.startswith("failed"):
        return FAILURE
    if fault.startswith("unavailable"):
        return GATEWAY
    if fault == "garbage":
        return GARBAGE
    return answer[: len(answer) // 2] if fault == "half an answer" else answer


def at_random(
    seed: int, share: float, *, once_only: bool = False, verbs: tuple[bytes, ...] = (b"POST",)
) -> Callable[[bytes], str]:
    """Return a choice that harms a share of the writes of some verbs.

    ``once_only`` leaves out what makes a request count twice by itself: against that, only a
    service with idempotency keys can do something.
    """
    dice = random.Random(seed)
    faults = [fault for fault in FAULTS if not (once_only and fault == "twice")]

    def choose(first: bytes) -> str:
        is_write = first.split(b" ")[0] in verbs and b"_search" not in first
        return dice.choice(faults) if is_write and dice.random() < share else ""

    return choose


@contextmanager
def fault_proxy(target: str, choose: Callable[[bytes], str]) -> Iterator[FaultProxy]:
    """Run a proxy to a service, in a thread."""
    proxy = FaultProxy(target, choose)
    ready, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(proxy.serve(ready, stop)), daemon=True
    )
    thread.start()
    assert ready.wait(10)
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
