"""How SQLite finds the pages of lists: never by sorting all that a list holds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.resources.ref import Kind
from reconciler.service.eventstore import sqlite_files
from reconciler.service.eventstore import sqlite_tables as tables
from reconciler.service.eventstore.rows import NameFilter, ObjectQuery, ObjectRow
from reconciler.service.eventstore.sql import Snapshot


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("by_name", [False, True])
def test_a_page_is_read_in_its_order(tmp_path: Path, *, by_name: bool, descending: bool) -> None:
    """A page of a hundred costs the same in a list of a hundred thousand."""
    path = tmp_path / "identity.db"
    sqlite_files.create(path)
    query = ObjectQuery(
        Kind.ACTION, "1", by_name=by_name, descending=descending, offset=100, limit=100
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(tables.PUT_OBJECT, [_row(str(number)) for number in range(101)])
        ran: list[str] = []
        connection.set_trace_callback(ran.append)
        Snapshot(connection.execute, tables.DIALECT).list_objects(query)
        connection.set_trace_callback(None)
        steps = [
            str(step)
            for statement in ran
            for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]

    assert len(steps) == 2
    assert all("USING" in step and "SEARCH" in step for step in steps), steps


def test_a_filter_that_finds_nothing_is_looked_for_once(tmp_path: Path) -> None:
    """The count went through the whole list; a page of nothing would do so again."""
    path = tmp_path / "identity.db"
    sqlite_files.create(path)
    query = ObjectQuery(Kind.ACTION, "1", names=(NameFilter("contains", "x", folded=False),))
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(tables.PUT_OBJECT, [_row(str(number)) for number in range(3)])
        ran: list[str] = []
        connection.set_trace_callback(ran.append)
        found = Snapshot(connection.execute, tables.DIALECT).list_objects(query)

    assert found == (0, [])
    assert [statement.split()[1] for statement in ran] == ["count(*)"]


def _row(name: str) -> ObjectRow:
    return ObjectRow(name, Kind.ACTION, "1", "1", name, name, "{}", "", "", 1, 1, 1, "", "", "{}")
