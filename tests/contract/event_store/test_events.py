"""Events: their order, their chains, their versions and their sequence."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.service.eventstore.errors import StreamConflictError
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import (
    ORIGIN,
    Lookups,
    NewEvent,
    event_hash,
    first_head,
)
from tests.contract.event_store.stores import (
    ADDED,
    CHANGED,
    US,
    a_sqlite_store,
    an_object,
    append,
    everything,
    write_one_and_then,
    write_one_of_each,
)
from tests.examples import NOON, SetClock


def test_events_come_back_as_they_were_appended(store: EventStore) -> None:
    """Order, payload, author and time survive."""
    with store.transaction() as tx:
        stored = append(tx, "1", 0, ADDED, CHANGED)

    with store.snapshot() as view:
        assert list(view.read_stream("1")) == list(stored)
        assert list(view.read_all()) == list(stored)
    assert [event.version for event in stored] == [1, 2]
    assert [(event.type, event.payload) for event in stored] == [ADDED, CHANGED]
    assert {(event.writer, event.context) for event in stored} == {US}
    assert {event.recorded_at for event in stored} == {NOON}
    assert {event.organization for event in stored} == {"acme"}


def test_text_of_every_kind_survives(store: EventStore) -> None:
    """No store repairs, folds or cuts what it is given."""
    odd = NewEvent("action.added", '{"name":"\\u0000 É e\u0301 \U0001f600 \u202e\' \\" ; --"}')

    with store.transaction() as tx:
        append(tx, "1", 0, odd)
        tx.put(an_object(name="É e\u0301 \U0001f600 \u202e' ; --"))

    with store.snapshot() as view:
        assert view.read_stream("1")[0].payload == odd.payload
        assert view.all_objects() == [an_object(name="É e\u0301 \U0001f600 \u202e' ; --")]


@pytest.mark.parametrize("version", [0, 2])
def test_a_writer_who_decided_on_another_version_is_refused(
    store: EventStore, version: int
) -> None:
    """Whoever decided on an old state must decide again; nothing of theirs stays."""
    with store.transaction() as tx:
        append(tx, "1", 0, ADDED)
    before = everything(store)

    with pytest.raises(StreamConflictError), store.transaction() as tx:
        write_one_and_then(tx, "1", version)

    assert everything(store) == before


def test_the_log_and_not_the_row_of_an_object_tells_the_version_of_its_stream(
    store: EventStore,
) -> None:
    """A row that is damaged would leave a gap, and the history of the object with it."""
    with store.transaction() as tx:
        append(tx, "1", 0, ADDED)
        tx.put(an_object(version=2))
    looked_up = frozenset({"1"})
    for names in (looked_up, frozenset[str]()):
        asked = Lookups(frozenset(), frozenset(), names, frozenset(), 1)
        with store.transaction(asked) as tx:
            append(tx, "2", tx.stream_version("2"), ADDED)
            row = tx.get_object("1")
            assert row is not None
            with pytest.raises(StreamConflictError), tx.savepoint():
                append(tx, "1", row.version, CHANGED)
            append(tx, "1", tx.stream_version("1"), CHANGED)
            tx.put(row._replace(version=9))

    with store.snapshot() as view:
        assert [event.version for event in view.read_stream("1")] == [1, 2, 3]


def test_an_id_is_never_used_twice(store: EventStore) -> None:
    """Removing an object frees its name, not its stream."""
    with store.transaction() as tx:
        append(tx, "1", 0, ADDED)
        tx.put(an_object())
        tx.remove(an_object())

    with pytest.raises(StreamConflictError), store.transaction() as tx:
        append(tx, "1", 0, ADDED)


def test_a_transaction_reads_its_own_writes(store: EventStore) -> None:
    """The next call of a batch builds on the one before it."""
    with store.transaction() as tx:
        write_one_of_each(tx)

        assert len(tx.read_stream("1")) == 1
        assert tx.get_object("1") == an_object()
        assert tx.find_object("Action", "acme", "greet") == an_object()
        assert tx.record("us", "key") is not None


@pytest.mark.parametrize("step", [0, -1, -3_600_000_000, 1])
def test_the_sequence_grows_whatever_the_clock_does(
    store: EventStore, clock: SetClock, step: int
) -> None:
    """A clock that stands still or goes back moves the sequence on by one."""
    with store.transaction() as tx:
        for version in range(3):
            append(tx, "1", version, CHANGED)
            clock.time += step

    with store.snapshot() as view:
        events = view.read_all()
    assert [event.sequence for event in events] == [NOON, NOON + 1, NOON + 2]
    assert [event.recorded_at for event in events] == [NOON + step * n for n in range(3)]


def test_the_sequence_is_the_time_where_the_clock_moves_on(
    store: EventStore, clock: SetClock
) -> None:
    """The source document calls it the timestamp of the event."""
    for version in range(2):
        with store.transaction() as tx:
            append(tx, "1", version, CHANGED)
        clock.time += 1_000

    with store.snapshot() as view:
        assert [event.sequence for event in view.read_all()] == [NOON, NOON + 1_000]


def test_each_organization_has_a_chain_of_its_own(store: EventStore) -> None:
    """What others do is no part of one organization's proof."""
    with store.transaction() as tx:
        for version, owner in enumerate(["acme", "globex", "acme"]):
            append(tx, f"{owner}{version}", 0, ADDED, owner=owner)

    with store.snapshot() as view:
        first, other, second = view.read_all()
        assert (first.previous, other.previous, second.previous) == (ORIGIN, ORIGIN, first.hash)
        assert all(event_hash(event) == event.hash for event in (first, other, second))
        assert view.head("acme").hash == second.hash
        assert view.head("acme").events == 2
        assert view.head("nobody") == first_head("nobody")
        assert [head.organization for head in view.heads()] == ["acme", "globex"]


def test_the_log_is_read_in_pages(store: EventStore) -> None:
    """Memory does not grow with the log."""
    with store.transaction() as tx:
        for number in range(5):
            append(tx, str(number), 0, ADDED)
        append(tx, "0", 1, CHANGED)

    with store.snapshot() as view:
        page = view.read_all(limit=4)
        rest = view.read_all(after=page[-1].position, limit=4)
        assert [event.stream for event in (*page, *rest)] == ["0", "1", "2", "3", "4", "0"]
        assert [event.version for event in view.read_stream("0", after=1)] == [2]
        assert [event.version for event in view.read_stream("0", limit=1)] == [1]


def test_every_store_is_one_of_its_own(store: EventStore, tmp_path: Path, clock: SetClock) -> None:
    """The instance tells two services apart, and one from its replacement."""
    (tmp_path / "other").mkdir()
    with store.snapshot() as view, a_sqlite_store(tmp_path / "other", clock) as other:
        with other.snapshot() as there:
            assert len({view.meta("instance"), there.meta("instance")}) == 2
        assert len(view.meta("instance")) == 32
    assert list(store.damage()) == []


def test_streams_tell_how_long_they_are(store: EventStore) -> None:
    """Inside the transaction as after it."""
    with store.transaction() as tx:
        append(tx, "1", 0, ADDED, CHANGED)
        assert (tx.stream_version("1"), tx.stream_version("2")) == (2, 0)
    with store.snapshot() as view:
        assert (view.stream_version("1"), view.stream_version("2")) == (2, 0)
