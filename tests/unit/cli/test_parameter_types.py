"""Texts of the command line as values: refs, reasons, durations, shards and trees."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.cli.parameter_types import (
    LONGEST_REASON,
    BreakGlass,
    BreakGlassType,
    RefType,
    commit_id,
    interval_seconds,
    keep_owed_seconds,
    past_moment,
    pause_reason,
    ref_named,
    seconds_of,
    shard_named,
    tree_named,
)
from reconciler.errors import UsageError
from reconciler.resources.ref import Kind
from tests.builders import GREET, WEB
from tests.rows import each_row

REF = WEB.address


@pytest.mark.parametrize(
    ("text", "seconds"), [("90d", 7_776_000), ("24h", 86_400), ("30m", 1800), ("99999m", 5_999_940)]
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["1h", "30d"])
def test_a_store_keeps_a_secret_from_an_hour_to_thirty_days(text: str) -> None:
    assert keep_owed_seconds(text) == seconds_of(text)


def test_rounds_are_a_second_to_an_hour_apart() -> None:
    assert [interval_seconds(text) for text in ("1s", "30s", "5m", "60m")] == [1, 30, 300, 3600]


@pytest.mark.parametrize("text", ["a" * 40, "0" * 64])
def test_a_commit_is_named_in_full(text: str) -> None:
    assert commit_id(text) == text


@each_row(
    ("read", "text", "problem"),
    [
        (seconds_of, "1s", "invalid duration '1s'"),
        (seconds_of, "0d", "invalid duration"),
        (seconds_of, "05d", "invalid duration"),
        (seconds_of, "100000m", "invalid duration"),
        (seconds_of, "1d\n", "invalid duration"),
        (keep_owed_seconds, "59m", "--keep-owed 59m is out of range"),
        (keep_owed_seconds, "31d", "--keep-owed 31d is out of range"),
        (interval_seconds, "0s", "--interval '0s'"),
        (interval_seconds, "61m", "--interval '61m'"),
        (interval_seconds, "1h", "--interval '1h'"),
        (commit_id, "a" * 39, "is not the id of a commit in full"),
        (commit_id, "A" * 40, "is not the id of a commit in full"),
        (commit_id, "HEAD", "is not the id of a commit in full"),
        (shard_named, "0/4", "--shard '0/4'"),
        (shard_named, "5/4", "--shard '5/4'"),
        (shard_named, "a", "--shard 'a'"),
        (pause_reason, "incident \udcff", "--reason is not UTF-8"),
        (tree_named, " ", "--tree is empty"),
        (tree_named, "a\udcff", "--tree a\\udcff is not valid UTF-8"),
        (ref_named, "Nothing/acme/x", "Nothing"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(
    read: Callable[[str], object], text: str, problem: str
) -> None:
    with pytest.raises(UsageError) as refused:
        read(text)

    assert problem in refused.value.problem
    assert refused.value.remedy


def test_a_shard_and_a_tree_are_read() -> None:
    assert str(shard_named("2/4")) == "2/4"
    assert tree_named("staging é") == "staging é"


def test_a_ref_of_one_kind_may_leave_the_kind_out() -> None:
    convert = RefType(Kind.OIDC_APPLICATION).convert

    assert convert(REF, None, None) == convert(WEB.path, None, None) == WEB
    assert convert(WEB, None, None) is WEB
    assert RefType().convert(GREET.address, None, None) == GREET


def test_a_reason_stands_after_the_first_equals_sign() -> None:
    made = BreakGlassType().convert(f"{REF}= the key = leaked ", None, None)

    assert made == BreakGlass(WEB, "the key = leaked")
    assert BreakGlassType().convert(str(made), None, None) == made
    assert BreakGlassType().convert(made, None, None) is made


@pytest.mark.parametrize(
    ("reason", "problem"),
    [
        ("", "gives no reason"),
        ("  ", "gives no reason"),
        ("x" * (LONGEST_REASON + 1), "gives a reason of 501 characters"),
        ("a\x1b[2J", "cannot be printed"),
    ],
)
def test_a_reason_that_cannot_be_kept_is_refused(reason: str, problem: str) -> None:
    with pytest.raises(UsageError) as refused:
        BreakGlassType().convert(f"{REF}={reason}", None, None)

    assert problem in refused.value.problem
    assert REF in refused.value.remedy


@pytest.mark.parametrize(
    ("text", "sequence", "shown"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000, "1970-01-01T00:00:01Z"),
        ("1970-01-01t01:00:00.5+01:00", 500_000, "1970-01-01T00:00:00.500000Z"),
        ("2026-11-22 14:30:00.1234567z", 1_795_357_800_123_456, "2026-11-22T14:30:00.123456Z"),
        ("1969-12-31T23:59:59Z", 0, "1970-01-01T00:00:00Z"),
    ],
)
def test_a_moment_is_a_time_in_microseconds(text: str, sequence: int, shown: str) -> None:
    """Of what is more exact than a sequence, the rest is cut, never rounded up."""
    assert past_moment(text) == (shown, sequence, "")


def test_a_moment_may_be_how_long_ago_or_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.cli.parameter_types.time.time", lambda: 7200.5)

    assert past_moment("2h") == ("1970-01-01T00:00:00.500000Z", 500_000, "")
    assert past_moment("a" * 32) == ("a" * 32, 0, "a" * 32)
    assert past_moment("1970-01-01T02:05:00Z").sequence == 7_500_000_000
    with pytest.raises(UsageError, match="in the future"):
        past_moment("1970-01-01T02:05:01Z")


@each_row(
    "text",
    [
        "", "0h", "2", "2w", "-2h", "now", "2026-11-22", "2026-11-22T14:30:00", "14:30:00Z",
        "2026-02-30T00:00:00Z", "2026-01-01T24:00:01Z", "2026-01-01T00:00:60Z", "A" * 32, "a" * 31,
        "a" * 33, "2026-01-01T00:00:00+25:00", "\u0662026-01-01T00:00:00Z",
        "2026-01-01T00:00:00Zx",
    ],
)  # fmt: skip
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid moment"):
        past_moment(text)


def test_the_ends_of_time_are_moments_like_others() -> None:
    """No arithmetic of a far date fails."""
    assert past_moment("0001-01-01T00:00:00+23:59").sequence == 0
    with pytest.raises(UsageError, match="in the future"):
        past_moment("9999-12-31T23:59:59-23:59")
