"""A database that falls silent: it is there, takes connections, and says nothing."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from reconciler.service.build import IdentityService, open_postgres
from reconciler.service.eventstore.errors import StoreError, StoreUnreachableError
from reconciler.service.operations.request import Request
from reconciler.service.projections.verify import verify
from tests.acceptance.conftest import Run
from tests.faults.writers import call, create
from tests.postgres_server import PostgresServer, a_server

SHORT = "connect_timeout=2"  # the least that libpq takes
KNOWN_WITHIN = 6.0  # a second of silence, two for a connection, and a busy machine
AT_ONCE = 0.5
BACK_WITHIN = 5.0


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """Start a server that is there to be paused."""
    with a_server() as server:
        yield server


@contextmanager
def opened(database: PostgresServer, folder: Path) -> Iterator[tuple[IdentityService, str]]:
    """Open a service on a store of its own, with an organization in it; yield both."""
    address = f"{database.new_address()}&{SHORT}"
    key = folder / "seal-key"
    with closing(open_postgres(address, seal_key_file=key, create=True)) as service:
        yield service, str(service.call(call("AddOrg", name="acme"))["id"])


def test_what_waits_is_given_up_what_comes_is_refused_at_once_and_it_goes_on_afterwards(
    database: PostgresServer, tmp_path: Path
) -> None:
    """Nothing acknowledged is lost, and what was asked for again under its key is there once."""
    with opened(database, tmp_path) as (service, acme):
        names = [f"greet{number}" for number in range(8)]
        service.call(create("before", acme, "before"))
        with database.frozen(), ThreadPoolExecutor(8) as pool:
            began = time.monotonic()
            waiting = [pool.submit(service.call, create(name, acme, name)) for name in names]
            failures = [job.exception() for job in waiting]
            took = time.monotonic() - began
            with pytest.raises(StoreUnreachableError, match="does not answer"):
                service.call(create("late", acme, "late"))
            refused = time.monotonic() - began - took
        answers = [_asked_until_answered(service, create(name, acme, name)) for name in names]

        assert {type(failure) for failure in failures} == {StoreUnreachableError}
        assert took < KNOWN_WITHIN
        assert refused < AT_ONCE
        assert len({answer["id"] for answer in answers}) == len(names)
        with service.store.snapshot() as view:
            kept = [event.payload for event in view.read_all() if event.type == "action.added"]
        assert len(kept) == len(names) + 1
        assert verify(service.store) == []


def _asked_until_answered(service: IdentityService, request: Request) -> dict[str, Any]:
    deadline = time.monotonic() + BACK_WITHIN
    while True:
        try:
            return service.call(request)
        except StoreError:
            if time.monotonic() > deadline:
                raise
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
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield f"postgresql://me@127.0.0.1:{listener.getsockname()[1]}/identity"
        listener.shutdown(socket.SHUT_RDWR)


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
