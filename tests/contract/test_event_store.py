"""What every event store promises, asked of every event store there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from reconciler.service.eventstore.chain import ORIGIN, event_hash, first_head
from reconciler.service.eventstore.errors import NameTakenError, StreamConflictError
from reconciler.service.eventstore.port import EventStore, Transaction
from reconciler.service.eventstore.postgres import PostgresEventStore
from reconciler.service.eventstore.postgres import create as create_tables
from reconciler.service.eventstore.rows import (
    Author,
    LeaseRow,
    Lookups,
    NameFilter,
    NewEvent,
    ObjectQuery,
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
from tests.memory_store import MemoryEventStore
from tests.postgres_server import PostgresServer

NOON = 1_800_000_000_000_000
ADDED = NewEvent("action.added", '{"name":"greet"}')
CHANGED = NewEvent("action.changed", '{"name":"hello"}')
US = Author("us", '{"tree":"default"}')


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> int:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


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
    address = server.new_address()
    create_tables(address)
    with closing(PostgresEventStore(address, now)) as store:
        yield store


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[EventStore]:
    """Open one empty store of each kind."""
    if request.param == "postgres":
        opening = a_postgres_store(request.getfixturevalue("postgres"), clock)
    else:
        opening = {"memory": a_memory_store, "sqlite": a_sqlite_store}[request.param](
            tmp_path, clock
        )
    with opening as opened:
        yield opened


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
    tx.put_object(an_object())
    tx.put_record(Record("us", "key", b"digest", "{}", "s", 0, NOON + 1))
    tx.put_seal(SealRow("s", b"sealed", NOON + 1))
    tx.put_owed(an_owed("1"))
    tx.put_lease(LeaseRow("acme", "t", "me", 1, NOON, NOON + 9))
    tx.put_token(TokenRow("ci", "editor", "", b"hash", NOON, 0, 0))


def write_one_and_then(tx: Transaction, stream: str, version: int) -> None:
    append(tx, "2", 0, ADDED)
    append(tx, stream, version, CHANGED)


def begin_another(tx: Transaction) -> None:
    append(tx, "1", 0, ADDED, owner="globex")


def owe_another_instead(tx: Transaction) -> None:
    tx.put_owed(an_owed("2"))
    tx.remove_owed(an_owed("1"))
    tx.remove_seal("s")


def and_fail(write: Callable[[Transaction], None], tx: Transaction) -> None:
    """Leave the block, once what it did is done."""
    write(tx)
    raise UndoError


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
        tx.put_object(an_object(name="É e\u0301 \U0001f600 \u202e' ; --"))

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
        tx.put_object(an_object(version=2))
    looked_up = frozenset({"1"})
    for names in (looked_up, frozenset[str]()):
        with store.transaction() as tx:
            tx.prefetch(Lookups(frozenset(), names, frozenset(), 1))
            append(tx, "2", tx.stream_version("2"), ADDED)
            row = tx.get_object("1")
            assert row is not None
            with pytest.raises(StreamConflictError), tx.savepoint():
                append(tx, "1", row.version, CHANGED)
            append(tx, "1", tx.stream_version("1"), CHANGED)
            tx.put_object(row._replace(version=9))

    with store.snapshot() as view:
        assert [event.version for event in view.read_stream("1")] == [1, 2, 3]


def test_an_id_is_never_used_twice(store: EventStore) -> None:
    """Removing an object frees its name, not its stream."""
    with store.transaction() as tx:
        append(tx, "1", 0, ADDED)
        tx.put_object(an_object())
        tx.remove_object("1")

    with pytest.raises(StreamConflictError), store.transaction() as tx:
        append(tx, "1", 0, ADDED)


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
    tx.put_object(an_object("1", "uno", version=2))


def made(tx: Transaction) -> None:
    tx.put_object(an_object("8", "eight", organization="globex", parent="globex"))


def leased(tx: Transaction) -> None:
    tx.put_lease(LeaseRow("acme", "taken", "them", 1, NOON, NOON + 1))


def do_in_vain(tx: Transaction, steps: Sequence[Callable[[Transaction], None]]) -> None:
    append(tx, "1", 1, CHANGED)
    append(tx, "8", 0, ADDED, owner="globex")
    for step in steps:
        step(tx)
    tx.put_record(Record("us", "second", b"digest", "{}", None, 0, NOON + 1))
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
            tx.put_object(an_object("1", "one"))
        tx.put_record(Record("us", "first", b"digest", "{}", None, 0, NOON + 1))
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
    tx.put_object(an_object("9", "nine"))
    tx.put_record(Record("us", "key", b"digest", "{}", None, 0, NOON + 1))


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
    store: EventStore, clock: Clock, step: int
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


def test_the_sequence_is_the_time_where_the_clock_moves_on(store: EventStore, clock: Clock) -> None:
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


def test_a_name_belongs_to_one_object_of_its_kind_and_owner(store: EventStore) -> None:
    """Two writers who both looked first still cannot both have it."""
    with store.transaction() as tx:
        tx.put_object(an_object())
        for other in (
            an_object("2", "greet", kind="Project"),
            an_object("3", "greet", parent="globex", organization="globex"),
            an_object("4", "other"),
        ):
            tx.put_object(other)

        for taken in (an_object("5", "GREET"), an_object("4", "Greet", version=2)):
            with pytest.raises(NameTakenError), tx.savepoint():
                tx.put_object(taken)

    with store.snapshot() as view:
        assert [row.id for row in view.all_objects()] == ["1", "2", "3", "4"]


def test_a_name_is_free_again_after_removal_and_renaming(store: EventStore) -> None:
    """Names are unique among what there is, not among what there ever was."""
    with store.transaction() as tx:
        tx.put_object(an_object("1", "one"))
        tx.put_object(an_object("2", "two"))
        tx.remove_object("1")
        tx.put_object(an_object("2", "three", version=2))
        tx.put_object(an_object("3", "one"))
        tx.put_object(an_object("4", "two"))

    with store.snapshot() as view:
        found = [view.find_object("Action", "acme", name) for name in ("one", "two", "three")]
        assert [row.id if row else None for row in found] == ["3", "4", "2"]
        assert view.get_object("1") is None


def test_an_object_changes_only_its_case(store: EventStore) -> None:
    """Its own name is not taken by itself."""
    with store.transaction() as tx:
        tx.put_object(an_object("1", "greet"))
        tx.put_object(an_object("1", "GREET", version=2))

    with store.snapshot() as view:
        assert [row.name for row in view.all_objects()] == ["GREET"]


def test_objects_of_an_organization_come_in_pages_without_itself(store: EventStore) -> None:
    """Whoever reads page after page sees each object once."""
    with store.transaction() as tx:
        tx.put_object(an_object("acme", "acme", kind="Organization", parent=""))
        for number in range(5):
            tx.put_object(an_object(str(number), f"a{number}"))
        tx.put_object(an_object("7", "a", organization="globex", parent="globex"))

    with store.snapshot() as view:
        first = view.objects_page("acme", limit=3)
        second = view.objects_page("acme", after=first[-1].id, limit=3)
        assert [row.id for row in (*first, *second)] == ["0", "1", "2", "3", "4"]


NAMES = ["Alpha", "alphabet", "ALP%", "a_pha", "Omega", "日本", "50%", "x\\y"]


@pytest.mark.parametrize(
    ("match", "text", "folded", "found"),
    [
        ("equals", "Alpha", False, {"Alpha"}),
        ("equals", "alpha", False, set()),
        ("equals", "alpha", True, {"Alpha"}),
        ("equals", "", False, set()),
        ("starts", "Al", False, {"Alpha"}),
        ("starts", "al", True, {"Alpha", "alphabet", "ALP%"}),
        ("starts", "", True, set(NAMES)),
        ("contains", "%", False, {"ALP%", "50%"}),
        ("contains", "_", False, {"a_pha"}),
        ("contains", "\\", False, {"x\\y"}),
        ("contains", "pha", True, {"Alpha", "alphabet", "a_pha"}),
        ("contains", "", False, set(NAMES)),
        ("ends", "ga", False, {"Omega"}),
        ("ends", "本", False, {"日本"}),
        ("ends", "ALPHA", True, set()),
        ("ends", "", False, set(NAMES)),
    ],
)
def test_names_are_filtered_as_they_are(
    store: EventStore, match: str, text: str, found: set[str], *, folded: bool
) -> None:
    """Signs that databases treat as wildcards are letters like any other."""
    with store.transaction() as tx:
        for number, name in enumerate(NAMES):
            tx.put_object(an_object(str(number), name))

    with store.snapshot() as view:
        query = ObjectQuery("Action", "acme", names=(NameFilter(match, text, folded),))
        total, rows = view.list_objects(query)

    assert {row.name for row in rows} == found
    assert total == len(found)


@pytest.mark.parametrize(
    ("query", "total", "found"),
    [
        (ObjectQuery("Action", "acme"), 4, "0123"),
        (ObjectQuery("Action", "acme", descending=True), 4, "3210"),
        (ObjectQuery("Action", "acme", by_name=True), 4, "3210"),
        (ObjectQuery("Action", "acme", by_name=True, descending=True), 4, "0123"),
        (ObjectQuery("Action", "acme", offset=1, limit=2), 4, "12"),
        (ObjectQuery("Action", "acme", offset=3), 4, "3"),
        (ObjectQuery("Action", "acme", offset=9, limit=2), 4, ""),
        (ObjectQuery("Action", "acme", ids=frozenset({"1", "3", "9"})), 2, "13"),
        (ObjectQuery("Action", "acme", ids=frozenset()), 0, ""),
        (ObjectQuery("Project", "acme"), 0, ""),
        (ObjectQuery("Action", "globex"), 0, ""),
    ],
)
def test_lists_are_filtered_sorted_and_cut(
    store: EventStore, query: ObjectQuery, total: int, found: str
) -> None:
    """The total counts what the filters find, not what the page holds."""
    with store.transaction() as tx:
        for number, name in enumerate("DcBa"):
            tx.put_object(an_object(str(number), name))

    with store.snapshot() as view:
        counted, rows = view.list_objects(query)

    assert (counted, "".join(row.id for row in rows)) == (total, found)


def test_records_and_seals_go_when_their_time_comes(store: EventStore) -> None:
    """A seal stays as long as a record needs it."""
    with store.transaction() as tx:
        tx.put_record(Record("us", "old", b"1", "{}", "s1", 0, NOON))
        tx.put_record(Record("us", "new", b"2", "{}", "s2", 0, NOON + 1))
        tx.put_record(Record("them", "old", b"3", "{}", None, 0, NOON + 1))
        for name in ("s1", "s2"):
            tx.put_seal(SealRow(name, b"sealed", NOON))
        tx.expire(NOON)

        kept = [tx.record(*key) for key in (("us", "old"), ("us", "new"), ("them", "old"))]
        assert [record.digest if record else None for record in kept] == [None, b"2", b"3"]
        assert [tx.seal(name) is None for name in ("s1", "s2")] == [True, False]


def test_a_record_whose_time_has_come_is_written_over(store: EventStore) -> None:
    """The same key may be used again a day later."""
    with store.transaction() as tx:
        for answer in ("1", "2"):
            tx.put_record(Record("us", "key", b"", answer, None, 0, NOON))
        found = tx.record("us", "key")

    assert found is not None
    assert found.answer == "2"


def test_leases_and_tokens_come_back_as_they_were_put(store: EventStore) -> None:
    """Each has one row, under its name."""
    lease = LeaseRow("acme", "t", "me", 2, NOON, NOON + 9)
    token = TokenRow("ci", "editor", '["1"]', b"hash", NOON, 0, NOON)

    with store.transaction() as tx:
        tx.put_lease(lease._replace(fence=1))
        tx.put_lease(lease)
        tx.put_token(token._replace(revoked_at=0))
        tx.put_token(token)
        tx.put_token(token._replace(name="bot", sha256=b"other"))

    with store.snapshot() as view:
        assert view.lease("acme") == lease
        assert view.lease("globex") is None
        assert [row.name for row in view.tokens()] == ["bot", "ci"]
        assert view.token(b"hash") == token
        assert view.token(b"no") is None


def test_every_store_is_one_of_its_own(store: EventStore, tmp_path: Path, clock: Clock) -> None:
    """The instance tells two services apart, and one from its replacement."""
    (tmp_path / "other").mkdir()
    with store.snapshot() as view, a_sqlite_store(tmp_path / "other", clock) as other:
        with other.snapshot() as there:
            assert len({view.meta("instance"), there.meta("instance")}) == 2
        assert len(view.meta("instance")) == 32
    assert list(store.damage()) == []


def test_owed_secrets_are_found_by_application_organization_and_seal(store: EventStore) -> None:
    """Inside the transaction as after it."""
    rows = [an_owed("1"), an_owed("2", "t"), an_owed("3"), an_owed("4", organization="globex")]
    with store.transaction() as tx:
        for row in rows:
            tx.put_owed(row)
        inside = (sorted(tx.owed(["2", "4", "9"])), tx.owed_page("acme"), sorted(tx.owed_in("s")))

    with store.snapshot() as view:
        assert inside == (
            [rows[1], rows[3]], [rows[0], rows[1], rows[2]], [rows[0], rows[2], rows[3]],
        )  # fmt: skip
        assert sorted(view.owed(["2", "4", "9"])) == inside[0]
        assert sorted(view.owed_in("s")) == inside[2]
        assert view.owed_page("acme", after="1", limit=1) == [rows[1]]
        assert view.owed([]) == []


def test_a_newer_secret_is_owed_in_the_place_of_the_first(store: EventStore) -> None:
    """What is removed is the one that was meant, and no newer one."""
    first, newer = an_owed(), an_owed(made_at=NOON + 1)
    with store.transaction() as tx:
        tx.put_owed(first)
        tx.put_owed(newer)
        tx.remove_owed(first)
    with store.snapshot() as view:
        assert view.owed(["1"]) == [newer]

    with store.transaction() as tx:
        tx.remove_owed(newer)
        assert tx.owed(["1"]) == []
        tx.put_owed(first)
    with store.snapshot() as view:
        assert view.owed(["1"]) == [first]


def test_what_is_owed_is_undone_with_its_savepoint(store: EventStore) -> None:
    """A refused call leaves no trace, and takes nothing of the others away."""
    with store.transaction() as tx:
        tx.put_owed(an_owed("1"))
        tx.put_seal(SealRow("s", b"sealed", NOON + 9))
        with pytest.raises(UndoError), tx.savepoint():
            and_fail(owe_another_instead, tx)
        with tx.savepoint():
            tx.put_owed(an_owed("3"))

    with store.snapshot() as view:
        assert [row.id for row in view.owed_page("acme")] == ["1", "3"]
        assert view.seal("s") is not None


def test_a_seal_is_replaced_and_removed(store: EventStore) -> None:
    """Each time for good."""
    with store.transaction() as tx:
        tx.put_seal(SealRow("s", b"three", NOON + 9))
    with store.transaction() as tx:
        tx.put_seal(SealRow("s", b"two", NOON + 9))
        assert tx.seal("s") == SealRow("s", b"two", NOON + 9)
    with store.transaction() as tx:
        tx.remove_seal("s")
        tx.remove_seal("none")
    with store.snapshot() as view:
        assert view.seal("s") is None


def test_owed_secrets_lose_their_seal_when_their_time_comes(store: EventStore) -> None:
    """Although a record needs it, too; the rows stay, and others keep their seal."""
    kept = an_owed("2", "t", expires_at=NOON + 10)
    with store.transaction() as tx:
        tx.put_owed(an_owed("1"))
        tx.put_owed(kept)
        tx.put_record(Record("us", "key", b"digest", "{}", "s", 0, NOON + 99))
        for name in ("s", "t"):
            tx.put_seal(SealRow(name, b"sealed", NOON + 10))
    with store.transaction() as tx:
        tx.expire(NOON + 9)

    with store.snapshot() as view:
        assert view.owed_page("acme") == [an_owed("1", seal=None), kept]
        assert (view.seal("s"), view.seal("t")) == (None, SealRow("t", b"sealed", NOON + 10))


def test_streams_tell_how_long_they_are(store: EventStore) -> None:
    """Inside the transaction as after it."""
    with store.transaction() as tx:
        append(tx, "1", 0, ADDED, CHANGED)
        assert (tx.stream_version("1"), tx.stream_version("2")) == (2, 0)
    with store.snapshot() as view:
        assert (view.stream_version("1"), view.stream_version("2")) == (2, 0)


def test_objects_are_found_by_their_ids(store: EventStore) -> None:
    """Those that are there, in any order."""
    with store.transaction() as tx:
        append(tx, "1", 0, ADDED)
        for number in ("1", "2"):
            tx.put_object(an_object(number, f"greet-{number}"))
        assert len(tx.get_objects(["1", "2", "3"])) == 2
    with store.snapshot() as view:
        assert sorted(view.get_objects(["3", "2"])) == [an_object("2", "greet-2")]
