"""What fails in a transaction is undone: all of it, or one savepoint and no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import pytest

from reconciler.service.eventstore.errors import StreamConflictError
from reconciler.service.eventstore.port import EventStore, Transaction
from reconciler.service.eventstore.rows import (
    ORIGIN,
    LeaseRow,
    Record,
)
from tests.contract.event_store.stores import (
    ADDED,
    CHANGED,
    UndoError,
    an_object,
    and_fail,
    append,
    begin_another,
    everything,
    write_one_of_each,
)
from tests.examples import NOON


def test_an_exception_undoes_the_whole_transaction(store: EventStore) -> None:
    """Events, objects and everything else commit together or not at all."""
    before = everything(store)

    with pytest.raises(UndoError), store.transaction() as tx:
        and_fail(write_one_of_each, tx)

    assert everything(store) == before


def test_an_exception_undoes_one_savepoint_and_no_other(store: EventStore) -> None:
    """A refused call among a hundred leaves no trace, and the others stand."""
    with store.transaction() as tx:
        with tx.savepoint():
            append(tx, "1", 0, ADDED)
        between = (tx.head("acme"), list(tx.read_all()))
        with pytest.raises(UndoError), tx.savepoint():
            and_fail(write_more, tx)
        assert list(tx.read_all()) == between[1]
        assert tx.get_object("9") is None
        with tx.savepoint():
            append(tx, "1", 1, CHANGED)

    with store.snapshot() as view:
        assert [event.type for event in view.read_all()] == ["action.added", "action.changed"]
        chain = view.read_all()
        assert chain[1].previous == chain[0].hash
        assert [head.organization for head in view.heads()] == ["acme"]
        assert view.record("us", "key") is None


def test_a_stream_goes_on_within_a_savepoint_and_after_it(store: EventStore) -> None:
    with store.transaction() as tx:
        with tx.savepoint():
            append(tx, "1", 0, ADDED)
        with tx.savepoint():
            append(tx, "1", 1, CHANGED)
            append(tx, "1", 2, CHANGED)
            with pytest.raises(StreamConflictError):
                append(tx, "1", 2, CHANGED)
        append(tx, "1", 3, CHANGED)

    with store.snapshot() as view:
        assert [event.version for event in view.read_stream("1")] == [1, 2, 3, 4]


def seen(tx: Transaction) -> None:
    tx.read_all()


def changed(tx: Transaction) -> None:
    tx.put(an_object("1", "uno", version=2))


def made(tx: Transaction) -> None:
    tx.put(an_object("8", "eight", organization="globex", parent="globex"))


def leased(tx: Transaction) -> None:
    tx.put(LeaseRow("acme", "taken", "them", 1, NOON, NOON + 1))


def do_in_vain(tx: Transaction, steps: Sequence[Callable[[Transaction], None]]) -> None:
    append(tx, "1", 1, CHANGED)
    append(tx, "8", 0, ADDED, owner="globex")
    for step in steps:
        step(tx)
    tx.put(Record("us", "second", b"digest", "{}", None, 0, NOON + 1))
    raise UndoError


@pytest.mark.parametrize(
    "steps",
    list(permutations((seen, changed, made, leased))),
    ids=lambda s: [f.__name__ for f in s],
)
def test_whatever_was_done_in_a_block_in_whatever_order_it_is_undone_and_what_waited_stands(
    store: EventStore, steps: Sequence[Callable[[Transaction], None]]
) -> None:
    """Some of it is with the database by then and some of it is not."""
    with store.transaction() as tx:
        with tx.savepoint():
            append(tx, "1", 0, ADDED)
            tx.put(an_object("1", "one"))
        tx.put(Record("us", "first", b"digest", "{}", None, 0, NOON + 1))
        with pytest.raises(UndoError), tx.savepoint():
            do_in_vain(tx, steps)
        with tx.savepoint():
            append(tx, "1", 1, CHANGED)

    with store.snapshot() as view:
        chain = view.read_all()
        assert [(event.stream, event.version) for event in chain] == [("1", 1), ("1", 2)]
        assert chain[1].previous == chain[0].hash
        assert [head.organization for head in view.heads()] == ["acme"]
        assert [row.name for row in view.all_objects()] == ["one"]
        assert view.lease("acme") is None
        assert (view.record("us", "first") is None, view.record("us", "second")) == (False, None)


def write_more(tx: Transaction) -> None:
    append(tx, "9", 0, ADDED)
    append(tx, "10", 0, ADDED, owner="globex")
    tx.put(an_object("9", "nine"))
    tx.put(Record("us", "key", b"digest", "{}", None, 0, NOON + 1))


def test_an_organization_that_was_undone_can_be_begun_again(store: EventStore) -> None:
    """The first head of a chain is undone with its savepoint, too."""
    with store.transaction() as tx:
        with pytest.raises(UndoError), tx.savepoint():
            and_fail(begin_another, tx)
        with tx.savepoint():
            append(tx, "2", 0, ADDED, owner="globex")

    with store.snapshot() as view:
        (event,) = view.read_all()
        assert (event.stream, event.previous) == ("2", ORIGIN)
        assert view.head("globex").events == 1
