"""A program that is too old for a store reads it, and writes nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from reconciler.service.eventstore.errors import StoreReadOnlyError
from reconciler.service.eventstore.port import EventStore, Transaction
from reconciler.service.eventstore.postgres import PostgresEventStore
from reconciler.service.eventstore.postgres import create as create_tables
from reconciler.service.eventstore.sqlite import SqliteEventStore
from reconciler.service.eventstore.sqlite_files import create
from reconciler.service.eventstore.writers import WRITERS_VERSION
from tests.contract.event_store.stores import ADDED, CHANGED, UndoError, append, everything
from tests.examples import SetClock
from tests.postgres_server import PostgresServer

NEWER = WRITERS_VERSION + 1
Opening = Callable[[int], EventStore]


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opening]:
    """Open one store as programs of several versions do, at once."""
    clock = SetClock()
    with ExitStack() as stack:
        if request.param == "sqlite":
            path = tmp_path / "identity.db"
            create(path)
            yield lambda version: stack.enter_context(
                closing(SqliteEventStore(path, clock, version))
            )
        else:
            server: PostgresServer = request.getfixturevalue("postgres")
            address = new_store(server)
            yield lambda version: stack.enter_context(
                closing(PostgresEventStore(address, clock, version))
            )


def new_store(server: PostgresServer) -> str:
    """Make a store that no other test uses, since its writers' version is raised."""
    address = server.new_address()
    create_tables(address)
    return address


def write(store: EventStore, stream: str, version: int = 0, owner: str = "acme") -> None:
    with store.transaction() as tx:
        append(tx, stream, version, CHANGED if version else ADDED, owner=owner)


def test_an_older_program_that_runs_is_refused_at_its_next_write(opened: Opening) -> None:
    """It would write what the newer one takes for damage."""
    older = opened(WRITERS_VERSION)
    write(older, "1")
    newer = opened(NEWER)
    write(newer, "1", 1)
    before = everything(newer)

    for late in (older, opened(WRITERS_VERSION)):
        with pytest.raises(StoreReadOnlyError, match=rf"version {NEWER}.* {WRITERS_VERSION}\b"):
            write(late, "2")
        assert everything(late) == before
    write(newer, "2")


def test_programs_of_one_version_write_side_by_side(opened: Opening) -> None:
    one, other = opened(WRITERS_VERSION), opened(WRITERS_VERSION)

    for version, store in enumerate((one, other, one)):
        write(store, "1", version)

    with one.snapshot() as view:
        assert view.stream_version("1") == 3


def undone(tx: Transaction) -> None:
    append(tx, "2", 0, ADDED)
    raise UndoError


def test_a_newer_program_that_wrote_nothing_shuts_nobody_out(opened: Opening) -> None:
    """Neither by looking, nor by a write that was undone; its next write does."""
    older, newer = opened(WRITERS_VERSION), opened(NEWER)
    everything(newer)
    with pytest.raises(UndoError), newer.transaction() as tx:
        undone(tx)

    write(older, "1")
    write(newer, "1", 1)

    with pytest.raises(StoreReadOnlyError):
        write(older, "1", 2)


def test_a_write_that_is_under_way_is_refused_at_its_commit(postgres: PostgresServer) -> None:
    """It began before a newer program wrote to another organization, and did not wait for it."""
    clock, address = SetClock(), new_store(postgres)
    with (
        closing(PostgresEventStore(address, clock, WRITERS_VERSION)) as older,
        closing(PostgresEventStore(address, clock, NEWER)) as newer,
    ):
        with ExitStack() as under_way:
            tx = under_way.enter_context(older.transaction())
            append(tx, "1", 0, ADDED)
            tx.head("acme")
            write(newer, "2", owner="globex")
            with pytest.raises(StoreReadOnlyError, match="newer version"):
                under_way.close()

        with older.snapshot() as view:
            assert [event.stream for event in view.read_all()] == ["2"]
