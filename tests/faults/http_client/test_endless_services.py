"""Services that send far too much, or take far too long."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from reconciler.service_client.wire import Answer, WireRefusal
from tests.fault_proxy import fault_proxy
from tests.faults.http_client.strange import CANARY, LOOK, SHORT
from tests.http_clients import http_wire
from tests.running import Server

# Far too much, and far too slow.


@contextmanager
def raw_service(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Run a service that speaks bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def serve_one(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                connection.recv(65536)
                answer(connection)
                ended.wait(5)

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve_one, args=(connection,), daemon=True).start()

        accepting = threading.Thread(target=serve, daemon=True)
        accepting.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def says_it_is_huge(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"content-length: 2147483648\r\n\r\n{")


def never_ends(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")


def drips(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"content-length: 1000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.05)


def drips_its_head(connection: socket.socket) -> None:
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def says_nothing(connection: socket.socket) -> None:
    time.sleep(0.01)


def says_nonsense(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")


@pytest.mark.parametrize(
    "answer",
    [says_it_is_huge, never_ends, drips, drips_its_head, says_nothing, says_nonsense],
)
def test_a_service_costs_neither_time_nor_memory_without_end(
    answer: Callable[[socket.socket], None],
) -> None:
    """Every limit holds for the whole of an answer, not just between two pieces of it."""
    began = time.monotonic()
    with raw_service(answer) as address, http_wire(address, CANARY, SHORT) as wire:
        (reply,) = wire.send([LOOK])

    assert isinstance(reply, WireRefusal)
    assert reply.unsure
    assert time.monotonic() - began < 4
    assert CANARY not in reply.message


def test_who_waited_in_vain_for_long_waits_for_one_more_answer_only() -> None:
    """A run has more to send after a write that failed: it would wait a minute for each."""
    tries = [0]

    def is_silent(connection: socket.socket) -> None:
        tries[-1] += 1
        if len(tries) == 3:
            connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        time.sleep(2 * SHORT.silence)

    with raw_service(is_silent) as address, http_wire(address, CANARY, SHORT) as wire:
        for _ in range(3):
            wire.send([LOOK])
            tries.append(0)

    assert tries[0] > 1
    assert tries[1:3] == [1, 1]


def test_a_service_that_is_not_there_is_given_up_soon() -> None:
    """A wrong port should be told at once, not after a minute."""
    began = time.monotonic()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    with http_wire(f"http://127.0.0.1:{port}", CANARY) as wire:
        (reply,) = wire.send([LOOK])

    assert isinstance(reply, WireRefusal)
    assert (reply.code, reply.unsure) == (0, False)
    assert time.monotonic() - began < 3


def test_a_service_that_comes_back_is_waited_for(server: Server) -> None:
    """A restart in the middle of an apply must not end it."""
    down = threading.Event()
    with (
        fault_proxy(server.address, lambda _: "reset before" if down.is_set() else "") as proxy,
        http_wire(proxy.address, server.token()) as wire,
    ):
        assert isinstance(wire.send([LOOK])[0], Answer)
        down.set()
        threading.Timer(1.5, down.clear).start()
        assert isinstance(wire.send([LOOK])[0], Answer)
