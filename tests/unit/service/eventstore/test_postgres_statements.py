"""Rows that wait are written with few statements, and as if each had been written alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.service.eventstore import postgres_statements
from reconciler.service.eventstore.postgres_statements import batches, deleted, inserted, upserted
from reconciler.service.eventstore.sql import Values
from tests.rows import each_row

ADD = inserted("log", ("n", "hash"))
PUT = upserted("things", ("id", "name"))
REMOVE = deleted("things", "id")
TIP = upserted("heads", ("id", "at"), is_last=True)
NAMES = {ADD.text: "add", PUT.text: "put", REMOVE.text: "remove", TIP.text: "tip"}


def told(*waiting: tuple[Any, tuple[Any, ...]]) -> list[tuple[str, list[Any]]]:
    return [
        (NAMES[text], [next(iter(row.values())) for row in json.loads(rows)])
        for text, rows in batches(waiting)
    ]


@each_row(
    ("waiting", "expected"),
    [
        ([], []),
        (
            [(PUT, ("a", "x")), (ADD, (1, b"")), (PUT, ("b", "y"))],
            [("put", ["a", "b"]), ("add", [1])],
        ),
        (
            [(PUT, ("a", "x")), (REMOVE, ("a",)), (PUT, ("b", "x"))],
            [("put", ["a"]), ("remove", ["a"]), ("put", ["b"])],
        ),
        (
            [(PUT, ("a", "x")), (PUT, ("b", "y")), (PUT, ("a", "z")), (PUT, ("c", "x"))],
            [("put", ["a", "b"]), ("put", ["a", "c"])],
        ),
        ([(ADD, (1, b"")), (ADD, (1, b""))], [("add", [1, 1])]),
        ([(REMOVE, ("a",)), (REMOVE, ("a",))], [("remove", ["a", "a"])]),
    ],
)
def test_rows_share_a_statement_where_the_order_allows_it(
    waiting: list[Any], expected: list[Any]
) -> None:
    """PostgreSQL changes no row twice in one statement, and a name is free only after its row."""
    assert told(*waiting) == expected


def test_of_heads_only_the_last_is_written() -> None:
    """A chain that is moved on a hundred times in one commit has one end."""
    waiting = [(TIP, ("a", 1)), (TIP, ("b", 2)), (TIP, ("a", 3))]

    ((text, rows),) = batches(waiting)

    assert text == TIP.text
    assert json.loads(rows) == [{"id": "a", "at": 3}, {"id": "b", "at": 2}]


def test_values_reach_the_database_as_they_are() -> None:
    """Bytes in its own notation; letters, numbers beyond 2^53 and nothing at all as JSON."""
    rows: list[Values] = [(2**63 - 1, b"\x00\xff"), (None, "É\U0001f600\"'\\")]

    ((_, text),) = batches([(ADD, row) for row in rows])

    assert [tuple(row.values()) for row in json.loads(text)] == [
        (2**63 - 1, "\\x00ff"), rows[1],
    ]  # fmt: skip


def test_a_value_that_no_column_has_is_a_defect() -> None:
    row: Any = (1, object())

    with pytest.raises(TypeError):
        list(batches([(ADD, row)]))


def test_long_rows_are_sent_in_several_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither side has to hold all of a large batch as one text."""
    monkeypatch.setattr(postgres_statements, "MAX_CHARACTERS", 100)

    sent = list(batches([(PUT, (str(number), "x" * 60)) for number in range(4)]))

    assert [len(json.loads(rows)) for _, rows in sent] == [2, 2]
