"""One port for everything: what a server is made of, and the signals that end it."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from h2.connection import H2Connection

from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.scheduling.batching import Batcher
from reconciler.service.transport import listener
from reconciler.service.transport.connections import Certificate, bind
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.listener import (
    Serving,
    on_signals,
    one_queue,
    pages_served,
    serve,
)
from reconciler.service.transport.observer import Observer
from tests.acceptance.test_serve import make_certificate
from tests.examples import NAMES_ALONE
from tests.memory_store import open_memory


def test_the_first_signal_stops_a_server_and_the_second_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stops: list[int] = []
    codes: list[int] = []
    monkeypatch.setattr(listener, "AT_ONCE_SECONDS", 0.0)
    monkeypatch.setattr(os, "_exit", codes.append)

    async def main() -> None:
        on_signals(lambda: stops.append(1), lambda: None)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.02)

    asyncio.run(main())

    assert stops == [1, 1]
    assert codes == [128 + signal.SIGTERM]


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_hangup_reloads(before: signal.Handlers) -> None:
    """Also where ``nohup`` started the program with it ignored."""
    reloads: list[int] = []
    usual = signal.signal(signal.SIGHUP, before)

    async def main() -> None:
        on_signals(lambda: None, lambda: reloads.append(1))
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.02)

    try:
        asyncio.run(main())
    finally:
        signal.signal(signal.SIGHUP, usual)

    assert reloads == [1]


def test_a_store_with_one_writer_has_one_queue() -> None:
    assert {one_queue(Incoming(name, {}, {})) for name in ("CreateAction", "AddOrg")} == {"all"}


async def started(
    batcher: Batcher, stops: list[Callable[[], None]]
) -> tuple[asyncio.Future[None], int]:
    """Start a server that drains for a second; return what ends with it, and its port."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = Serving(
        batcher=batcher,
        observer=Observer(),
        listening=bind("127.0.0.1", 0),
        figures=lambda: None,
        is_open=lambda: True,
        on_ready=ready.set_result,
        until=stops.append,
        drawing=NAMES_ALONE,
        limits=Limits(drain_seconds=1),
    )
    running = asyncio.ensure_future(serve(serving))
    return running, int((await ready).rpartition(":")[2])


def test_a_server_answers_pages_and_ends_when_told() -> None:
    paths = ("/healthz", "/readyz", "/docs")
    stops: list[Callable[[], None]] = []
    answers: list[bytes] = []

    async def ask(port: int) -> None:
        for path in paths:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET %s HTTP/1.1\r\nhost: x\r\n\r\n" % path.encode())
            answers.append(await reader.readline())
            writer.close()
        stops[0]()

    async def main() -> None:
        running, port = await started(Batcher(open_memory().dispatcher, one_queue), stops)
        await ask(port)
        await running

    asyncio.run(asyncio.wait_for(main(), 20))

    assert answers == [b"HTTP/1.1 200 OK\r\n"] * len(paths)


def test_a_server_that_ends_a_call_answers_it_and_logs_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stops: list[Callable[[], None]] = []

    class Endless(Batcher):
        async def answer(self, call: Incoming) -> Received:
            asyncio.get_running_loop().call_soon(stops[0])
            await asyncio.Event().wait()
            raise AssertionError

    async def main() -> bytes:
        running, port = await started(Endless(open_memory().dispatcher, one_queue), stops)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(
            b"GET /management/v1/orgs/me HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\n\r\n"
        )
        answer = await reader.readuntil(b"about to stop")
        writer.close()
        await running
        return answer

    answer = asyncio.run(asyncio.wait_for(main(), 20))

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert not any(record.exc_info for record in caplog.records)


def test_memory_of_connections_that_are_gone_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for so many; a server that nobody calls has nothing to give back."""
    stops: list[Callable[[], None]] = []
    trimmed: list[int] = []
    was_trimmed = threading.Event()

    def trim(padding: int) -> None:
        trimmed.append(padding)
        was_trimmed.set()

    library = SimpleNamespace(CDLL=lambda _: SimpleNamespace(malloc_trim=trim))
    monkeypatch.setattr(listener, "ctypes", library)
    monkeypatch.setattr(listener, "GIVE_BACK_SECONDS", 0)
    monkeypatch.setattr(listener, "GIVE_BACK_AFTER", 2)

    async def main() -> None:
        running, port = await started(Batcher(open_memory().dispatcher, one_queue), stops)
        for _ in range(2):
            assert not trimmed
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            await writer.wait_closed()
        assert await asyncio.to_thread(was_trimmed.wait, 15)
        await asyncio.sleep(1.2)  # the server looks once a second
        stops[0]()
        await running

    asyncio.run(asyncio.wait_for(main(), 20))

    assert trimmed == [0]


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Answer with a word."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


Asked = Callable[[int], Awaitable[bytes]]


def answered_beside(ask: Asked, tls: Certificate | None = None) -> bytes:
    """Return what a server of few callers answers."""

    async def main() -> bytes:
        listening = bind("127.0.0.1", 0)
        port = listening.getsockname()[1]
        async with pages_served(hello, listening, Observer(), Limits(), tls):
            return await ask(port)

    return asyncio.run(asyncio.wait_for(main(), 20))


def test_silent_connections_keep_no_caller_from_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "SIDE_CONNECTIONS", 2)

    async def ask(port: int) -> bytes:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = await reader.readuntil(b"hello")
        for _, other in (*silent, (reader, writer)):
            other.close()
        return answer

    assert answered_beside(ask).startswith(b"HTTP/1.1 200 ")


def test_a_page_is_answered_in_each_protocol_that_is_offered(tmp_path: Path) -> None:
    chain, key = make_certificate(tmp_path)
    context = ssl.create_default_context(cafile=str(chain))
    context.set_alpn_protocols(["h2"])

    async def ask(port: int) -> bytes:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="localhost"
        )
        client = H2Connection()
        client.initiate_connection()
        target = [(":method", "GET"), (":scheme", "https"), (":authority", "x"), (":path", "/")]
        client.send_headers(1, target, end_stream=True)
        writer.write(client.data_to_send())
        answer = await reader.readuntil(b"hello")
        writer.close()
        return answer

    assert answered_beside(ask, Certificate(chain, key)).endswith(b"hello")
