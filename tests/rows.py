"""Tables of small cases, each table one test.

pytest takes longer to begin and end a test than most rows of a table take to try, thousands of
times. A test with ``@each_row`` tries every row, and reports each that fails.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import pytest
from _pytest.mark import ParameterSet

Test = Callable[..., None]


def each_row(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Return a decorator like ``pytest.mark.parametrize``, but for one test of all rows.

    Fixtures are the same for all rows: one that a row changes needs ``parametrize``.
    """
    columns = (names,) if isinstance(names, str) else names
    table = [_read(row, len(columns)) for row in rows]
    assert table, "a table without rows would pass"

    def decorate(test: Test) -> Test:
        @wraps(test)
        def all_rows(**given: Any) -> None:
            failures = [*_failures(test, given, columns, table)]
            if failures:
                told = "\n\n".join(f"row {label}: {failure}" for label, failure in failures)
                problem = f"{len(failures)} of {len(table)} rows failed\n\n{told}"
                raise AssertionError(problem) from failures[0][1]

        asked = inspect.signature(test)
        rest = [each for name, each in asked.parameters.items() if name not in columns]
        assert len(rest) == len(asked.parameters) - len(columns), "each column is an argument"
        all_rows.__dict__["__signature__"] = asked.replace(parameters=rest)
        return all_rows

    return decorate


def _read(row: Any, width: int) -> tuple[str, tuple[Any, ...]]:
    """Return how a row is called, and its values."""
    if isinstance(row, ParameterSet):
        assert not row.marks, "a row cannot be marked on its own"
        return str(row.id or row.values), tuple(row.values)
    values = (row,) if width == 1 else tuple(row)
    assert len(values) == width, row
    return repr(values), values


def _failures(
    test: Test,
    given: dict[str, Any],
    columns: tuple[str, ...],
    table: list[tuple[str, tuple[Any, ...]]],
) -> Iterator[tuple[str, BaseException]]:
    for label, values in table:
        try:
            test(**given, **dict(zip(columns, values, strict=True)))
        except (AssertionError, pytest.fail.Exception) as failure:
            yield label, failure
        except BaseException as error:
            error.add_note(f"row {label}")
            raise
