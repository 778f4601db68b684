"""Writing rows of a SQLite store: where a chain goes on, and how much expires with a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import pytest

from reconciler.service.eventstore.errors import StreamConflictError
from reconciler.service.eventstore.rows import Author, NewEvent, Record, SealRow, StreamAt
from reconciler.service.eventstore.sqlite import SqliteEventStore
from reconciler.service.eventstore.sqlite_files import create
from reconciler.service.eventstore.sqlite_tables import MOST_EXPIRED, SqliteTransaction
from tests.examples import NOON

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


def put_records(store: SqliteEventStore, count: int) -> None:
    """Put records that expire one after the other, each with a seal of its own."""
    with store.transaction() as tx:
        for number in range(count):
            tx.put(Record("us", str(number), b"", "{}", str(number), 0, NOON + number))
            tx.put(SealRow(str(number), b"sealed", NOON + number))


def left_at(store: SqliteEventStore, time: int) -> tuple[int, int]:
    """Let expire what has to at a time; return how many records and seals are left."""
    with store.transaction() as tx:
        tx.expire(time)
        found = tx.run("SELECT (SELECT count(*) FROM records), (SELECT count(*) FROM seals)", ())
        records, seals = found.fetchall()[0]
    return int(records or 0), int(seals or 0)


def test_seals_are_looked_through_once_a_minute(store: SqliteEventStore) -> None:
    """To find those of one record takes a look at each, which no other writer should wait for."""
    put_records(store, 10)

    left = [left_at(store, NOON + after) for after in (0, 1, 2, 59_999_999, 60_000_000)]

    assert left == [(9, 9), (8, 9), (7, 9), (0, 9), (0, 0)]


def test_seals_are_looked_through_after_a_clock_was_put_right(store: SqliteEventStore) -> None:
    """Not only once it shows again what it showed before."""
    left_at(store, NOON + 10**15)
    put_records(store, 1)

    assert left_at(store, NOON) == (0, 0)


def test_what_expired_together_goes_with_several_commits(store: SqliteEventStore) -> None:
    """The first write after a quiet day keeps other writers waiting no longer than any other."""
    put_records(store, MOST_EXPIRED + 1)

    first, second = (left_at(store, NOON + after) for after in (10**9, 2 * 10**9))

    assert first == (1, 1)
    assert second == (0, 0)
