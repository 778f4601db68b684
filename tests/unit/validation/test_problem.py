"""Faults of values: their weight, and texts cut to fit into a sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.diagnostics import Severity, SourceLocation, error
from reconciler.validation.problem import MAX_SHOWN, Problem, cut, doubtful, noteworthy, wrong
from tests.builders import WEB

PLACE = SourceLocation("a.yaml", 2, 3)


@pytest.mark.parametrize(
    ("make", "severity"),
    [
        (wrong, Severity.ERROR),
        (doubtful, Severity.WARNING),
        (noteworthy, Severity.NOTE),
    ],
)
def test_a_problem_has_its_weight(
    make: Callable[[str, str, str], Problem], severity: Severity
) -> None:
    problem = make("CODE", "summary", "Remedy.")

    assert problem.severity is severity
    assert problem.is_error is (severity is Severity.ERROR)


def test_a_problem_becomes_a_finding_at_a_place() -> None:
    found = wrong("CODE", "summary", "Remedy.").at(PLACE, WEB)

    assert found == error("CODE", "summary", "Remedy.", PLACE, WEB)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("short", "short"),
        (7, "7"),
        ("x" * MAX_SHOWN, "x" * MAX_SHOWN),
        ("x" * (MAX_SHOWN + 1), "x" * (MAX_SHOWN - 3) + "..."),
        ("word " * 20, ("word " * 11).strip() + "..."),
        ("a " + "x" * 99, "a " + "x" * (MAX_SHOWN - 5) + "..."),
    ],
)
def test_a_long_value_is_cut_between_words_if_it_can_be(value: object, shown: str) -> None:
    assert cut(value) == shown
