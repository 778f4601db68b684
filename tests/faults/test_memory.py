"""Servers whose limits are filled, one kind at a time: what they hold is what the sum says."""

from __future__ import annotations

import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection

import pytest

from reconciler.service.eventstore import sqlite_tables as tables
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.transport.limits import MIB, Limits
from reconciler.service.transport.memory import most_memory
from tests.raw_http import request
from tests.running import Server, running_server

SUM = most_memory(Limits())
SEARCH = "/management/v1/actions/_search"
SCRIPT = 3000
PAGE = json.dumps({"query": {"limit": 1000}}).encode()
UNREAD = 80  # connections that each ask for a page of 3 MiB


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server with a thousand long actions."""
    with running_server(tmp_path_factory.mktemp("memory")) as server:
        fill(server, 1000)
        assert len(page(server)) > 1000 * SCRIPT  # what is done once is done
        yield server


def fill(server: Server, count: int) -> None:
    """Put actions in the store, without the events that made them."""
    spec = json.dumps({"allowedToFail": False, "script": "x" * SCRIPT, "timeout": "20s"})
    marks = '{"owner":"","preventDelete":null,"trees":[]}'
    owner = server.known.organization
    rows = (
        ObjectRow(
            str(number), "Action", owner, owner, f"a{number}", f"a{number}", spec, "", "", 1,
            number, number, "t", "", marks,
        )
        for number in range(10**15, 10**15 + count)
    )  # fmt: skip
    with closing(sqlite3.connect(server.store)) as connection, connection:
        connection.executemany(tables.ADD_OBJECT, rows)


def page(server: Server) -> bytes:
    """Return a page of a list that is read."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        headers = {**server.bearer("viewer"), "content-type": "application/json"}
        connection.request("POST", SEARCH, PAGE, headers)
        return connection.getresponse().read()


def most_held(server: Server, seconds: float) -> int:
    """Return the most memory that a server holds within so many seconds."""
    most, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        most = max(most, server.memory())
        time.sleep(0.02)
    return most


def test_answers_that_are_not_read_take_what_the_sum_says(server: Server) -> None:
    """One caller asks for many long pages, and reads none of them; another one is answered."""
    headers = {**server.bearer("viewer"), "content-type": "application/json"}
    before = server.memory()
    with ExitStack() as opened:
        for _ in range(UNREAD):
            made = opened.enter_context(closing(socket.socket()))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            made.connect(("127.0.0.1", server.port))
            made.sendall(request("POST", SEARCH, headers, PAGE))
        held = most_held(server, 2.0) - before

    assert 2 * (SUM["pages of lists"] + SUM["answers not read"]) < UNREAD * 1000 * SCRIPT
    assert held < SUM["pages of lists"] + SUM["answers not read"], f"{held / MIB:.0f} MiB"
