"""Races on one PostgreSQL, each arranged so that it is lost or won for certain."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from reconciler.resources.secret import Secret
from reconciler.service.build import IdentityService, open_postgres
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore.errors import ConflictError, StoreConflictError
from reconciler.service.eventstore.postgres_transaction import SENT_AT_ONCE
from reconciler.service.eventstore.rows import NO_LOOKUPS, Lookups, Record, SealRow, TokenRow
from reconciler.service.operations.callers import all_tokens, make_token, revoke_token
from reconciler.service.operations.dispatch import Incoming
from reconciler.service.projections.maintenance import rebuild, verify
from tests.faults.writers import call, create
from tests.memory_store import MemoryEventStore, new_key
from tests.postgres_server import PostgresServer

HOUR = 3_600_000_000
Opening = Callable[..., IdentityService]


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    """Return the address of an empty database."""
    return postgres.new_address()


@pytest.fixture
def opened(address: str, tmp_path: Path) -> Iterator[Opening]:
    """Open services over the same database; they are closed in the end."""
    with ExitStack() as stack:

        def open_one(**options: Any) -> IdentityService:
            key = tmp_path / "seal-key"
            service = open_postgres(address, seal_key_file=key, create=True, **options)
            return stack.enter_context(closing(service))

        yield open_one


def an_organization(service: IdentityService, name: str = "acme") -> str:
    return str(service.call(call("AddOrg", name=name))["id"])


def a_clock(offset: int) -> Callable[[], int]:
    return lambda: time.time_ns() // 1000 + offset


def test_a_clock_that_is_an_hour_ahead_disturbs_nobody(opened: Opening) -> None:
    """The other server's sequences go on from there, one by one."""
    early, late = opened(now=a_clock(0)), opened(now=a_clock(HOUR))
    acme = an_organization(early)

    sequences = [
        int(service.call(create(f"a{number}", acme))["details"]["sequence"])
        for number, service in enumerate([early, late, early, early, late, early])
    ]

    assert sequences == sorted(set(sequences))
    assert verify(early.store) == []


