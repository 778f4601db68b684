"""Texts of the command line as values: refs, reasons, durations, shards and trees."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from reconciler.cli.parameter_types import (
    PAUSE_REASON,
    REVISION,
    TREE,
    BreakGlass,
    BreakGlassType,
    Duration,
    Number,
    RefType,
    commit_id,
    past_moment,
    ref_named,
    shard_named,
)
from reconciler.cli.settings import GROUPS
from reconciler.errors import UsageError
from reconciler.resources.call import MAX_TEXTS
from reconciler.resources.ref import Kind
from tests.builders import GREET, WEB
from tests.rows import each_row

REF = WEB.address


WEEK = Duration("1m", "7d", "2d")
INTERVAL = click.Option(["--interval"])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7d", 604_800), ("24h", 86_400), ("30m", 1800), ("1m", 60), ("60s", 60), ("99999s", 99_999)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert WEEK.convert(text, INTERVAL, None) == seconds


@pytest.mark.parametrize(
    "text", ["", "0m", "59s", "8d", "169h", "05d", "100000s", "1d\n", "-1d", "1.5h", "1w", "60"]
)
def test_no_other_duration_is_taken(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        WEEK.convert(text, INTERVAL, None)

    assert refused.value.problem.startswith("--interval ")
    assert refused.value.problem.endswith(" is not a duration from 1m to 7d")
    assert "--interval 2d" in (refused.value.remedy or "")


@pytest.mark.parametrize(
    ("setting", "least", "most"),
    [
        ("interval", ("1s", 1), ("60m", 3600)),
        ("settle", ("0s", 0), ("1h", 3600)),
        ("keep-owed", ("60m", 3600), ("30d", 2_592_000)),
        ("for", ("1m", 60), ("31d", 2_678_400)),
        ("expires", ("60s", 60), ("99999d", 8_639_913_600)),
    ],
)
def test_each_setting_takes_durations_within_its_limits(
    setting: str, least: tuple[str, int], most: tuple[str, int]
) -> None:
    kinds = [row.type for rows in GROUPS.values() for row in rows if row.name == setting]

    for kind in kinds:
        assert [kind.convert(text, None, None) for text, _ in (least, most)] == [
            least[1],
            most[1],
        ]
        for text in (f"{most[1] + 1}s", f"{least[1] - 1}s"):
            with pytest.raises(UsageError):
                kind.convert(text, None, None)
    assert kinds


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("0.5", 0.5), ("20", 20), ("99", 99)])
def test_a_number_has_plain_digits(text: str, number: float) -> None:
    assert Number(99, 20).convert(text, INTERVAL, None) == number


@each_row("text", ["", "nan", "inf", "1e1", "-1", "+1", "99.5", "100", "1_0", "٣", " 5", "5s"])
def test_no_other_number_is_taken(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        Number(99, 20).convert(text, INTERVAL, None)

    assert refused.value.problem.endswith(" is not a number from 0 to 99")
    assert "--interval 20" in (refused.value.remedy or "")


@pytest.mark.parametrize("text", ["a" * 40, "0" * 64])
def test_a_commit_is_named_in_full(text: str) -> None:
    assert commit_id(text) == text


@each_row(
    ("read", "text", "problem"),
    [
        (commit_id, "a" * 39, "is not the id of a commit in full"),
        (commit_id, "A" * 40, "is not the id of a commit in full"),
        (commit_id, "HEAD", "is not the id of a commit in full"),
        (shard_named, "0/4", "--shard '0/4'"),
        (shard_named, "5/4", "--shard '5/4'"),
        (shard_named, "a", "--shard 'a'"),
        (PAUSE_REASON, "incident \udcff", "--reason incident \\udcff is not valid UTF-8"),
        (TREE, " ", "--tree is empty"),
        (TREE, "a\udcff", "--tree a\\udcff is not valid UTF-8"),
        (TREE, "x" * 201, "--tree has 201 characters"),
        (REVISION, "x" * 201, "--revision has 201 characters"),
        (REVISION, "a\udcff", "--revision a\\udcff is not valid UTF-8"),
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
    assert TREE("staging é") == "staging é"
    assert TREE("é" * MAX_TEXTS["tree"]) == "é" * 200


def test_a_revision_is_as_long_as_a_service_keeps() -> None:
    """What it refuses would stop an apply of a plan that everybody has approved."""
    assert REVISION("v1 ü") == "v1 ü"
    assert REVISION("é" * MAX_TEXTS["revision"]) == "é" * 200
    assert REVISION("") == ""  # which says the default


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
        ("x" * (MAX_TEXTS["reason"] + 1), "gives a reason of 501 characters"),
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
    assert past_moment("36500d").sequence == 0
    with pytest.raises(UsageError, match="in the future"):
        past_moment("9999-12-31T23:59:59-23:59")
