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
    query = ObjectQuery(
        Kind.ACTION, "1", by_name=by_name, descending=descending, offset=100, limit=100
    )

    found, steps = listed(tmp_path, query)

    assert found == (101, ["99"] if not descending else ["0"])
    assert all("USING" in step and "SEARCH" in step for step in steps), steps


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("folded", [False, True])
def test_a_whole_name_is_looked_up(tmp_path: Path, *, folded: bool, by_name: bool) -> None:
    """With or without case: it took 15 times as long in an organization of a hundred thousand."""
    name = NameFilter("equals", "42", folded)

    found, steps = listed(tmp_path, ObjectQuery(Kind.ACTION, "1", names=(name,), by_name=by_name))

    assert found == (1, ["42"])
    assert all("(parent=? AND kind=? AND folded=?)" in step for step in steps), steps


@pytest.mark.parametrize(
    ("text", "folded", "found"), [("Ab", False, 1), ("ab", False, 0), ("ab", True, 1)]
)
def test_a_whole_name_has_its_case(tmp_path: Path, text: str, *, folded: bool, found: int) -> None:
    query = ObjectQuery(Kind.ACTION, "1", names=(NameFilter("equals", text, folded),))

    assert listed(tmp_path, query, "Ab")[0][0] == found


def listed(
    folder: Path, query: ObjectQuery, *names: str
) -> tuple[tuple[int, list[str]], list[str]]:
    """Return what a query finds among 101 objects and those named, and how SQLite looks for it."""
    path = folder / "identity.db"
    sqlite_files.create(path)
    rows = [_row(name) for name in (*map(str, range(101)), *names)]
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(tables.PUT["objects"], rows)
        ran: list[str] = []
        connection.set_trace_callback(ran.append)
        total, keys = Snapshot(connection.execute, tables.DIALECT).list_objects(query)
        connection.set_trace_callback(None)
        plans = (connection.execute(f"EXPLAIN QUERY PLAN {statement}") for statement in ran)
        steps = [str(step) for plan in plans for *_, step in plan]
    assert len(ran) == (2 if keys and not query.names else 1)
    return (total, [name for name, _ in keys]), steps


def test_a_filter_that_finds_nothing_is_looked_for_once(tmp_path: Path) -> None:
    """The count went through the whole list; a page of nothing would do so again."""
    path = tmp_path / "identity.db"
    sqlite_files.create(path)
    query = ObjectQuery(Kind.ACTION, "1", names=(NameFilter("contains", "x", folded=False),))
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(tables.PUT["objects"], [_row(str(number)) for number in range(3)])
        ran: list[str] = []
        connection.set_trace_callback(ran.append)
        found = Snapshot(connection.execute, tables.DIALECT).list_objects(query)

    assert found == (0, [])
    assert [statement.split()[1] for statement in ran] == ["count(*)"]


def _row(name: str) -> ObjectRow:
    folded = name.lower()
    return ObjectRow(name, Kind.ACTION, "1", "1", name, folded, "{}", "", "", 1, 1, 1, "", "", "{}")
