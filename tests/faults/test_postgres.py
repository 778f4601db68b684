"""Several servers on one PostgreSQL, and what becomes of a write when it fails under them."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from reconciler.service.build import IdentityService, open_postgres
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore.errors import (
    StoreBusyError,
    StoreError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from reconciler.service.eventstore.postgres import Connections
from reconciler.service.eventstore.postgres_schema import COLUMNS
from reconciler.service.eventstore.rows import NO_LOOKUPS, StoredEvent, TokenRow
from reconciler.service.operations.callers import make_token
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.projections.maintenance import verify
from reconciler.service.scheduling.batching import Batcher
from tests.faults import writers
from tests.faults.proxy import SETTLE_SECONDS, a_proxy
from tests.faults.tracing import wait_until_stopped
from tests.faults.writers import call, create
from tests.postgres_server import PostgresServer, a_server
from tests.program import environment
from tests.warm import Copy

PROCESSES = 4
ORGANIZATIONS = 8
RECOVERY_SECONDS = 10
LOST_RACES = {Code.ALREADY_EXISTS, Code.NOT_FOUND, Code.PRECONDITION_FAILED, Code.ABORTED}
Opening = Callable[[str], IdentityService]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opening]:
    """Open services with one key; they are closed in the end."""
    with ExitStack() as stack:

        def open_one(address: str) -> IdentityService:
            key = tmp_path / "seal-key"
            service = open_postgres(address, seal_key_file=key, create=True)
            return stack.enter_context(closing(service))

        yield open_one


@pytest.fixture(scope="module")
def frail() -> Iterator[PostgresServer]:
    """Start a server that is there to be killed and crowded."""
    with a_server("max_connections=24") as server:
        yield server


def log_of(service: IdentityService) -> Sequence[StoredEvent]:
    with service.store.snapshot() as view:
        return view.read_all(limit=1_000_000)


def added(service: IdentityService, name: str = "") -> list[str]:
    """Return the id of every action that was ever made, or of those of one name."""
    return [
        event.stream
        for event in log_of(service)
        if event.type == "action.added" and (not name or f'"name":"{name}"' in event.payload)
    ]


def an_organization(service: IdentityService, name: str = "acme") -> str:
    return str(service.call(call("AddOrg", name=name))["id"])


def stories_of(script: str, *arguments: str) -> list[list[dict[str, Any]]]:
    """Run a script, which stops itself, in several processes; return what each tells.

    They go on at the same moment.
    """
    folder, told = Path(script).parent, []
    with ExitStack() as stack:
        processes = [Copy([script, *arguments], folder, environment()) for _ in range(PROCESSES)]
        for process in processes:
            stack.callback(process.kill)
        for process in processes:
            wait_until_stopped(process)
        for process in processes:
            process.send_signal(signal.SIGCONT)
        for process in processes:
            out, err = process.communicate(timeout=50)
            assert process.returncode == 0, err
            told.append(json.loads(out))
    return told


def test_four_servers_and_sixty_four_writers_lose_and_double_nothing(
    postgres: PostgresServer, opened: Opening, tmp_path: Path
) -> None:
    """Contended names, shared keys, eight organizations: every answer is true afterwards."""
    address = postgres.new_address()
    service = opened(address)
    owners = [an_organization(service, f"o{number}") for number in range(ORGANIZATIONS)]
    projects = [service.call(call("AddProject", owner, name="shop"))["id"] for owner in owners]
    arguments = (address, str(tmp_path / "seal-key"), json.dumps(owners), json.dumps(projects))

    told = stories_of(writers.__file__, *arguments)

    entries = [entry for story in told for entry in story]
    done = [entry for entry in entries if not entry["code"]]
    assert {entry["code"] for entry in entries if entry["code"]} <= LOST_RACES
    assert verify(service.store) == []
    made = sorted(entry["id"] for entry in done if entry["what"] == "create")
    assert made == sorted(added(service))
    deleted = {entry["id"] for entry in done if entry["what"] == "delete"}
    with service.store.snapshot() as view:
        held = [row for row in view.all_objects() if row.kind == "Action"]
    assert {row.id for row in held} == set(made) - deleted
    assert max(Counter((row.parent, row.folded) for row in held).values()) == 1
    shared = defaultdict(list)
    for entry in entries:
        if entry["what"] == "shared":
            shared[entry["key"]].append(entry["answer"])
    assert all(
        len(answers) == PROCESSES and answers[0]["clientSecret"] and answers[1:] == answers[:-1]
        for answers in shared.values()
    )
    sequences = Counter((event.organization, event.sequence) for event in log_of(service))
    assert max(sequences.values()) == 1
    assert any(entry["code"] == Code.ALREADY_EXISTS for entry in entries), "nobody contended"


STARTING = """
import json, os, signal, sys
from reconciler.service.build import open_postgres

