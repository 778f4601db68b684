"""What a commit on PostgreSQL looks up is found by whole keys, however much there is."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import product
from typing import Any, ClassVar
from weakref import WeakSet

import psycopg
import pytest

from reconciler.service.eventstore import postgres_statements as statements
from reconciler.service.eventstore.errors import StreamConflictError
from reconciler.service.eventstore.postgres import PostgresEventStore, create
from reconciler.service.eventstore.postgres_connection import configure
from reconciler.service.eventstore.postgres_statements import in_postgres
from reconciler.service.eventstore.rows import NameFilter, ObjectQuery
from reconciler.service.eventstore.sql import Snapshot, insert
from reconciler.service.eventstore.tables import OBJECTS
from tests.contract.event_store.stores import an_object
from tests.examples import NOON
from tests.postgres_server import PostgresServer

KEYS = [f"k{number}" for number in range(100)]
FILL = (
    """
    INSERT INTO reconciler_records SELECT 'ci', 'k' || n, '', '{}', NULL, 0, n
    FROM generate_series(1, 6000) AS n
    """,
    """
    INSERT INTO reconciler_objects SELECT n::text, 'Action', 'acme', 'acme', 'a' || n, 'a' || n,
    '{}', '', '', 1, n, n, '', '', '' FROM generate_series(1, 6000) AS n
    """,
)
QUIET = [
    f"ALTER TABLE {table} SET (autovacuum_enabled = false)"
    for table in ("reconciler_records", "reconciler_objects")
]
LOOKUPS = {
    "records": (statements.RECORDS, (["ci"] * len(KEYS), KEYS)),
    "objects": (statements.OBJECTS, (KEYS,)),
    "names": (statements.NAMES, (["acme"] * len(KEYS), KEYS)),
}

ADD = in_postgres(insert(OBJECTS))
FEW = """
    INSERT INTO reconciler_objects SELECT 'f' || n, 'Action', 'globex', 'globex', 'a' || n,
    'a' || n, '{}', '', '', 1, n, n, '', '', '' FROM generate_series(1, 40) AS n
    """

LONG = """
    INSERT INTO reconciler_objects SELECT 'l' || n, 'Application', 'shop', 'acme', 'a' || n,
    'a' || n, repeat('x', 1000000), '', '', 1, n, n, '', '', '' FROM generate_series(0, 59) AS n
    """


@pytest.fixture(
    scope="module",
    params=[(*FILL, "ANALYZE"), FILL, (FEW, "ANALYZE", *FILL)],
    ids=["with statistics", "without statistics", "with old statistics"],
)
def filled(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    """Make a store with many rows, of which the database may know only how many pages they have.

    It is a new one: a store that was emptied has the statistics of what was in it. No test writes
    to it, and the database gathers no statistics of its own accord.
    """
    address = postgres.new_address()
    create(address)
    postgres.execute(*QUIET, address=address)
    postgres.execute(*request.param, address=address)
    return address


@pytest.mark.parametrize("name", LOOKUPS)
def test_no_row_is_read_that_was_not_asked_for(filled: str, name: str) -> None:
    """One token may have made a hundred thousand calls today, one project have as many objects."""
    statement, values = LOOKUPS[name]
    with psycopg.connect(filled) as connection:
        told = connection.execute(b"EXPLAIN ANALYZE " + statement.encode(), values).fetchall()

    plan = "\n".join(line for (line,) in told)
    assert "Rows Removed" not in plan, plan


def test_a_page_is_read_in_the_order_of_its_index(filled: str) -> None:
    """Where statistics are old, the database would sort the whole organization for each page."""
    with explaining(filled) as (view, plans):
        view.page_keys("acme", after="3", limit=100)
        for by_name in (False, True):
            view.list_objects(
                ObjectQuery("Action", "acme", by_name=by_name, offset=100, limit=100), total=6000
            )

    assert len(plans) == 3
    for plan in plans:
        assert "Index Scan" in plan, plan
        assert "->  Sort" not in plan, plan


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("folded", [False, True])
def test_a_whole_name_is_looked_up(filled: str, *, folded: bool, by_name: bool) -> None:
    """With an order to keep, the database would go through the whole organization in that order."""
    name = NameFilter("equals", "a42", folded)
    with explaining(filled) as (view, plans):
        query = ObjectQuery("Action", "acme", names=(name,), by_name=by_name, limit=100)
        found = view.list_objects(query)

    assert found == (1, [("42", 42)])
    assert len(plans) == 1
    (condition,) = (line for line in plans[0].splitlines() if "Index Cond" in line)
    assert "folded = 'a42'" in condition, plans[0]


@contextmanager
def explaining(address: str) -> Iterator[tuple[Snapshot, list[str]]]:
    """Yield a view that finds what the database would do, and where that is kept."""
    plans: list[str] = []
    with psycopg.connect(address, autocommit=True) as connection:
        configure(connection)

        def explained(statement: str, values: Sequence[object]) -> Any:
            text = in_postgres(statement).encode()
            told = connection.execute(b"EXPLAIN " + text, values)
            plans.append("\n".join(line for (line,) in told))
            return connection.execute(text, values)

        yield Snapshot(explained, statements.DIALECT), plans


def test_a_view_keeps_no_long_rows(postgres: PostgresServer) -> None:
    """A caller may name many that it is refused, with an answer that is short."""
    with (
        postgres.empty_store() as address,
        psycopg.connect(address, autocommit=True) as connection,
    ):
        connection.execute(LONG.encode())
        view = statements.View(connection)
        tracemalloc.start()
        try:
            found = sum(view.get_object(f"l{number}") is not None for number in range(60))
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert found == 60
    assert held < 5 << 20


class Watched(psycopg.Cursor[Any]):
    """A cursor that can be asked how much it keeps of what the database sent."""

    living: ClassVar[WeakSet[Watched]] = WeakSet()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.living.add(self)

    @property
    def kept(self) -> int:
        """Bytes of the rows of the last statement."""
        rows = self.pgresult
        if rows is None:
            return 0
        places = product(range(rows.ntuples), range(rows.nfields))
        return sum(len(rows.get_value(*place) or b"") for place in places)


def test_a_view_keeps_nothing_of_long_rows_that_were_fetched(postgres: PostgresServer) -> None:
    """Answers are made while their view is open, and take as much memory again."""
    with (
        postgres.empty_store() as address,
        psycopg.connect(address, autocommit=True, cursor_factory=Watched) as connection,
    ):
        connection.execute(LONG.encode())
        view = statements.View(connection)
        of_many = len(view.get_objects([f"l{number}" for number in range(16)]))
        kept = [sum(cursor.kept for cursor in Watched.living)]
        of_one = view.get_object("l16")
        kept.append(sum(cursor.kept for cursor in Watched.living))

    assert (of_many, of_one is not None) == (16, True)
    assert max(kept) < statements.LONGEST_KNOWN


def test_what_is_prepared_goes_with_a_transaction_that_fails(postgres: PostgresServer) -> None:
    """The database skips what follows a failure in a pipeline, also what would be prepared there.

    A statement that was run five times is prepared when it is run again.
    """
    with (
        postgres.empty_store() as address,
        psycopg.connect(address, autocommit=True) as other,
        closing(PostgresEventStore(address, lambda: NOON)) as store,
    ):
        for number in range(40):
            row = an_object(f"mine-{number}", f"name-{number}")
            taken = row._replace(id=f"theirs-{number}")
            is_late = number in {5, 11, 18, 27}
            fails = pytest.raises(StreamConflictError) if is_late else nullcontext()
            with fails, store.transaction() as tx:
                tx.put(row)
                if is_late:
                    other.execute(ADD, taken)
            with store.snapshot() as view:
                found = view.find_object(row.kind, row.parent, row.folded)
            assert found == (taken if is_late else row)
        with store._connections.begun(statements.reading) as connection:
            prepared = connection.execute("SELECT statement FROM pg_prepared_statements").fetchall()

    assert any("reconciler_objects" in text for (text,) in prepared)


@pytest.mark.parametrize("writes", [False, True])
def test_a_connection_whose_prepared_statements_were_lost_is_given_up(
    postgres: PostgresServer, *, writes: bool
) -> None:
    """They may be lost without a word: a pooler gave the session to another client, perhaps."""
    with (
        postgres.empty_store() as address,
        closing(PostgresEventStore(address, lambda: NOON)) as store,
    ):
        for number in range(8):
            if number == 7:
                with store._connections.begun(lambda connection: connection) as connection:
                    connection.pgconn.exec_(b"DISCARD ALL")
            with store.transaction() if writes else store.snapshot() as view:
                found = view.get_object("1")
            assert found is None
