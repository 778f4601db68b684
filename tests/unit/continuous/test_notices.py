"""Which notices follow from two states: each change once, and nothing where nothing changed."""

from __future__ import annotations

from itertools import combinations

from reconciler.continuous.decision import HELD, Condition
from reconciler.continuous.notices import BEGAN, NOTHING, WORDS, Known, notices_of
from tests.rows import each_row

OLD, NEW = "a" * 40, "b" * 40
C = Condition


def types(before: Known | None, after: Known) -> list[str]:
    return [notice.type for notice in notices_of(before, after)]


def on(seen: str, *conditions: Condition, applied: str = OLD) -> Known:
    return Known(seen, applied, conditions)


@each_row(
    ("before", "after", "expected"),
    [
        (on(OLD), on(OLD), []),
        (on(OLD), on(OLD, C.DRIFTED), ["drifted.began"]),
        (on(OLD, C.DRIFTED), on(OLD, C.DRIFTED), []),
        (on(OLD, C.DRIFTED), on(OLD), ["drifted.ended"]),
        (on(OLD), on(NEW, C.PENDING), ["pending.began"]),
        (on(NEW, C.PENDING), on(NEW, applied=NEW), ["commit.applied"]),
        (on(OLD), on(NEW, applied=NEW), ["commit.applied"]),
        (on(OLD, applied=""), on(OLD), ["commit.applied"]),
        (on(OLD), on(OLD, applied=""), []),
        (on(NEW, C.PENDING), on(OLD), ["pending.ended"]),
        (
            on(OLD),
            on(NEW, C.PENDING, C.UNSIGNED, C.BLOCKED),
            ["pending.began", "unsigned.began", "blocked.began"],
        ),
        (
            on(OLD, C.PENDING, C.BLOCKED),
            on(NEW, C.PENDING, C.BLOCKED),
            ["pending.began", "blocked.began"],
        ),
        (on(OLD, C.DRIFTED, C.OWED), on(NEW, C.DRIFTED, C.OWED), []),
        (
            on(OLD, C.PENDING, C.BLOCKED),
            on(NEW, C.DRIFTED, applied=NEW),
            ["commit.applied", "blocked.ended", "drifted.began"],
        ),
        (on(OLD), on(OLD, C.PAUSED), ["paused.began"]),
        (on(OLD, C.PAUSED), on(OLD), ["paused.ended"]),
        (on(OLD), on(OLD, C.FAILING), ["failing.began"]),
        (on(OLD, C.FAILING), on(OLD), ["failing.ended"]),
        (on(OLD, C.DRIFTED), on(OLD, C.DRIFTED, C.CONTESTED), ["contested.began"]),
        (on(OLD), on(OLD, C.WATCHING), []),
        (None, on(OLD), [BEGAN]),
        (None, on(NEW, C.PENDING, C.BLOCKED), [BEGAN]),
    ],
)
def test_what_is_said_of_a_change(before: Known | None, after: Known, expected: list[str]) -> None:
    assert types(before, after) == expected


def test_every_condition_and_every_reason_has_words() -> None:
    """Only a run that watches says nothing of it."""
    assert {*WORDS} == {*Condition} - {Condition.WATCHING}
    assert {*WORDS} >= HELD


def test_a_change_and_its_way_back_are_of_the_same_conditions() -> None:
    """What began ends, for each pair of conditions."""
    for pair in combinations(WORDS, 2):
        began = types(on(OLD), on(OLD, *pair))
        ended = types(on(OLD, *pair), on(OLD))
        assert [each.removesuffix(".began") for each in began] == [*map(str, pair)]
        assert [each.removesuffix(".ended") for each in ended] == [*map(str, pair)]


def test_the_first_state_says_all_that_is_to_do() -> None:
    (first,) = notices_of(None, on(NEW, C.BLOCKED, C.PAUSED))
    (calm,) = notices_of(None, on(OLD))

    assert WORDS[C.BLOCKED].do in first.do
    assert WORDS[C.PAUSED].means in first.means
    assert calm.do == NOTHING