os.kill(os.getpid(), signal.SIGSTOP)
service = open_postgres(sys.argv[1], create=True)
with service.store.snapshot() as view:
    print(json.dumps(view.meta("instance")))
service.close()
"""


def test_servers_that_start_at_once_make_one_store(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    """Each finds the tables, and all find the same instance."""
    address, script = postgres.new_address(), tmp_path / "starting.py"
    script.write_text(STARTING, encoding="utf-8")

    told: list[Any] = stories_of(str(script), address)

    assert len(set(told)) == 1
    assert len(told[0]) == 32
    with psycopg.connect(address) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"
        ).fetchone()
    assert found == (len(COLUMNS),)


def test_an_organization_waits_for_no_other(postgres: PostgresServer, opened: Opening) -> None:
    """Somebody who holds one organization's head, for whatever reason, delays that one alone."""
    address = postgres.new_address()
    service = opened(address)
    acme, globex = an_organization(service, "acme"), an_organization(service, "globex")
    with (
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(address) as holder,
    ):
        holder.execute("SELECT 1 FROM reconciler_heads WHERE organization = %s FOR UPDATE", (acme,))
        waiting = pool.submit(service.call, create("greet", acme))
        began = time.monotonic()
        for number in range(20):
            service.call(create(f"greet{number}", globex))
        needed = time.monotonic() - began
        is_waiting = not waiting.done()
        holder.rollback()

        assert waiting.result(timeout=5)["id"]
    assert is_waiting
    assert needed < RECOVERY_SECONDS / 2


def test_calls_that_share_commits_wait_for_no_organization_but_their_own(
    postgres: PostgresServer, opened: Opening
) -> None:
    """Nobody notices that they shared one with a call whose organization is held."""
    address = postgres.new_address()
    service = opened(address)
    acme, globex = an_organization(service, "acme"), an_organization(service, "globex")
    row = TokenRow("ci", "editor", "", b"", service.now(), 0, 0)
    token = make_token(service.store, row, secrets.token_bytes)
    assert token is not None
    bearer = {"authorization": [f"Bearer {token.reveal()}"]}

    async def main(holder: psycopg.Connection) -> tuple[bool, float]:
        batcher = Batcher(service.dispatcher, service.dispatcher.organization_of, queues_share=True)

        def ask(name: str, organization: str) -> asyncio.Task[Received]:
            fields = {"name": name, "script": "function greet() {}"}
            headers = {**bearer, "x-service-orgid": [organization]}
            return asyncio.ensure_future(batcher.answer(Incoming("CreateAction", fields, headers)))

        try:
            held = [ask("greet", acme)]
            began = time.monotonic()
            for number in range(20):
                held.append(ask(f"held{number}", acme))
                received = await ask(f"greet{number}", globex)
                assert not isinstance(received.answer, Refusal)
            needed = time.monotonic() - began
            is_waiting = not any(task.done() for task in held)
            holder.rollback()
            for task in held:
                assert not isinstance((await task).answer, Refusal)
            return is_waiting, needed
        finally:
            await batcher.close()

    with psycopg.connect(address) as holder:
        holder.execute("SELECT 1 FROM reconciler_heads WHERE organization = %s FOR UPDATE", (acme,))
        is_waiting, needed = asyncio.run(main(holder))

    assert is_waiting
    assert needed < RECOVERY_SECONDS / 2
    assert verify(service.store) == []


