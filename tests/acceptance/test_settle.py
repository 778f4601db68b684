"""``apply --settle``: how long a run waits for the lists of a ZITADEL, and what it says then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_action, an_application, write
from tests.acceptance.zitadel import ServeZitadel


def test_lists_that_lag_beyond_the_limit_end_with_5(
    a_zitadel: ServeZitadel, run: Run, tree: Path
) -> None:
    """The message says that the write was acknowledged, and what the next plan may want."""
    write(tree / "greet.yaml", an_action())
    with a_zitadel(lag=1000.0) as (fake, here):
        applied = run("apply", "--auto-approve", "--settle", "0s", **here)
        planned = run("plan", "--detailed-exitcode", **here)

    assert applied.code == 5, applied.all
    assert "Apply incomplete." in applied.out
    assert len(fake.held["actions"]) == 1
    words = " ".join(applied.out.split())
    assert "error APPLY-NOT-SHOWN" in words
    assert "acknowledged writes that its lists do not show yet" in words
    assert "the next plan may want to make them again" in words
    assert "reconciler apply --settle 5m" in words
    assert planned.code == 2


def test_a_wait_ends_when_the_lists_agree(a_zitadel: ServeZitadel, run: Run, tree: Path) -> None:
    """The limit of the environment is far above the lag."""
    write(tree / "greet.yaml", an_action())
    with a_zitadel(lag=0.3) as (_, here):
        applied = run("apply", "--auto-approve", **here, RECONCILER_SETTLE="30m")

    assert applied.code == 0, applied.all
    assert "0 remaining" in applied.out


@pytest.mark.parametrize("kind", ["apps", "actions"])
def test_a_row_that_the_server_lost_is_told_by_the_second_run(
    a_zitadel: ServeZitadel, run: Run, tree: Path, kind: str
) -> None:
    """The name is taken, and no list shows it: waiting would not help, and nothing says so."""
    write(tree / "greet.yaml", an_action())
    write(tree / "web.yaml", an_application())
    brief = ("apply", "--auto-approve", "--secrets-to", "file:s", "--settle", "1s")
    with a_zitadel() as (fake, here):
        fake.things.loses = {"web", "greet"} & {{"apps": "web", "actions": "greet"}[kind]}
        first = run(*brief, **here)
        second = run(*brief, **here)
        again = run(*brief, "--format", "json", **here)
        fake.things.mend()  # what an operator does
        after = run(*brief, **here)

    assert (first.code, second.code, again.code, after.code) == (5, 1, 1, 0), second.all
    assert len(fake.held[kind]) == 1
    assert "APPLY-NOT-SHOWN" in first.out
    assert "Nothing is lost" not in first.all
    assert "APPLY-ROW-LOST" not in first.all
    words = " ".join(second.out.split())
    assert "error APPLY-ROW-LOST" in words
    assert "The operator of the server must rebuild that projection" in words
    assert "Nothing is lost" not in words
    assert "APPLY-NOT-SHOWN" not in words
    assert [each["code"] for each in again.json["diagnostics"]] == ["APPLY-ROW-LOST"]


@pytest.mark.parametrize("text", ["60", "2h", "61m", "-1s", "1.5s", "00s"])
def test_what_is_no_duration_is_refused(run: Run, tree: Path, text: str) -> None:
    """With its limits, and one that may be written."""
    refused = run("apply", "--auto-approve", f"--settle={text}")

    assert refused.code == 1
    assert f"--settle '{text}' is not a duration from 0s to 60m" in refused.err
    assert "d, h, m or s: --settle 60s." in refused.err
