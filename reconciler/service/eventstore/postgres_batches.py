"""Statements that PostgreSQL runs once for many rows, which are bound as one JSON text.

A statement costs the database, and the client, many times what a row costs, so a commit of a
hundred calls has some three statements and not some three hundred. JSON is bound and read several
times faster than one array for each column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reconciler.service.eventstore.sql import Column, Values, on_conflict

MAX_CHARACTERS = 1 << 20  # of one statement's rows, so that neither side needs much memory at once


class Batched(NamedTuple):
    """A statement for many rows.

    Attributes:
        table: Statements of one table are sent in the order in which they were decided; those of
            different tables do not depend on each other.
        columns: Those of a row, in its order.
        is_once: Whether no two rows of one statement may have the same first column: PostgreSQL
            does not change a row twice in one ``ON CONFLICT DO UPDATE``.
        is_last: Whether, of the rows with the same first column, only the last one is needed.
    """

    table: str
    text: str
    columns: tuple[str, ...]
    is_once: bool = False
    is_last: bool = False


Waiting = Sequence[tuple[Batched, Values]]


def inserted(table: str, columns: tuple[str, ...]) -> Batched:
    """Return a statement that adds rows."""
    words = ["INSERT INTO", table, f"({', '.join(columns)})", _rows(table, columns)]
    return Batched(table, " ".join(words), columns)


def upserted(table: str, columns: tuple[str, ...], *, is_last: bool = False) -> Batched:
    """Return a statement that adds rows, or changes those of the same first column."""
    text = inserted(table, columns).text + on_conflict(columns, columns[0])
    return Batched(table, text, columns, is_once=True, is_last=is_last)


def deleted(table: str, *columns: str) -> Batched:
    """Return a statement that removes the rows that have these values in these columns."""
    words = ["DELETE FROM", table, f"WHERE ({', '.join(columns)}) IN ({_rows(table, columns)})"]
    return Batched(table, " ".join(words), columns)


def _rows(table: str, columns: Sequence[str]) -> str:
    listed = ", ".join(columns)
    return " ".join(["SELECT", listed, f"FROM json_populate_recordset(NULL::{table}, %s::json)"])


def batches(waiting: Waiting) -> Iterator[tuple[str, str]]:
    """Yield statements, each with the JSON text of its rows, that write what waits.

    For instance, ``put a1, event, put b1, remove c, put a2`` of objects and events becomes
    ``put [a1, b1]``, ``remove [c]``, ``put [a2]`` and ``add [event]``.
    """
    tables: dict[str, list[tuple[Batched, Values]]] = {}
    for statement, row in waiting:
        tables.setdefault(statement.table, []).append((statement, row))
    for decided in tables.values():
        rows = _last_ones(decided) if decided[0][0].is_last else decided
        for statement, texts in _runs(rows):
            yield statement.text, f"[{','.join(texts)}]"


def _last_ones(rows: Waiting) -> Waiting:
    # A dict keeps the place of a key's first row, and the value of its last.
    return list({row[0]: (statement, row) for statement, row in rows}.values())


def _runs(rows: Waiting) -> Iterator[tuple[Batched, Sequence[str]]]:
    """Yield one statement after the other, each with as many rows as may share it."""
    import orjson  # loading it takes a plan longer than it gains by it

    current, texts, keys, size = rows[0][0], list[str](), set[Column](), 0
    for statement, row in rows:
        is_repeated = statement.is_once and row[0] in keys
        if texts and (statement is not current or is_repeated or size > MAX_CHARACTERS):
            yield current, texts
            texts, keys, size = [], set(), 0
        current = statement
        fields = dict(zip(statement.columns, row, strict=True))
        text = orjson.dumps(fields, default=_as_text).decode()
        texts.append(text)
        keys.add(row[0])
        size += len(text)
    yield current, texts


def _as_text(value: object) -> str:
    """Return bytes as PostgreSQL reads them from a text.

    Raises:
        TypeError: it is another value that JSON does not know.
    """
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    raise TypeError(f"no row holds a {type(value).__name__}")
