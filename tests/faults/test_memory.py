"""Servers whose limits are filled, one kind at a time: what they hold is what the sum says."""

from __future__ import annotations

import json
import socket
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection

import pytest

from reconciler.service.eventstore import sqlite_tables as tables
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.transport.limits import MIB, Limits, most_memory
from tests import http2
from tests.raw_http import request
from tests.running import Server, running_server

SUM = most_memory(Limits())
SEARCH = "/management/v1/actions/_search"
LIST_ACTIONS = "/zitadel.management.v1.ManagementService/ListActions"
QUARTER = bytes.fromhex("00 00000005 0a03 10fa01")  # a message: a page of 250
STREAMS = 99
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
        connection.executemany(tables.PUT["objects"], rows)


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


def test_answers_over_grpc_that_are_not_read_take_what_the_sum_says(server: Server) -> None:
    """A caller that opens no window for its calls has the server hold their answers."""
    call = http2.headers(LIST_ACTIONS, [("authorization", f"Bearer {server.token('viewer')}")])
    no_window = struct.pack(">HI", http2.INITIAL_WINDOW_SIZE, 0)
    before = server.memory()
    with http2.connected(server.port) as connection:
        connection.send(http2.frame(http2.SETTINGS, content=no_window))
        for stream in range(1, 2 * STREAMS, 2):
            connection.send(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, call))
            connection.send(http2.frame(http2.DATA, http2.END_STREAM, stream, QUARTER))
        held = most_held(server, 2.0) - before

    assert held < SUM["pages of lists"] + SUM["answers not read"], f"{held / MIB:.0f} MiB"
