"""A database that falls silent: it is there, takes connections, and says nothing."""

from __future__ import annotations

import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from reconciler.service.build import IdentityService, open_postgres
from reconciler.service.eventstore import postgres_connection
from reconciler.service.eventstore.errors import StoreError, StoreUnreachableError
from reconciler.service.operations.request import Request
from tests.acceptance.conftest import Run
from tests.faults.proxy import a_proxy
from tests.faults.writers import call, create
from tests.plain_http import plain_client
from tests.postgres_server import PostgresServer, a_server
from tests.program import started
from tests.running import furnish
from tests.served import Served, a_free_port

SHORT = "connect_timeout=2"  # the least that libpq takes
KNOWN_WITHIN = 8.0  # a second of silence, two for a connection, and a busy machine
AT_ONCE = 1.0
BACK_WITHIN = 5.0
STOPS_WITHIN = 10.0
LEAVES_WITHIN = 4.0
UNAVAILABLE = 503
PAGES = ("/readyz", "/docs", "/openapi.json")


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """Start a server that is there to be paused."""
    with a_server() as server:
        yield server


@dataclass
class Line:
    """A client of a server over the database."""

    http: httpx.Client
    bearer: Mapping[str, str]

    def get(self, path: str) -> httpx.Response:
        return self.http.get(path)

    def make(self, name: str) -> httpx.Response:
        """Make an action, under an idempotency key of its name."""
        fields = {"name": name, "script": f"function {name}() {{}}"}
        headers = {**self.bearer, "idempotency-key": name}
        return self.http.post("/management/v1/actions", json=fields, headers=headers)

    def make_in_the_end(self, name: str) -> str:
        """Ask until it is made, and return its id."""
        deadline = time.monotonic() + BACK_WITHIN
        while (made := self.make(name)).status_code == UNAVAILABLE:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return str(made.json()["id"])


@contextmanager
def lines(
    database: PostgresServer, folder: Path, count: int
) -> Iterator[list[tuple[Served, Line]]]:
    """Yield servers over one database, each with a client."""
    address, key = f"{database.new_address()}&{SHORT}", folder / "seal-key"
    with closing(open_postgres(address, seal_key_file=key, create=True)) as service:
        token = furnish(service).tokens["editor"]
    started = []
    with ExitStack() as stack:
        for number in range(count):
            (folder / str(number)).mkdir()
            arguments = ("--seal-key-file", str(key))
            served = Served(folder / str(number), address, a_free_port(), arguments)
            served.spawn()
            stack.callback(_end, served)
            http = stack.enter_context(plain_client(served.address))
            started.append((served, Line(http, {"authorization": f"Bearer {token}"})))
        for served, _ in started:
            served.wait()
        yield started
        for served, _ in started:
            assert "Traceback" not in (served.folder / "serve.log").read_text(encoding="utf-8")


def _end(served: Served) -> None:
    assert served.process is not None
    if served.process.poll() is None:
        served.process.kill()
    served.process.wait()


def test_a_server_says_so_goes_on_afterwards_and_ends_on_time(
    database: PostgresServer, tmp_path: Path
) -> None:
    """What is in flight is told as unavailable, what comes at once; and again in a second silence.

    One server is told to end once, and the other twice.
    """
    with lines(database, tmp_path, 2) as started, ThreadPoolExecutor(8) as pool:
        (first, one), (second, two) = started
        with database.frozen():
            waiting = [pool.submit(one.make, "early")]
            waiting += [pool.submit(one.get, page) for page in PAGES]
            began = time.monotonic()
            told = [job.result() for job in waiting]
            known = time.monotonic()
            told += [one.make("late"), *(one.get(page) for page in PAGES)]
            lives = one.get("/healthz").status_code
            refused = time.monotonic()
        ids = [one.make_in_the_end(name) for name in ("early", "late", "early")]

        with database.frozen():
            waiting = [pool.submit(line.make, "last") for line in (one, two)]
            time.sleep(0.3)  # until both wait for the database
            for served in (first, second, second):
                assert served.process is not None
                served.process.send_signal(signal.SIGTERM)
                time.sleep(0.1)
            ending = time.monotonic()
            assert second.process is not None
            assert second.process.wait(STOPS_WITHIN) in {0, 143}
            at_once = time.monotonic() - ending
            assert first.process is not None
            assert first.process.wait(STOPS_WITHIN) == 0
            told.append(waiting[0].result())

    assert known - began < KNOWN_WITHIN
    assert refused - known < AT_ONCE
    assert {answer.status_code for answer in told} == {UNAVAILABLE}
    assert all(answer.json()["code"] == 14 for answer in told)
    assert all(answer.headers["retry-after"] for answer in told)
    assert lives == 200
    assert len(set(ids)) == 2
    assert at_once < LEAVES_WITHIN