def test_positions_grow_where_numbers_are_handed_out_in_blocks(
    address: str, opened: Opening
) -> None:
    """Some databases give each connection a block of a sequence's numbers."""
    services = [opened(), opened()]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER SEQUENCE reconciler_positions CACHE 50")
    owners = [an_organization(services[0], name) for name in ("acme", "globex")]

    for number in range(40):
        services[number % 2].call(create(f"a{number}", owners[number // 2 % 2]))

    assert verify(services[0].store) == []


def test_batches_that_lock_each_other_out_are_both_carried_out(opened: Opening) -> None:
    """The database ends one of two that wait for each other; it is carried out again."""
    services = [opened(), opened()]
    owners = [an_organization(services[0], name) for name in ("acme", "globex")]
    barrier = threading.Barrier(2, timeout=20)

    def write(number: int) -> list[bool]:
        mine = owners if number else owners[::-1]
        calls = [create(f"w{number}n{turn}", mine[turn // 40]) for turn in range(80)]
        outcome = []
        for turn in range(3):
            barrier.wait()
            renamed = [create(f"{turn}{one.fields['name']}", one.organization) for one in calls]
            outcome += [isinstance(one, dict) for one in services[number].call_many(renamed)]
        return outcome

    with ThreadPoolExecutor(2) as pool:
        outcomes = [done for outcome in pool.map(write, range(2)) for done in outcome]

    assert outcomes == [True] * 480
    assert verify(services[0].store) == []


def test_a_store_is_rebuilt_while_others_write(opened: Opening) -> None:
    """Writers wait for the rebuild, and nothing of theirs is lost to it."""
    service, other = opened(), opened()
    owners = [an_organization(service, f"o{number}") for number in range(3)]
    stop = threading.Event()

    def write(number: int) -> int:
        count = 0
        while not stop.is_set():
            count += 1
            name = f"w{number}n{count}"
            other.call(create(name, owners[count % 3]))
            if count % 10 == 0:
                an_organization(other, name)
        return count

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, number) for number in range(4)]
        try:
            for _ in range(5):
                time.sleep(0.1)
                rebuild(service.store)
        finally:
            stop.set()
        written = sum(writer.result(timeout=20) for writer in writing)

    assert written > 20
    assert verify(service.store) == []


def test_who_is_taken_over_from_writes_nothing_after_that(opened: Opening) -> None:
    """A writer that holds a lease keeps it for as long as its transaction lasts."""
    service, other = opened(), opened()
    acme = an_organization(service)
    lease: dict[str, Any] = {"organization_": "acme", "holder": "me", "seconds": 60}
    first = service.call(call("AcquireLease", **lease))
    taken = threading.Event()

    def take_over() -> str:
        answer = other.call(call("AcquireLease", **lease, insteadOf=1))
        taken.set()
        return str(answer["fence"])

    with ThreadPoolExecutor(1) as pool:
        with service.store.transaction() as tx:
            assert tx.lease("acme") is not None  # as a write under the lease does first
            taking = pool.submit(take_over)
            assert not taken.wait(0.3)
        assert taking.result(timeout=5) == "2"
    late = create("greet", acme)
    with pytest.raises(Refusal) as caught:
        service.call(type(late)(late.operation, late.fields, caller=late.caller,
                                organization=acme, lease=first["lease"]))  # fmt: skip

    assert caught.value.reason == "lease.lost"


def test_two_tokens_of_one_name_are_not_both_made(opened: Opening) -> None:
    """Whoever was printed a token can use it."""
    services = [opened(), opened()]
    barrier = threading.Barrier(8, timeout=20)

    def make(number: int) -> Secret | None:
        barrier.wait()
        row = TokenRow("ci", "viewer", "", b"", 1, 0, 0)
        return make_token(services[number % 2].store, row, lambda count: bytes([number] * count))

    with ThreadPoolExecutor(8) as pool:
        made = [token for token in pool.map(make, range(8)) if token]

    assert len(made) == 1
    assert len(all_tokens(services[0].store)) == 1


def test_an_organization_of_a_name_is_made_once(opened: Opening) -> None:
    """No lock keeps its name free: who loses at the commit tries again, and finds it taken."""
    services = [opened(), opened()]
    barrier = threading.Barrier(8, timeout=20)

    def add(number: int) -> str:
        barrier.wait()
        try:
            return str(services[number % 2].call(call("AddOrg", name="Acme"))["id"])
        except Refusal as refusal:
            return refusal.reason

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(add, range(8)))

    assert told.count("name.taken") == 7, told
    assert verify(services[0].store) == []


class AlwaysLate(MemoryEventStore):
    """A store in which somebody else is always faster."""

    tries = 0

    @contextmanager
    def transaction(self, asked: Lookups = NO_LOOKUPS) -> Iterator[MemoryEventStore]:
        """Let the block do what it wants, and undo it."""
        with suppress(UndoneError), super().transaction(asked) as tx:
            yield tx
            raise UndoneError
        self.tries += 1
        raise StoreConflictError("others were faster", "Try again.")


class UndoneError(Exception):
    """Leaves a block so that what it did is undone."""


def test_a_commit_that_loses_every_race_is_refused_in_words() -> None:
    """It is not tried for ever, and nobody is told that it was done."""
    store = AlwaysLate(a_clock(0))
    service = IdentityService(store, new_key(), a_clock(0))

    answers = service.call_many([call("AddOrg", name=name) for name in ("acme", "globex")])

    assert [isinstance(answer, Refusal) and answer.code for answer in answers] == [Code.ABORTED] * 2
    assert 1 < store.tries < 10


def test_many_more_rows_than_are_sent_at_once_are_one_commit(opened: Opening) -> None:
    """A call that is refused among thousands is the only one that leaves no trace."""
    service = opened()
    acme = an_organization(service)
    calls = [create(f"a{number}", acme, f"k{number}") for number in range(1500)]
    calls.insert(1200, create("A7", acme, "taken"))

    answers = service.call_many(calls)

    refused = [answer for answer in answers if isinstance(answer, Refusal)]
    assert [refusal.reason for refusal in refused] == ["name.taken"]
    with service.store.snapshot() as view:
        assert view.head(acme).events == 1501
    assert verify(service.store) == []


def a_record(digest: bytes = b"") -> Record:
    return Record("ci", "k", digest, "{}", None, 0, 2**62)


def test_a_conflict_of_rows_that_are_sent_before_a_savepoint_loses_the_whole_race(
    opened: Opening,
) -> None:
    """There is nothing to go back to: tried again within the transaction, it fails otherwise."""
    service, other = opened(), opened()

    def write() -> None:
        with service.store.transaction() as tx:
            tx.put(a_record())
            for number in range(SENT_AT_ONCE):
                tx.put(SealRow(str(number), b"", 1))
            with other.store.transaction() as faster:
                faster.put(a_record(b"other"))
            with tx.savepoint():
                tx.meta("instance")
            pytest.fail("the read before this waits for the rows")

    with pytest.raises(ConflictError):
        write()

    with service.store.snapshot() as view:
        assert view.record("ci", "k") == a_record(b"other")
        assert view.seal("0") is None


def test_what_a_database_says_of_rows_is_in_no_log(
    opened: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows may be refused after the transaction failed for another reason. They quote callers."""
    first, second = opened(), opened()
    undone = UndoneError()

    def lose() -> None:
        with first.store.transaction() as tx:
            tx.put(a_record())
            with second.store.transaction() as other:
                other.put(a_record())
            for number in range(SENT_AT_ONCE):
                tx.put(SealRow(str(number), b"", 1))
            with tx.savepoint():  # before it, they are sent
                raise undone

    with pytest.raises(UndoneError):
        lose()

    assert caplog.records == []


def test_an_object_is_never_older_than_a_record_that_is_looked_up_again(opened: Opening) -> None:
    """A retry would find the old secret in it, and be told that the new one is gone."""
    service, other = opened(), opened()
    acme = an_organization(service)
    made = str(service.call(create("greet", acme))["id"])
    lookups = Lookups(frozenset(), frozenset({("ci", "k")}), frozenset({made}), frozenset(), 1)

    with service.store.transaction(lookups) as tx:
        assert tx.record("ci", "k") is None
        with other.store.transaction() as faster:
            row = faster.get_object(made)
            assert row is not None
            faster.put(row._replace(version=8))
            faster.put(a_record())
        assert tx.record("ci", "k") is not None
        changed = tx.get_object(made)

    assert changed is not None
    assert changed.version == 8


def test_a_token_that_is_revoked_while_a_write_waits_for_a_lock_writes_nothing(
    opened: Opening, address: str
) -> None:
    """It was valid when the write was let in."""
    service, other = opened(), opened()
    acme = an_organization(service)
    row = TokenRow("ci", "editor", "", b"", service.now(), 0, 0)
    token = make_token(service.store, row, secrets.token_bytes)
    assert token is not None
    headers = {"authorization": [f"Bearer {token.reveal()}"]}
    late = Incoming("AddProject", {"name": "shop"}, {**headers, "x-service-orgid": [acme]})

    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(address) as holder:
            holder.execute("SELECT * FROM reconciler_heads FOR UPDATE")
            writing = pool.submit(service.dispatcher.receive, [late])
            with pytest.raises(TimeoutError):
                writing.result(timeout=0.5)
            assert revoke_token(other.store, "ci", other.now())
        (received,) = writing.result(timeout=10)

    assert isinstance(received.answer, Refusal)
    assert received.answer.reason == "token.revoked"
