"""Writing rows of a SQLite store: a chain goes on from where it really ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import pytest

from reconciler.service.eventstore.errors import StreamConflictError
from reconciler.service.eventstore.rows import Author, NewEvent, StreamAt
from reconciler.service.eventstore.sqlite import SqliteEventStore
from reconciler.service.eventstore.sqlite_files import create
from reconciler.service.eventstore.sqlite_tables import SqliteTransaction

ADDED = NewEvent("action.added", "{}")
US = Author("us", "")
Block = AbstractContextManager[None]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteEventStore]:
    """Return an empty store."""
    create(tmp_path / "identity.db")
    with closing(SqliteEventStore(tmp_path / "identity.db", lambda: 1)) as store:
        yield store


def append(tx: SqliteTransaction, stream: str, *, owner: str = "acme") -> None:
    tx.append(StreamAt(owner, stream, 0), (ADDED,), US)


def append_and_fail(tx: SqliteTransaction, stream: str) -> None:
    append(tx, stream)
    raise KeyError


def undone(tx: SqliteTransaction) -> Block:
    return tx.savepoint()


def kept(_: SqliteTransaction) -> Block:
    return nullcontext()


@pytest.mark.parametrize("block", [undone, kept])
@pytest.mark.parametrize("owner", ["acme", "globex"])
def test_a_chain_goes_on_after_an_id_that_was_in_use(
    store: SqliteEventStore, block: Callable[[SqliteTransaction], Block], owner: str
) -> None:
    """As if it had not been tried, also where it would have been the first of its chain."""
    with store.transaction() as tx:
        append(tx, "1")
    with store.transaction() as tx:
        with pytest.raises(StreamConflictError), block(tx):
            append(tx, "1", owner=owner)
        append(tx, "2")

    with store.snapshot() as view:
        first, second = view.read_all()
        assert second.previous == first.hash
        assert view.heads() == [("acme", second.sequence, 2, second.hash)]


def test_a_chain_goes_on_after_a_block_that_was_undone(store: SqliteEventStore) -> None:
    """Also in the same transaction, which knows where the chain ended in the block."""
    with store.transaction() as tx:
        append(tx, "1")
        with pytest.raises(KeyError), tx.savepoint():
            append_and_fail(tx, "2")
        append(tx, "3")

    with store.snapshot() as view:
        assert [event.stream for event in view.read_all()] == ["1", "3"]
        assert view.read_all()[1].previous == view.read_all()[0].hash
