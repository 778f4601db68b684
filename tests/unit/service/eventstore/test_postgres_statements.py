"""Rows that wait are written with few statements, and as if each had been written alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.service.eventstore import postgres_statements
from reconciler.service.eventstore.changes import UNKNOWN, Waiting
from reconciler.service.eventstore.postgres_statements import batched, batches
from reconciler.service.eventstore.rows import ObjectRow, OwedRow, Record, SealRow
from tests.rows import each_row

Case = tuple[Any, Any]  # a row as it is left, and as the database has it


def told(table: str, *cases: Case) -> list[tuple[str, list[Any]]]:
    """Return which statements write rows whose first column is their key."""
    texts = batched(table)
    names = {texts.add: "add", texts.put: "put", texts.remove: "remove"}
    waiting = [Waiting((table, str(number)), *case) for number, case in enumerate(cases)]
    return [
        (names[text], [next(iter(row.values())) for row in json.loads(rows)])
        for text, rows in batches(waiting)
    ]


def named(object_id: str, name: str, **changes: Any) -> ObjectRow:
    row = ObjectRow(object_id, "Action", "1", "1", name, name, "{}", "", "", 1, 1, 1, "", "", "{}")
    return row._replace(**changes)


@each_row(
    ("left", "found", "expected"),
    [
        (named("a", "x"), None, [("add", ["a"])]),
        (named("a", "x"), UNKNOWN, [("put", ["a"])]),
        (named("a", "x", version=2), named("a", "x"), [("put", ["a"])]),
        (None, named("a", "x"), [("remove", ["a"])]),
        (None, UNKNOWN, [("remove", ["0"])]),
        (None, None, []),
    ],
)
def test_a_row_is_written_by_what_the_database_has(
    left: Any, found: Any, expected: list[Any]
) -> None:
    """A row that was missing is never put over one that another writer has made meanwhile."""
    assert told("objects", (left, found)) == expected


def test_names_may_change_hands_in_any_order() -> None:
    """Two objects take each other's name; one gives up its name to a new one."""
    cases: list[Case] = [
        (named("a", "y"), named("a", "x")),
        (named("b", "x"), named("b", "y")),
        (None, named("c", "z")),
        (named("d", "z"), None),
    ]

    assert told("objects", *cases) == [("remove", ["a", "b", "c"]), ("add", ["a", "b", "d"])]


def test_what_another_writer_may_have_put_instead_is_told_by_more_than_its_key() -> None:
    """A record by its time, an owed secret by when it was made."""
    record = Record("ci", "k", b"", "{}", None, 0, 7)
    owed = OwedRow("a", "1", 5, "us", "", "", None, 0, 9)
    waiting = [Waiting(("records", "ci", "k"), record, record), Waiting(("owed", "a"), None, owed)]

    (_, gone), (_, new), (_, removed) = batches(waiting)

    assert json.loads(gone) == [{"caller": "ci", "key": "k", "expires_at": 7}]
    assert json.loads(new)[0]["answer"] == "{}"
    assert json.loads(removed) == [{"id": "a", "made_at": 5}]


def test_what_is_in_no_table_is_not_sent() -> None:
    assert list(batches([Waiting(("names", "a"), "1", None)])) == []


def seals(*rows: Any) -> list[Waiting]:
    return [Waiting(("seals", row.id), row, None) for row in rows]


def test_values_reach_the_database_as_they_are() -> None:
    """Bytes in its own notation; letters, numbers beyond 2^53 and nothing at all as JSON."""
    ((_, text),) = batches(seals(SealRow("É\U0001f600\"'\\", b"\x00\xff", 2**63 - 1)))

    assert [tuple(row.values()) for row in json.loads(text)] == [
        ("É\U0001f600\"'\\", "\\x00ff", 2**63 - 1)
    ]


def test_a_value_that_no_column_has_is_a_defect() -> None:
    seal: Any = SealRow("a", b"", 1)

    with pytest.raises(TypeError):
        list(batches(seals(seal._replace(sealed=object()))))


def test_long_rows_are_sent_in_several_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither side has to hold all of a large batch as one text."""
    monkeypatch.setattr(postgres_statements, "MAX_CHARACTERS", 300)

    sent = list(batches(seals(*(SealRow(str(number), b"x" * 60, 1) for number in range(4)))))

    assert [len(json.loads(rows)) for _, rows in sent] == [2, 2]