def test_a_way_that_swallows_everything_is_given_up_and_taken_again(
    database: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No end of a connection ever arrives; those from before are not used any more."""
    monkeypatch.setattr(postgres_connection, "QUIET_SECONDS", 0.2)
    monkeypatch.setattr(postgres_connection, "PAUSE_SECONDS", 0.1)
    address = f"{database.new_address()}&{SHORT}"
    key = tmp_path / "seal-key"
    with closing(open_postgres(address, seal_key_file=key, create=True)) as service:
        acme = str(service.call(call("AddOrg", name="acme"))["id"])
    with a_proxy(database.port) as proxy:
        behind = address.replace(f":{database.port}/", f":{proxy.port}/")
        with closing(open_postgres(behind, seal_key_file=key)) as service:
            service.call(create("before", acme, "before"))
            proxy.swallows = True
            began = time.monotonic()
            with pytest.raises(StoreUnreachableError):
                service.call(create("greet", acme, "greet"))
            took = time.monotonic() - began
            proxy.swallows = False
            made = _asked_until_answered(service, create("greet", acme, "greet"))

            assert took < KNOWN_WITHIN
            with service.store.snapshot() as view:
                kept = [event.stream for event in view.read_all() if event.type == "action.added"]
            assert kept[1:] == [made["id"]]


def _asked_until_answered(service: IdentityService, request: Request) -> dict[str, Any]:
    deadline = time.monotonic() + BACK_WITHIN
    while True:
        try:
            return service.call(request)
        except StoreError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@contextmanager
def a_database_that_refuses(code: str, sentence: str) -> Iterator[str]:
    """Yield the address of a database that answers every start of a session with an error."""
    fields = f"SFATAL\0VFATAL\0C{code}\0M{sentence}\0\0".encode()
    error = b"E" + struct.pack("!I", len(fields) + 4) + fields

    def serve(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    asked = connection.recv(4096)
                    if asked[4:8] == struct.pack("!I", 80877103):  # whether it speaks TLS
                        connection.sendall(b"N")
                        connection.recv(4096)
                    connection.sendall(error)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=serve, args=(listener,), daemon=True)
        accepting.start()
        yield f"postgresql://me@127.0.0.1:{listener.getsockname()[1]}/identity"
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()


@pytest.mark.parametrize(
    ("code", "sentence", "word"),
    [
        ("57P03", "die Datenbank »identity« startet", "is starting up or shutting down"),
        ("57P03", 'database "identity" is in recovery', "is starting up or shutting down"),
        ("3D000", "Datenbank »identity« existiert nicht", "refuses the connection"),
        ("3D000", 'database "identity" does not exist', "there is no such database"),
    ],
)
def test_starting_up_is_known_by_its_code(run: Run, code: str, sentence: str, word: str) -> None:
    """Whatever language the database speaks; what it says is not repeated."""
    with a_database_that_refuses(code, sentence) as address:
        told = run("token", "list", "--service", address)

    assert told.code == 1
    assert word in told.err
    assert sentence not in told.all


def test_a_command_ends_in_words(
    run: Run, small: Path, database: PostgresServer, tmp_path: Path
) -> None:
    """Neither plan nor apply hangs on a database that stopped answering."""
    here = {"RECONCILER_SERVICE": f"{database.new_address()}&{SHORT}"}
    with database.frozen(), ThreadPoolExecutor(2) as pool:
        began = time.monotonic()
        planning = pool.submit(run, "plan", **here)
        key = ("--seal-key-file", str(tmp_path / "key"))
        applying = pool.submit(run, "apply", "--auto-approve", *key, **here)
        ended = [planning.result(), applying.result()]

    assert time.monotonic() - began < KNOWN_WITHIN
    assert [told.code for told in ended] == [1, 1]
    assert all("does not answer" in told.err for told in ended), ended


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_command_that_waits(
    small: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """The database takes the connection, and says nothing for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"postgresql://me@127.0.0.1:{listener.getsockname()[1]}/x?connect_timeout=60"
        process = started(tmp_path, "plan", "--service", address)
        try:
            listener.settimeout(30)
            with listener.accept()[0]:
                process.send_signal(number)
                began = time.monotonic()
                _, said = process.communicate(timeout=30)
        finally:
            process.kill()

    assert process.returncode == code
    assert time.monotonic() - began < LEAVES_WITHIN
    assert "Traceback" not in said
