"""Shards: every organization in exactly one, always the same, whatever else there is."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.resources.shard import MAX_SHARDS, Shard, read_shard, shard_of
from tests.program import environment

COUNTS = st.integers(1, MAX_SHARDS)


@given(st.text(), st.integers(1, 50))
def test_every_organization_is_in_exactly_one_shard(name: str, count: int) -> None:
    """Whatever a name is made of, half a character included."""
    holders = [index for index in range(1, count + 1) if Shard(index, count).holds(name)]

    assert holders == [shard_of(name, count)]


@pytest.mark.parametrize(
    ("name", "count", "index"),
    [("acme", 1, 1), ("acme", 2, 2), ("acme", 3, 3), ("acme", 7, 3), ("Büro", 3, 2),
     ("Büro", 4, 1), ("org-00001", 6, 3), ("日本", 10_000, 3587)],
)  # fmt: skip
def test_the_shard_of_an_organization_never_changes(name: str, count: int, index: int) -> None:
    """Two jobs may run different versions; these values change with a major version only."""
    assert shard_of(name, count) == index


def test_the_shard_does_not_depend_on_the_process() -> None:
    """Python's own hash does, and is another one on every start."""
    code = "from reconciler.resources.shard import shard_of; print(shard_of('Büro', 10000))"
    told = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment(PYTHONHASHSEED=seed),
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]  # fmt: skip

    assert told == [str(shard_of("Büro", 10_000))] * 2


@pytest.mark.parametrize(("one", "other"), [("acme", "ACME"), ("STRASSE", "straße"), ("Σ", "ς")])
def test_spellings_of_one_organization_are_in_one_shard(one: str, other: str) -> None:
    """Names are unique ignoring case, so both are the same organization."""
    assert [shard_of(one, n) for n in range(1, 100)] == [shard_of(other, n) for n in range(1, 100)]


def test_organizations_are_dealt_evenly() -> None:
    """No shard has half as much again as its share: of 1,000 organizations over 8 shards."""
    sizes = Counter(shard_of(f"org-{number:05d}", 8) for number in range(1000))

    assert sorted(sizes) == list(range(1, 9))
    assert max(sizes.values()) < 1.5 * 1000 / 8


@given(COUNTS.flatmap(lambda count: st.tuples(st.integers(1, count), st.just(count))))
def test_what_a_shard_is_called_names_it(numbers: tuple[int, int]) -> None:
    """What a plan file says can be given on the command line."""
    assert read_shard(str(Shard(*numbers))) == Shard(*numbers)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0/4", "names a shard that is not from 1 to 4"),
        ("5/4", "names a shard that is not from 1 to 4"),
        ("1/0", "has a number of shards that is not from 1 to 10000"),
        ("0/0", "has a number of shards that is not from 1 to 10000"),
        ("1/10001", "has a number of shards that is not from 1 to 10000"),
        *(
            (text, "is not of the form I/N")
            for text in ("", "a/b", "1", "1/", "/4", "1/4/2", "-1/4", "+1/4", "1.5/4", " 1/4",
                         "1/4\n", "1 / 4", "1/999999", "\u0661/\u0664")
        ),
    ],
)  # fmt: skip
def test_what_names_no_shard_is_refused(text: str, why: str) -> None:
    """A slip must not look after the wrong part, or after none."""
    with pytest.raises(ValueError, match=f"^{why}$"):
        read_shard(text)
