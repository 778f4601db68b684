"""A test of a table notices every row that fails."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from tests.rows import each_row


@each_row("divisor", [1, 2, 7])
@each_row(("number", "rest"), [(6, 0), pytest.param(7, 1, id="seven")])
def of_numbers(number: int, divisor: int, rest: int, *, kept: list[Any]) -> None:
    kept.append((number, divisor))
    assert number % divisor == rest


def test_each_row_of_each_table_is_tried_and_each_that_fails_is_reported() -> None:
    """By its values or by its name."""
    kept: list[Any] = []

    with pytest.raises(AssertionError, match="2 of 3 rows") as caught:
        of_numbers(kept=kept)

    assert kept == [(6, 1), (7, 1), (6, 2), (7, 2), (6, 7), (7, 7)]
    assert re.findall(r"row (.*?): ", str(caught.value)) == [
        "(1,)", "seven", "(7,)", "(6, 0)", "seven",
    ]  # fmt: skip
    assert list(inspect.signature(of_numbers).parameters) == ["kept"]


def test_a_row_that_raises_nothing_where_it_should_is_reported() -> None:
    @each_row("text", ["1", "x"])
    def all_refused(text: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(text)

    with pytest.raises(AssertionError, match="1 of 2 rows"):
        all_refused()


def test_an_error_says_in_which_row_it_was_raised() -> None:
    @each_row("text", ["1", "x"])
    def all_read(text: str) -> None:
        int(text)

    with pytest.raises(ValueError, match="invalid literal") as caught:
        all_read()
    assert caught.value.__notes__ == ["row ('x',)"]


def test_a_table_is_not_empty_and_no_row_is_marked() -> None:
    """Neither would be tried."""
    with pytest.raises(AssertionError, match="without rows"):
        each_row("x", [])
    with pytest.raises(AssertionError, match="marked"):
        each_row("x", [pytest.param(1, marks=pytest.mark.slow)])
