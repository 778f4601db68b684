"""Findings: their order, their places and the names of files in them."""

from __future__ import annotations

import pytest

from reconciler.diagnostics import (
    MAX_SHOWN,
    Severity,
    SourceLocation,
    by_place,
    cut,
    error,
    listed,
    name_as_text,
    note,
    of_all,
    warning,
)
from tests.builders import WEB
from tests.rows import each_row


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.yaml", "a.yaml"), ("é😀", "é😀"), ("a\udcff.yaml", "a\\u{dcff}.yaml")],
)
def test_the_name_of_a_file_is_text_whatever_its_bytes(name: str, text: str) -> None:
    assert name_as_text(name) == text
    assert name_as_text(name).encode()


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (SourceLocation("a.yaml", 3, 7), "a.yaml:3:7"),
        (SourceLocation("a.yaml"), "a.yaml"),
    ],
)
def test_a_place_is_written_as_editors_read_it(place: SourceLocation, text: str) -> None:
    assert str(place) == text


@pytest.mark.parametrize(
    ("make", "severity", "stops"),
    [
        (error, Severity.ERROR, True),
        (warning, Severity.WARNING, False),
        (note, Severity.NOTE, False),
    ],
)
def test_only_an_error_stops_a_run(make: type, severity: Severity, *, stops: bool) -> None:
    finding = make("CODE", "summary", "Remedy.")

    assert finding.severity is severity
    assert finding.is_error is stops


def test_findings_come_once_each_in_the_order_of_their_places() -> None:
    """By file, line and column; those of one place by code; those without a place first."""
    nowhere = error("A", "s", "r")
    late = error("A", "s", "r", SourceLocation("a.yaml", 10, 1))
    early = error("B", "s", "r", SourceLocation("a.yaml", 9, 1))
    beside = error("A", "s", "r", SourceLocation("a.yaml", 9, 1))
    other = error("A", "s", "r", SourceLocation("b.yaml", 1, 1))

    found = by_place([other, late, early, nowhere, beside, late])

    assert found == (nowhere, beside, early, late, other)


def test_a_finding_names_its_environments_unless_it_is_in_all_of_them() -> None:
    """Once each, in the order of their places."""
    common = error("A", "common", "r", SourceLocation("a.yaml", 9, 1))
    one = error("B", "one", "r", SourceLocation("a.yaml", 3, 1))
    two = error("C", "two", "r", SourceLocation("a.yaml", 4, 1, "host from reconciler.yaml:2:1"))
    found = {"dev": [common, common], "staging": [one, common, two], "live": [two, common]}

    assert [finding.told for finding in of_all(found)] == [
        "one (environment staging)",
        "two (environments staging, live; host from reconciler.yaml:2:1)",
        "common",
    ]
    assert of_all({"": [two, one]}) == (one, two)
    assert of_all({"live": [one]}) == (one,)


def test_a_finding_of_a_value_gets_its_place() -> None:
    place = SourceLocation("a.yaml", 2, 3)

    found = error("CODE", "summary", "Remedy.").at(place, WEB)

    assert found == error("CODE", "summary", "Remedy.", place, WEB)


@each_row(
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


def test_no_more_things_are_named_than_are_shown() -> None:
    asked: list[int] = []

    def named(number: int) -> str:
        asked.append(number)
        return f"n{number}"

    assert listed(range(5), 2, named=named) == "n0, n1 and 3 more"
    assert asked == [0, 1]
    assert listed(["a", "b"], 2) == "a, b"
