"""When a commit is tried again, and when an object is left alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.continuous.pace import (
    FIGHT_SECONDS,
    FIRST_SECONDS,
    LONGEST_SECONDS,
    MOST_HEALS,
    Fights,
    Tries,
)

OLD, NEW = "a" * 40, "b" * 40


def test_retries_begin_at_ten_seconds_and_end_at_half_an_hour() -> None:
    tries, now, pauses = Tries(), 0.0, []
    for _ in range(12):
        tries = tries.failed(NEW, now, chance=1.0)
        pauses.append(tries.due - now)
        now = tries.due

    assert pauses[:4] == [10, 20, 40, 80]
    assert pauses[-1] == LONGEST_SECONDS


@given(st.floats(0, 1), st.integers(1, 100), st.floats(0, 1e9))
def test_a_pause_is_at_least_half_of_its_length(chance: float, count: int, now: float) -> None:
    """Jitter spreads runs, and makes none of them hurry."""
    tries = Tries()
    for _ in range(count):
        tries = tries.failed(NEW, now, chance)
    longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** (count - 1))

    assert longest / 2 - 1e-3 <= tries.due - now <= longest + 1e-3
    assert not tries.is_due(NEW, now)
    assert tries.is_due(NEW, tries.due)


def test_another_commit_may_be_tried_at_once_and_starts_anew() -> None:
    tries = Tries(OLD, 9, 5000.0)

    assert not tries.is_due(OLD, 10.0)
    assert tries.is_due(NEW, 10.0)
    assert tries.failed(NEW, 10.0, chance=1.0) == Tries(NEW, 1, 20.0)


def healed(fights: Fights, *times: float) -> Fights:
    """Heal one object, which another writer has changed before each time."""
    for count, now in enumerate(times):
        fights = fights.seen({"1": 10 * count}, now).healed(["1"], now)
    return fights


def test_three_heals_within_an_hour_make_an_object_contested() -> None:
    fights = Fights(NEW)

    assert healed(fights, 0, 100).contested(200) == frozenset()
    assert healed(fights, 0, 100, 200).contested(300) == {"1"}
    assert healed(fights, 0, 100, FIGHT_SECONDS + 1).contested(FIGHT_SECONDS + 2) == frozenset()


def test_a_contested_object_is_left_until_an_hour_without_change() -> None:
    fights = healed(Fights(NEW), 0, 100, 200)

    still = fights.seen({"1": 99}, 3000)
    assert still.contested(3000 + FIGHT_SECONDS - 1) == {"1"}
    assert still.contested(3000 + FIGHT_SECONDS) == frozenset()
    assert still.seen({"1": 99}, 3000 + FIGHT_SECONDS).objects == {}


def test_other_manifests_end_a_fight() -> None:
    fights = healed(Fights(OLD), 0, 100, 200)

    assert fights.towards(OLD) is fights
    assert fights.towards(NEW).contested(201) == frozenset()


@given(st.lists(st.floats(0, 20_000), max_size=20).map(sorted))
def test_no_object_is_healed_more_often_than_allowed(times: list[float]) -> None:
    """Whatever the other writer does, and whenever."""
    fights, made = Fights(NEW), list[float]()
    for count, now in enumerate(times):
        fights = fights.seen({"1": count}, now)
        if "1" not in fights.contested(now):
            fights = fights.healed(["1"], now)
            made.append(now)

    within = [sum(at <= each < at + FIGHT_SECONDS for each in made) for at in made]
    assert max(within, default=0) <= MOST_HEALS
