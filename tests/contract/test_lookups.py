"""What a commit on PostgreSQL looks up is found by whole keys, however much there is."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from reconciler.service.eventstore import postgres_statements as statements
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
LOOKUPS = {
    "records": (statements.RECORDS, (["ci"] * len(KEYS), KEYS)),
    "objects": (statements.OBJECTS, (KEYS,)),
    "names": (statements.NAMES, (["acme"] * len(KEYS), KEYS)),
}


@pytest.fixture(params=["ANALYZE", "SELECT 1"], ids=["with statistics", "without statistics"])
def filled(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """Make a store with many rows, of which the database may know only how many pages they have."""
    with postgres.empty_store() as address:
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in (*FILL, request.param):
                connection.execute(statement.encode())
        yield address


@pytest.mark.parametrize("name", LOOKUPS)
def test_no_row_is_read_that_was_not_asked_for(filled: str, name: str) -> None:
    """One token may have made a hundred thousand calls today, one project have as many objects."""
    statement, values = LOOKUPS[name]
    with psycopg.connect(filled) as connection:
        told = connection.execute(b"EXPLAIN ANALYZE " + statement.encode(), values).fetchall()

    plan = "\n".join(line for (line,) in told)
    assert "Rows Removed" not in plan, plan
