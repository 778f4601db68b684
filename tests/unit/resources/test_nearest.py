"""How far two names are from each other, and which one is meant."""

from __future__ import annotations

import pytest

from reconciler.resources.nearest import MOST_HINTS, NearNames, edits, within
from tests.rows import each_row


@each_row(
    ("one", "other", "count"),
    [
        ("", "", 0),
        ("tree", "tree", 0),
        ("tree", "tre", 1),
        ("tree", "treee", 1),
        ("tree", "trae", 1),
        ("tokne", "token", 2),
        ("servce", "service", 1),
        ("abc", "", 3),
        ("kitten", "sitting", 3),
    ],
)
def test_edits_are_counted_in_both_directions(one: str, other: str, count: int) -> None:
    """Letters put in, taken out or replaced."""
    assert edits(one, other) == edits(other, one) == count


@pytest.mark.parametrize(
    ("written", "meant"),
    [("SERVCE", "SERVICE"), ("TOKNE", "TOKEN"), ("TREES", "TREE"), ("IMAGE", None), ("T", None)],
)
def test_a_name_is_meant_only_within_the_letters(written: str, meant: str | None) -> None:
    """What is further away is another name."""
    assert within(written, ["SERVICE", "TOKEN", "TREE", "SHARD"], 2) == meant


def test_a_name_is_looked_for_in_its_group_and_not_without_end() -> None:
    """Each comparison takes a while: thousands of missing names would take minutes."""
    near = NearNames([("acme", "greet"), ("acme", "tidy"), ("other", "greets")])

    found = [near.name_for("greeet", group) for group in ["acme", "other", "none"]]
    later = [near.name_for(f"greeet{at}", "acme") for at in range(MOST_HINTS)]

    assert found == ["greet", "greets", None]
    assert later == ["greet"] * (MOST_HINTS - 3) + [None] * 3


def test_a_name_that_thousands_miss_is_one_name() -> None:
    """It keeps its hint when no other one gets any more."""
    near = NearNames([("acme", "greet")])

    found = [near.name_for("greeet", "acme") for _ in range(MOST_HINTS + 1)]
    others = [near.name_for(f"gret{at}", "acme") for at in range(MOST_HINTS)]

    assert found == ["greet"] * (MOST_HINTS + 1)
    assert others == ["greet"] * (MOST_HINTS - 1) + [None]
    assert near.name_for("greeet", "acme") == "greet"