def test_a_shared_commit_that_waits_in_vain_asks_for_no_other_connection(
    postgres: PostgresServer, opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again at once, alone. Only then does it matter why the lock was not to be had."""
    address = postgres.new_address()
    service = opened(address)
    acme = an_organization(service)
    asked = NO_LOOKUPS._replace(organizations=frozenset([acme]), is_shared=True)
    opened_for: list[str] = []
    alone = Connections.alone

    def noted(connections: Connections) -> AbstractContextManager[Any]:
        opened_for.append(connections.place)
        return alone(connections)

    monkeypatch.setattr(Connections, "alone", noted)
    with psycopg.connect(address) as holder:
        holder.execute("SELECT 1 FROM reconciler_heads WHERE organization = %s FOR UPDATE", (acme,))
        with pytest.raises(StoreBusyError), service.store.transaction(asked):
            pass

    assert opened_for == []


def test_one_of_many_gets_a_lease(postgres: PostgresServer, opened: Opening) -> None:
    """The first of an organization that does not even exist yet, too."""
    address = postgres.new_address()
    services = [opened(address) for _ in range(2)]
    barrier = threading.Barrier(12, timeout=20)

    def acquire(number: int) -> str:
        barrier.wait()
        try:
            request = call("AcquireLease", organization_="acme", holder=str(number), seconds=60)
            return str(services[number % 2].call(request)["lease"])
        except Refusal as refusal:
            return refusal.reason

    with ThreadPoolExecutor(12) as pool:
        answers = Counter(pool.map(acquire, range(12)))

    assert answers.pop("lease.held") == 11
    assert len(answers) == 1


@pytest.mark.parametrize(("cut", "events"), [("before", 0), ("after", 1)])
def test_a_commit_whose_answer_is_lost_is_not_acknowledged_and_not_doubled(
    postgres: PostgresServer, opened: Opening, cut: str, events: int
) -> None:
    """Who asks again with the same key gets the answer of whatever became of it."""
    address = postgres.new_address()
    direct = opened(address)
    acme = an_organization(direct)
    with a_proxy(postgres.port) as proxy:
        service = opened(address.replace(f":{postgres.port}/", f":{proxy.port}/"))
        proxy.cut = cut
        with pytest.raises(StoreUnreachableError) as caught:
            service.call(create("greet", acme, "key"))
        proxy.cut = ""
        time.sleep(2 * SETTLE_SECONDS)
        written = added(direct)
        again = service.call(create("greet", acme, "key"))

    assert "may have been carried out" in caught.value.problem
    assert len(written) == events
    assert added(direct) == [again["id"]]
    assert verify(direct.store) == []


class Insistent:
    """Writers who do not give up: each asks again, with the same key, until it is answered."""

    def __init__(self, service: IdentityService, organization: str) -> None:
        self._service = service
        self._organization = organization
        self._stop = threading.Event()
        self.answered: dict[str, str] = {}
        self.failed = 0
        self.last_success = 0.0

    def write(self, writer: int) -> None:
        """Create one action after the other."""
        number = 0
        while not self._stop.is_set():
            number += 1
            name = f"w{writer}n{number}"
            while name not in self.answered:
                try:
                    answer = self._service.call(create(name, self._organization, name))
                except StoreError:
                    self.failed += 1
                    time.sleep(0.05)
                else:
                    self.answered[name] = answer["id"]
                    self.last_success = time.monotonic()

    def during(self, disturb: Callable[[], None]) -> None:
        """Write with eight threads while something is done to the database."""
        with ThreadPoolExecutor(8) as pool:
            writing = [pool.submit(self.write, number) for number in range(8)]
            try:
                disturb()
            finally:
                self._stop.set()
            for writer in writing:
                writer.result(timeout=30)

    def check(self) -> None:
        """Nothing acknowledged is lost, nothing is there twice."""
        assert sorted(self.answered.values()) == sorted(added(self._service))
        assert verify(self._service.store) == []


def test_a_killed_database_loses_nothing_and_is_found_again(
    frail: PostgresServer, opened: Opening
) -> None:
    """Ambiguous writes are resolved by their keys, and connections come back by themselves."""
    service = opened(frail.new_address())
    writers = Insistent(service, an_organization(service))
    recovered = []

    def kill_twice() -> None:
        for pause in (0.2, 2.5):
            time.sleep(1.0)
            frail.kill()
            time.sleep(pause)
            frail.start()
            back = time.monotonic()
            while writers.last_success < back and time.monotonic() < back + 2 * RECOVERY_SECONDS:
                time.sleep(0.05)
            recovered.append(writers.last_success - back)

    writers.during(kill_twice)

    writers.check()
    assert writers.failed
    assert len(writers.answered) > 20
    assert all(0 < seconds < RECOVERY_SECONDS for seconds in recovered), recovered


def test_terminated_connections_lose_nothing(postgres: PostgresServer, opened: Opening) -> None:
    """An administrator may end them at any moment."""
    service = opened(postgres.new_address())
    writers = Insistent(service, an_organization(service))

    def terminate() -> None:
        for _ in range(10):
            time.sleep(0.15)
            postgres.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'reconciler'"
            )

    writers.during(terminate)

    writers.check()
    assert len(writers.answered) > 20


def test_a_database_that_turns_read_only_is_still_read(
    frail: PostgresServer, opened: Opening
) -> None:
    """Writes are refused in words until it can be written to again."""
    service = opened(frail.new_address())
    acme = an_organization(service)
    writable = f"{frail.address()}?options=-cdefault_transaction_read_only%3Doff"

    def turn(setting: str) -> None:
        frail.execute(
            f"ALTER SYSTEM SET default_transaction_read_only = {setting}",
            "SELECT pg_reload_conf()",
            address=writable,
        )
        time.sleep(0.3)

    turn("on")
    try:
        with pytest.raises(StoreReadOnlyError) as caught:
            service.call(create("greet", acme))
        assert service.call(call("ListObjects", acme, organizationId=acme))["objects"]
        assert not service.dispatcher.is_ready()
    finally:
        turn("off")

    assert "SELECT" not in caught.value.problem + caught.value.remedy
    assert service.dispatcher.is_ready()
    assert service.call(create("greet", acme))["id"]


def crowd_in(stack: ExitStack, address: str) -> None:
    """Take every connection that the database has left."""
    with suppress(psycopg.OperationalError):
        while True:
            stack.enter_context(psycopg.connect(address))


def test_a_crowded_database_is_told_of_and_waited_for(
    frail: PostgresServer, opened: Opening, tmp_path: Path
) -> None:
    """A server that has a connection goes on with it; another says why it cannot begin."""
    address = frail.new_address()
    service = opened(address)
    acme = an_organization(service)
    with ExitStack() as stack:
        crowd_in(stack, frail.address())
        with ThreadPoolExecutor(8) as pool:
            requests = [create(f"greet{number}", acme) for number in range(8)]
            made = list(pool.map(service.call, requests))
        with pytest.raises(StoreBusyError) as caught:
            open_postgres(address, seal_key_file=tmp_path / "seal-key")

    assert len(made) == 8
    assert "connections" in caught.value.problem
    assert opened(address).call(create("greet", acme))["id"]


def test_a_duplicate_that_waits_gets_the_first_answer(
    postgres: PostgresServer, opened: Opening
) -> None:
    """Sixteen at once with one key: one effect, one answer, the secret included."""
    address = postgres.new_address()
    services = [opened(address) for _ in range(2)]
    acme = an_organization(services[0])
    project = services[0].call(call("AddProject", acme, name="shop"))["id"]
    barrier = threading.Barrier(16, timeout=20)

    def add(number: int) -> str:
        barrier.wait()
        request = call("AddOIDCApp", acme, "key", projectId=project, name="web")
        return json.dumps(services[number % 2].call(request), sort_keys=True)

    with ThreadPoolExecutor(16) as pool:
        answers = set(pool.map(add, range(16)))

    assert len(answers) == 1
    assert json.loads(answers.pop())["clientSecret"]
    assert verify(services[0].store) == []
