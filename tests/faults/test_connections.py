"""Too many connections, and silent ones: bounded, logged, and others are not kept out."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import uvloop

from reconciler.service.build import IdentityService, open_sqlite
from reconciler.service.scheduling.batching import Batcher
from reconciler.service.transport.connections import LEAST, RESERVED, bind, fitted
from reconciler.service.transport.limits import LINGERING, Limits
from reconciler.service.transport.listener import Serving, one_queue, serve
from reconciler.service.transport.observer import Observer
from reconciler.service.transport.protobuf import METHODS
from tests import http2
from tests.examples import NAMES_ALONE
from tests.plain_http import NO_TRUST
from tests.raw_http import request
from tests.running import Known, prepare
from tests.served import Served, a_free_port

FILES = 320
LIMITS = fitted(Limits(), FILES)
HELLO = http2.PREFACE + http2.frame(http2.SETTINGS)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Run a server that may have few files open, and even fewer until it asks for more."""
    folder = tmp_path_factory.mktemp("few")
    command = f'ulimit -Sn {FILES - 64}; ulimit -Hn {FILES}; exec "$@"'
    server = Served(folder, "sqlite:identity.db", a_free_port(), before=("sh", "-c", command, "sh"))
    server.start()
    yield server
    server.stop()
    assert "Traceback" not in log_of(server)


def log_of(server: Served) -> str:
    return (server.folder / "serve.log").read_text(encoding="utf-8")


def open_files(server: Served) -> int:
    assert server.process is not None
    return sum(1 for _ in Path(f"/proc/{server.process.pid}/fd").iterdir())


def connected(port: int, say: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=10)
    made.sendall(say)
    return made


def test_a_server_raises_its_limit_of_files_and_says_what_it_has(served: Served) -> None:
    """Its limits of connections follow from it."""
    said = f"open files: at most {FILES}; connections: at most {LIMITS.connections}\n"

    deadline = time.monotonic() + 5
    while said not in log_of(served) and time.monotonic() < deadline:
        time.sleep(0.02)

    assert said in log_of(served)


@pytest.mark.parametrize("say", [b"", HELLO], ids=["silent", "HTTP/2"])
def test_more_connections_than_files_make_room_for_each_other(served: Served, say: bytes) -> None:
    """There are always files left for the store, and a place for who asks something."""
    with ExitStack() as opened:
        for _ in range(FILES):
            opened.enter_context(closing(connected(served.port, say)))
        assert open_files(served) < FILES
        assert httpx.get(f"{served.address}/healthz", verify=NO_TRUST).status_code == 200


# Connections that make room, in this process, where they have to do so soon.

FEW = Limits(
    connections=12,
    silent_seconds=0.1,
    head_seconds=30,
    linger_seconds=0.05,
    drain_seconds=2,
)
OK = b"HTTP/1.1 200 OK"
GET = request("GET", "/healthz")
HALF = request("POST", "/management/v1/actions", {"content-length": "99"}) + b"{"
CREATE_ACTION = "/zitadel.management.v1.ManagementService/CreateAction"
CREATE = METHODS[CREATE_ACTION]


@dataclass
class Here:
    """A server in this process."""

    port: int
    store: Path
    known: Known
    observer: Observer


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    """Run a server with room for few connections, on a thread."""
    store = tmp_path_factory.mktemp("here") / "identity.db"
    known = prepare(store)
    observer = Observer()
    port: Future[int] = Future()
    stops: list[Callable[[], object]] = []

    async def serving(service: IdentityService) -> None:
        loop = asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(ends[0]))
        ends: list[Callable[[], None]] = []
        await serve(
            Serving(
                batcher=Batcher(service.dispatcher, one_queue),
                observer=observer,
                listening=bind("127.0.0.1", 0),
                limits=FEW,
                figures=lambda: None,
                is_open=lambda: True,
                on_ready=lambda address: port.set_result(int(address.rpartition(":")[2])),
                until=ends.append,
                drawing=NAMES_ALONE,
            )
        )

    with closing(open_sqlite(store)) as service:
        thread = threading.Thread(target=lambda: uvloop.run(serving(service)))
        thread.start()
        yield Here(port.result(20), store, known, observer)
        stops[0]()
        thread.join()


def answer_of(here: Here) -> bytes:
    """Return the beginning of what a new caller is answered, or nothing."""
    with closing(connected(here.port, GET)) as caller, suppress(ConnectionError):
        return caller.recv(len(OK))
    return b""


