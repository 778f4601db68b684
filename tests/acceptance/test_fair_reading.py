"""One caller's longest lists are not in the way of another's short ones."""

from __future__ import annotations

import json
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from itertools import product
from pathlib import Path

from tests.running import Server, running_server

HELD = 20_000
ATTACKERS = 32
FEW = json.dumps({"query": {"limit": 100}})
# Every name contains the text: each test is made on each name, which is as much as can be asked.
QUERY = {"name": "action", "method": "TEXT_QUERY_METHOD_CONTAINS_IGNORE_CASE"}
WORST = json.dumps({"query": {"limit": 1000}, "queries": [{"actionNameQuery": QUERY}] * 20})
ALLOWED_SECONDS = 0.2


def _seconds(connection: HTTPConnection, authorization: str, body: str) -> float:
    """Ask for a list of actions, and return how long that takes."""
    began = time.perf_counter()
    headers = {"authorization": authorization, "content-type": "application/json"}
    connection.request("POST", "/management/v1/actions/_search", body, headers)
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200
    return time.perf_counter() - began


def _connection(server: Server) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", server.port, timeout=60)


@contextmanager
def _under_attack(server: Server) -> Iterator[list[float]]:
    """Ask for the worst list over many connections at a time; yield how long each took.

    The token is one and the same, and the header that carries it is different on each connection.
    At the end the connections are cut, so that nobody waits for what is asked over them.
    """
    took: list[float] = []
    connections = [_connection(server) for _ in range(ATTACKERS)]
    token = server.known.tokens["viewer"]
    schemes = map("".join, product(*zip("bearer", "BEARER", strict=True)))

    def attack(connection: HTTPConnection, scheme: str) -> None:
        with suppress(OSError, HTTPException):
            while True:
                took.append(_seconds(connection, f"{scheme} {token}", WORST))

    with ExitStack() as stack:
        for connection, scheme in zip(connections, schemes, strict=False):
            connection.connect()
            stack.callback(connection.close)  # after its thread has ended
            attacker = threading.Thread(target=attack, args=(connection, scheme))
            attacker.start()
            stack.callback(attacker.join)
        for connection in connections:
            stack.callback(connection.sock.shutdown, socket.SHUT_RDWR)
        yield took


def test_a_short_list_does_not_wait_for_long_ones(tmp_path: Path) -> None:
    """Every attacker's list takes the processor long, and another organization asks for little."""
    with running_server(tmp_path) as server:
        server.put_actions(server.known.organization, HELD, 10**15)
        server.put_actions(server.known.other_organization, 200, 2 * 10**15)
        stranger = f"Bearer {server.known.tokens['stranger']}"
        with closing(_connection(server)) as connection, _under_attack(server) as worst:
            while not worst:
                time.sleep(0.01)
            short = [_seconds(connection, stranger, FEW) for _ in range(50)]

    assert statistics.quantiles(short, n=10)[-1] < ALLOWED_SECONDS
    assert max(short) < statistics.median(worst)
