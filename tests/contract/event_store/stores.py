"""The stores, and the rows and writes that their tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from reconciler.service.eventstore.port import EventStore, Transaction
from reconciler.service.eventstore.postgres import PostgresEventStore
from reconciler.service.eventstore.rows import (
    Author,
    LeaseRow,
    NewEvent,
    ObjectRow,
    OwedRow,
    Record,
    SealRow,
    StoredEvent,
    StreamAt,
    TokenRow,
)
from reconciler.service.eventstore.sqlite import SqliteEventStore
from reconciler.service.eventstore.sqlite_files import create
from tests.examples import NOON
from tests.memory_store import MemoryEventStore
from tests.postgres_server import PostgresServer

ADDED = NewEvent("action.added", '{"name":"greet"}')


CHANGED = NewEvent("action.changed", '{"name":"hello"}')


US = Author("us", '{"tree":"default"}')


@contextmanager
def a_memory_store(_: Path, now: Callable[[], int]) -> Iterator[EventStore]:
    with closing(MemoryEventStore(now)) as store:
        yield store


@contextmanager
def a_sqlite_store(folder: Path, now: Callable[[], int]) -> Iterator[EventStore]:
    create(folder / "identity.db")
    with closing(SqliteEventStore(folder / "identity.db", now)) as store:
        yield store


@contextmanager
def a_postgres_store(server: PostgresServer, now: Callable[[], int]) -> Iterator[EventStore]:
    with server.empty_store() as address, closing(PostgresEventStore(address, now)) as store:
        yield store


class UndoError(Exception):
    """Leaves a block so that what it did is undone."""


def an_object(object_id: str = "1", name: str = "greet", **changes: Any) -> ObjectRow:
    row = ObjectRow(
        object_id, "Action", "acme", "acme", name, name.casefold(), "{}", "", "", 1, NOON, NOON,
        "us", "", "{}",
    )  # fmt: skip
    return row._replace(**changes)


def an_owed(application: str = "1", seal: str | None = "s", **changes: Any) -> OwedRow:
    row = OwedRow(application, "acme", NOON, "us", "default", "run-1", seal, 0, NOON + 9)
    return row._replace(**changes)


def append(
    tx: Transaction, stream: str, version: int, *events: NewEvent, owner: str = "acme"
) -> Sequence[StoredEvent]:
    return tx.append(StreamAt(owner, stream, version), events, US)


def everything(store: EventStore) -> list[object]:
    """Return all that a store holds, so that two moments can be compared."""
    with store.snapshot() as view:
        return [
            view.read_all(),
            view.heads(),
            view.all_objects(),
            view.record("us", "key"),
            view.seal("s"),
            view.owed_page("acme"),
            view.lease("acme"),
            view.tokens(),
        ]


def write_one_of_each(tx: Transaction) -> None:
    append(tx, "1", 0, ADDED)
    tx.put(an_object())
    tx.put(Record("us", "key", b"digest", "{}", "s", 0, NOON + 1))
    tx.put(SealRow("s", b"sealed", NOON + 1))
    tx.put(an_owed("1"))
    tx.put(LeaseRow("acme", "t", "me", 1, NOON, NOON + 9))
    tx.put(TokenRow("ci", "editor", "", b"hash", NOON, 0, 0))


def write_one_and_then(tx: Transaction, stream: str, version: int) -> None:
    append(tx, "2", 0, ADDED)
    append(tx, stream, version, CHANGED)


def begin_another(tx: Transaction) -> None:
    append(tx, "1", 0, ADDED, owner="globex")


def owe_another_instead(tx: Transaction) -> None:
    tx.put(an_owed("2"))
    tx.remove(an_owed("1"))
    tx.remove(SealRow("s", b"", 0))


def and_fail(write: Callable[[Transaction], None], tx: Transaction) -> None:
    """Leave the block, once what it did is done."""
    write(tx)
    raise UndoError