def is_answered_soon(here: Here) -> bool:
    """Ask until there is room; return whether there is some before long."""
    until = time.monotonic() + 2
    while time.monotonic() < until:
        if answer_of(here) == OK:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("say", "said"),
    [
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"G", b"", id="half a head"),
        pytest.param(HALF, b"", id="half a body"),
        pytest.param(GET, OK, id="all, and was answered"),
        pytest.param(GET + b"G", OK, id="half of another head"),
    ],
)
def test_connections_without_a_call_keep_nobody_out(here: Here, say: bytes, said: bytes) -> None:
    """Whatever they have said, they make room."""
    with ExitStack() as opened:
        opening = (
            opened.enter_context(closing(connected(here.port, say)))
            for _ in range(3 * FEW.connections)  # one that is too many takes no place for long
        )
        heard = [each.recv(len(said)) for each in opening if said]
        assert heard.count(said) >= (FEW.connections if said else 0)
        assert all(is_answered_soon(here) for _ in range(3))


@contextmanager
def calling(here: Here, store: sqlite3.Connection, name: str) -> Iterator[Future[Any]]:
    """Begin a write over gRPC that waits for another program's; yield what becomes of it.

    Until the server has begun it, the connection is as idle as any other.
    """
    with grpc.insecure_channel(f"127.0.0.1:{here.port}") as channel:
        metadata = (("authorization", f"Bearer {here.known.tokens['editor']}"),)
        call = channel.unary_unary(CREATE_ACTION)
        first = CREATE.request(name=f"{name}-first", script="x").SerializeToString()
        call(first, metadata=metadata, timeout=20)
        store.execute("BEGIN IMMEDIATE")
        message = CREATE.request(name=name, script="x").SerializeToString()
        with ThreadPoolExecutor(1) as caller:
            in_flight = caller.submit(call, message, metadata=metadata, timeout=20)
            while not here.observer.metrics.in_flight and not in_flight.done():
                time.sleep(0.005)
            yield in_flight


def test_idle_connections_over_http_2_keep_nobody_out(here: Here) -> None:
    """The one that is idle for longest makes room; one that waits for its answer is not idle."""
    with closing(sqlite3.connect(here.store, isolation_level=None)) as store, ExitStack() as opened:
        in_flight = opened.enter_context(calling(here, store, "waits"))
        many = [
            opened.enter_context(closing(connected(here.port, HELLO)))
            for _ in range(FEW.connections - 1)
        ]
        for later in range(2 * FEW.connections):
            assert _has_settings(here, opened), later
        store.execute("ROLLBACK")

        answer: Any = CREATE.answer.FromString(in_flight.result(20))
        assert answer.id
        assert _is_over(many[0])


def _has_settings(here: Here, opened: ExitStack) -> bool:
    """Open a connection over HTTP/2; return whether it is taken in."""
    made = opened.enter_context(closing(connected(here.port, HELLO)))
    return made.recv(9)[3:4] == bytes([http2.SETTINGS])


def test_one_too_many_is_told_so_while_all_others_carry_out_calls(here: Here) -> None:
    """Whatever it speaks, it reads why."""
    headers = {
        "authorization": f"Bearer {here.known.tokens['editor']}",
        "content-type": "application/json",
    }
    with closing(sqlite3.connect(here.store, isolation_level=None)) as store, ExitStack() as opened:
        store.execute("BEGIN IMMEDIATE")
        told, number = b"", 0
        until = time.monotonic() + 60
        while not told.startswith(b"HTTP/1.1 503 ") and time.monotonic() < until:
            # Each waits for the other program, unless it made room before it had asked. They come
            # together: the service waits for the other program only for some seconds.
            for each in range(number, number + FEW.connections):
                body = b'{"name": "w%d", "script": "x"}' % each
                asked = request("POST", "/management/v1/actions", headers, body)
                with suppress(ConnectionError):
                    opened.enter_context(closing(connected(here.port, asked)))
            told, number = _all_of(here, GET), number + FEW.connections
        assert told.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: " in told
        assert _all_of(here, HELLO).startswith(b"HTTP/1.1 503 ")
        store.execute("ROLLBACK")


def _all_of(here: Here, say: bytes) -> bytes:
    """Return all that a new caller is told until the other side hangs up, or falls silent."""
    heard = b""
    with closing(connected(here.port, say)) as made, suppress(ConnectionError, TimeoutError):
        made.settimeout(0.2)
        while piece := made.recv(1 << 16):
            heard += piece
    return heard


def _is_over(made: socket.socket) -> bool:
    """Return whether the other side has hung up."""
    made.settimeout(0.2)
    try:
        while made.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize("files", [64, 256, 300, 512, 1024, 4096, 1_000_000])
def test_limits_fit_the_files_a_process_may_open(files: int) -> None:
    """Some are kept for the store, and for those that are told why they are refused."""
    limits = fitted(Limits(), files)

    assert limits.connections >= LEAST
    assert limits.connections + LINGERING + RESERVED <= max(files, RESERVED + LINGERING + LEAST)
    if files >= 4096:
        assert limits == Limits()
