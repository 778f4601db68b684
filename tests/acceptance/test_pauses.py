"""``pause`` and ``resume``: what was switched off stays off, on every way to a service."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_action, write
from tests.acceptance.zitadel import ServeZitadel
from tests.program import program
from tests.running import running_server
from tests.terminal import approved_after

WHY = ("--reason", "incident 7")


def count(folder: Path) -> int:
    """Return how many events the store has."""
    with closing(sqlite3.connect(folder / ".reconciler" / "identity.db")) as store:
        (events,) = store.execute("SELECT count(*) FROM events").fetchone()
        return int(events)


@pytest.fixture
def applied(run: Run, small: Path) -> Path:
    """Apply a tree, then declare one more action; return the folder of the tree."""
    assert run("apply", "--auto-approve").code == 0
    write(small / "more.yaml", an_action("more"))
    return small


def test_a_paused_tree_is_planned_and_not_applied(run: Run, applied: Path) -> None:
    """The plan says by whom and why; exit code 3, and nothing is written, until it is resumed."""
    paused = run("pause", *WHY, "--for", "2h")
    assert paused.code == 0, paused.all
    assert "paused  tree default in acme until 20" in paused.out
    before = count(applied.parent)

    planned = run("plan", "--detailed-exitcode")
    refused = run("apply", "--auto-approve")

    assert planned.code == 2
    assert "PLAN-PAUSED" in planned.all
    assert "tree default is paused in acme until 20" in planned.all
    assert "incident 7" in planned.all
    found = run("plan", "--format", "json").json["diagnostics"]
    assert "PLAN-PAUSED" in [each["code"] for each in found]
    assert (refused.code, count(applied.parent)) == (3, before)
    assert "tree default is paused in acme" in refused.err
    assert "Nothing was written" in refused.err

    assert "resumed  tree default in acme" in run("resume").out
    history = run("history", "Organization", "acme").out
    assert "organization.tree.paused  by local:" in history
    assert "    tree default\n    reason: incident 7\n" in history
    assert run("apply", "--auto-approve").code == 0
    assert "PLAN-PAUSED" not in run("plan").all
    again = run("resume")
    assert (again.code, again.out) == (0, "Tree default is not paused.\n")


def test_a_plan_file_and_a_digest_are_no_way_around_a_pause(run: Run, applied: Path) -> None:
    """They were approved before somebody paused the tree."""
    digest = run("plan", "--out", "plan.json", "--format", "json").json["digest"]
    assert run("pause", *WHY).code == 0
    before = count(applied.parent)

    codes = [run("apply", "plan.json").code, run("apply", "--digest", digest).code]

    assert (codes, count(applied.parent)) == ([3, 3], before)
    assert run("apply", "plan.json", "--despite-pause").code == 0
    assert run("plan", "--detailed-exitcode").code == 0
    assert run("apply", "--auto-approve").code == 3  # with nothing to do as well: it is paused
    assert run("apply", "--auto-approve", RECONCILER_DESPITE_PAUSE="1").code == 0


def test_a_tree_that_is_paused_before_its_plan_is_approved_is_not_applied(
    run: Run, applied: Path
) -> None:
    """The question may stand there for hours."""
    asked = approved_after(lambda: run("pause", *WHY), applied.parent, "apply")

    assert asked.code == 3, asked.all
    assert "tree default is paused in acme" in asked.all
    assert run("plan", "--detailed-exitcode").code == 2


SECRETS = ("--secrets-to", "file:secrets")
ROTATE = ("secret", "rotate", "acme/shop/web", *SECRETS)


def test_no_secret_of_a_paused_tree_is_replaced(run: Run, applied: Path) -> None:
    """Neither of the tree that is given, nor of the one that owns the application."""
    assert run("pause", *WHY).code == 0
    before = count(applied.parent)

    refused = run(*ROTATE, "--auto-approve")
    other = run(*ROTATE, "--auto-approve", "--tree", "other")

    assert (refused.code, other.code, count(applied.parent)) == (3, 3, before)
    for each in (refused, other):
        assert "tree default is paused in acme" in each.err
        assert "--despite-pause replaces this secret all the same" in each.err
        assert "Nothing was written" in each.err
    assert run(*ROTATE, "--auto-approve", "--despite-pause").code == 0
    assert run("resume").code == 0
    assert run(*ROTATE, "--auto-approve").code == 0


def test_a_tree_that_is_paused_before_the_answer_keeps_its_secrets(run: Run, applied: Path) -> None:
    asked = approved_after(lambda: run("pause", *WHY), applied.parent, *ROTATE)

    assert asked.code == 3, asked.all
    assert "tree default is paused in acme" in asked.all
    assert "rotated" not in asked.all


def test_what_is_owed_is_delivered_in_a_pause(run: Run, applied: Path) -> None:
    """It replaces nothing: an application that was made, or rotated before, goes on working."""
    killed = run(*ROTATE, "--auto-approve", RECONCILER_CRASHPOINT="C6")
    assert killed.code < 0, killed.all
    assert run("pause", *WHY).code == 0

    delivered = run("secret", "deliver", *SECRETS)

    assert delivered.code == 0, delivered.all
    assert "acme/shop/web" in delivered.out


def test_rotations_and_deliveries_name_their_runs(run: Run, applied: Path) -> None:
    """Each has one of its own, which `history` shows and can be searched for."""
    assert run(*ROTATE, "--auto-approve").code == 0
    assert run(*ROTATE, "--auto-approve", RECONCILER_CRASHPOINT="C6").code < 0
    assert run("secret", "deliver", *SECRETS).code == 0

    history = run("history", "OidcApplication", "acme/shop/web", "--format", "json").json
    runs = {each["run"] for each in history["events"]}
    assert len(runs) == 4, "of the apply, of two rotations, and of the delivery"
    assert all(runs)


def test_a_pause_is_of_one_tree(run: Run, applied: Path) -> None:
    """Others go on, in the same organization."""
    assert run("pause", *WHY, "--tree", "other", "--organization", "ACME").code == 0
    assert run("apply", "--auto-approve").code == 0

    unknown = run("pause", *WHY, "--tree", "thrid")

    assert unknown.code == 1
    assert "tree thrid has applied nothing" in unknown.err
    assert "--organization" in unknown.err


def test_a_pause_of_one_organization_keeps_the_whole_tree(run: Run, applied: Path) -> None:
    """It is applied together, or not at all."""
    write(applied / "globex.yaml", "{apiVersion: reconciler/v1, kind: Organization, "
          "metadata: {name: globex}}\n")  # fmt: skip
    assert run("apply", "--auto-approve").code == 0
    everywhere = run("pause", *WHY)
    assert everywhere.out.count("paused  tree default in") == 2
    assert run("resume", "--organization", "acme").out == "resumed  tree default in acme\n"

    refused = run("apply", "--auto-approve")

    assert refused.code == 3
    assert "is paused in globex" in refused.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Missing option '--reason'"),
        ((*WHY, "--for", "32d"), "--for '32d' is not a duration from 1m to 31d"),
        ((*WHY, "--for", "soon"), "--for 'soon' is not a duration from 1m to 31d"),
        (("--reason", " "), "--reason is empty"),
        (("--reason", 501 * "x"), "--reason has 501 characters"),
        ((*WHY, "--organization", "acme", "--organization", "nowhere"), "organization nowhere"),
    ],
)
def test_what_is_wrong_is_said(
    run: Run, applied: Path, arguments: tuple[str, ...], told: str
) -> None:
    failed = run("pause", *arguments)

    assert failed.code == 1
    assert told in failed.err
    assert "Traceback" not in failed.all
    assert "manifest" not in failed.err
    assert run("resume").out == "Tree default is not paused.\n", "nothing was written"
    assert run("resume", "--organization", "nowhere").code == 1


def test_a_reason_is_shown_as_text_and_nothing_else(run: Run, applied: Path) -> None:
    """Whoever may pause writes to the terminal, and into the CI log, of everyone who plans."""
    assert run("pause", "--reason", "a\x1b[2J::error::b\u202ec\nd").code == 0

    for ran in (run("plan", CI="true"), run("apply", "--auto-approve", CI="true")):
        assert "\x1b[2J" not in ran.all
        assert "\u202e" not in ran.all
        assert "\n::error::" not in ran.all


def test_there_is_nothing_to_pause_without_a_store(run: Run, tmp_path: Path) -> None:
    """And none is made for it."""
    for command in (("pause", *WHY), ("resume",)):
        failed = run(*command)

        assert failed.code == 1
        assert "there is no store at" in failed.err
    assert list(tmp_path.iterdir()) == []


def test_over_http_an_editor_pauses_and_a_viewer_sees_it(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        served = program(tmp_path)
        tokens = {
            name: {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token(name)}
            for name in ("editor", "viewer")
        }
        asked = ("pause", *WHY, "--organization", "acme")

        refused = served(*asked, **tokens["viewer"])
        assert refused.code == 7
        assert "org.tree.write" in refused.err
        assert served(*asked, **tokens["editor"]).code == 0

        heads = json.dumps(server.events()[-1].payload)
        assert "incident 7" in heads
        assert served("resume", **tokens["editor"]).code == 0


def test_a_zitadel_keeps_no_pauses(run: Run, a_zitadel: ServeZitadel) -> None:
    with a_zitadel() as (_, here):
        failed = run("pause", *WHY, **here)

    assert failed.code == 1
    assert "the service keeps no pauses" in failed.err
