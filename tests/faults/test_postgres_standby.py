"""A primary with a synchronous standby: the standby is away, and the primary is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import cycle, islice
from pathlib import Path
from threading import Event

import psycopg
import pytest

from reconciler.service.build import open_postgres
from reconciler.service.eventstore import postgres, postgres_connection
from reconciler.service.eventstore.errors import (
    StoreBusyError,
    StoreUnreachableError,
)
from reconciler.service.eventstore.port import EventStore
from reconciler.service.projections.maintenance import verify
from tests.acceptance.test_serve import ACTIONS, port_of, serving, status_of
from tests.faults.writers import call, create
from tests.postgres_server import USER, PostgresServer, a_synchronous_pair
from tests.raw_http import exchange, request
from tests.running import furnish

WRITERS = 8
WRITTEN = 40  # acknowledged before the primary is lost, and as many after
PATIENCE = 60.0
READY = 200
UNAVAILABLE = 500
STANDBY = "waits for its synchronous standby"


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    with a_synchronous_pair() as servers:
        yield servers


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def waits(primary: PostgresServer) -> int:
    """Return how many commits wait for the standby."""
    with psycopg.connect(primary.address(), autocommit=True) as connection:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        found = connection.execute(asked).fetchone()
    return int(found[0]) if found else 0


def test_a_primary_that_waits_for_its_standby_says_so(
    pair: tuple[PostgresServer, PostgresServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other program is blamed, the server is not ready, reads go on, nothing is lost."""
    monkeypatch.setattr(postgres_connection, "SETTINGS", (("lock_timeout", "500ms"),))
    monkeypatch.setattr(postgres, "STANDBY_SECONDS", 1)
    primary, standby = pair
    opened = open_postgres(primary.address(), seal_key_file=tmp_path / "seal-key", create=True)
    with closing(opened) as service, ThreadPoolExecutor() as pool:
        acme = str(service.call(call("AddOrg", name="acme"))["id"])
        store = service.store
        with standby.frozen():
            first = pool.submit(service.call, create("first", acme))
            until(lambda: waits(primary))
            store.require_writable()
            with pytest.raises(StoreBusyError, match=STANDBY):
                service.call(create("second", acme))
            until(lambda: is_not_ready(store))
            assert service.call(call("GetMyOrg", acme))["org"]["name"] == "acme"
        made = first.result()
        until(lambda: not is_not_ready(store))
        found = service.call(call("GetAction", acme, id=made["id"]))
        assert found["action"]["name"] == "first"
        assert verify(store) == []


def is_not_ready(store: EventStore) -> bool:
    """Return whether the store says that it waits for a standby."""
    try:
        store.require_writable()
    except StoreBusyError as failure:
        return STANDBY in failure.problem
    return False


def test_a_commit_whose_wait_was_cancelled_is_not_acknowledged(
    pair: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    """PostgreSQL answers COMMIT with a warning; the standby may not have the write."""
    primary, standby = pair
    opened = open_postgres(primary.address(), seal_key_file=tmp_path / "seal-key", create=True)
    with closing(opened) as service, ThreadPoolExecutor() as pool:
        acme = str(service.call(call("AddOrg", name="acme"))["id"])
        with standby.frozen():
            first = pool.submit(service.call, create("first", acme, "key"))
            until(lambda: waits(primary))
            primary.execute(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            )
            with pytest.raises(StoreUnreachableError, match="standby"):
                first.result()
        again = service.call(create("first", acme, "key"))
        assert again["id"]
        assert verify(service.store) == []


def test_a_lost_primary_loses_nothing_that_was_acknowledged(
    pair: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    """Eight writers over two servers, while the primary dies and the standby is promoted."""
    primary, standby = pair
    key = tmp_path / "seal-key"
    opened = open_postgres(primary.address(), seal_key_file=key, create=True)
    with closing(opened) as service:
        token = furnish(service).tokens["editor"]
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    address = f"postgresql://{USER}@{hosts}/postgres?target_session_attrs=read-write"
    acknowledged: dict[str, str] = {}
    is_over = Event()

    with ExitStack() as stack:
        ports = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            arguments = ("--service", address, "--seal-key-file", str(key))
            ports.append(port_of(*stack.enter_context(serving(tmp_path / name, *arguments))))

        def write(writer: int) -> None:
            """Make one action after another; ask the other server where one gives no answer."""
            number = 0
            for port in islice(cycle(ports), writer, None):
                name = f"a{writer}x{number}"
                if made := make(port, token, name):
                    acknowledged[name] = made
                    number += 1
                if is_over.wait(0 if made else 0.05):
                    return

        pool = stack.enter_context(ThreadPoolExecutor(WRITERS))
        stack.callback(is_over.set)
        writers = [pool.submit(write, number) for number in range(WRITERS)]
        until(lambda: len(acknowledged) >= WRITTEN)
        primary.kill()
        standby.execute("SELECT pg_promote()")
        until(lambda: all(status_of(port, "GET", "/readyz") == READY for port in ports))
        most = len(acknowledged) + WRITTEN
        until(lambda: len(acknowledged) >= most)
        is_over.set()
        for writer in writers:
            writer.result()

    with closing(open_postgres(address, seal_key_file=key)) as service:
        with service.store.snapshot() as view:
            added = [
                (json.loads(event.payload)["name"], event.stream)
                for event in view.read_all(limit=1_000_000)
                if event.type == "action.added"
            ]
        assert verify(service.store) == []
    # A writer may have left while its last call was under way; its write was not acknowledged.
    assert len(dict(added)) == len(added)
    assert acknowledged.items() <= dict(added).items()


def make(port: int, token: str, name: str) -> str:
    """Make an action under a key of its own; return its id, or nothing if there was no answer."""
    body = json.dumps({"name": name, "script": f"function {name}() {{}}"}).encode()
    headers = {
        "authorization": f"Bearer {token}",
        "content-type": "application/json",
        "idempotency-key": name,
    }
    try:
        answer = exchange(port, request("POST", ACTIONS, headers, body))
    except OSError:
        return ""
    if answer is None or answer.status >= UNAVAILABLE:
        return ""
    assert answer.status == READY, answer.body
    return str(answer.json["id"])
