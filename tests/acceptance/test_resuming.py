"""A saved plan that was cut short is gone on with: nothing twice, nothing that was not approved."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.conftest import Place, Run, an_action, an_application, write


def written(place: Place) -> list[tuple[str, str]]:
    """Return stream and type of every event in the store, oldest first."""
    with closing(sqlite3.connect(place.direct.store)) as store:
        return list(store.execute("SELECT stream, type FROM events ORDER BY position"))


def plans_of(place: Place, after: int) -> set[str]:
    """Return the plan digests that events after the first so many carry."""
    with closing(sqlite3.connect(place.direct.store)) as store:
        rows = store.execute("SELECT context FROM events ORDER BY position").fetchall()
    return {json.loads(context).get("plan", "") for (context,) in rows[after:] if context}


@pytest.fixture
def begun(place: Place) -> Place:
    """Return a place with a saved plan of creates, updates and deletes; nothing of it is done."""
    write(place.manifests / "old.yaml", an_action("old"))
    assert place.run("apply", "--auto-approve").code == 0
    (place.manifests / "old.yaml").unlink()
    write(place.manifests / "greet.yaml", an_action(timeout="5s"))
    write(place.manifests / "new.yaml", an_application("new"))
    write(place.manifests / "spa.yaml", an_application("spa"))  # moves to a client secret
    allowed = ("--prune", "--allow-deletes", "9", "--allow-updates", "9")
    assert place.run("plan", *allowed, "--out", "plan.json").code == 0
    return place


APPLY = ("apply", "plan.json", "--prune", "--allow-deletes", "9", "--allow-updates", "9")


@pytest.mark.parametrize(("point", "done"), [("C4", 2), ("C6", 3), ("C10", 3)])
def test_a_plan_that_was_killed_goes_on_where_it_stopped(
    begun: Place, point: str, done: int
) -> None:
    """The same command does the rest, whatever of it was done."""
    count = len(written(begun))
    assert begun.run(*APPLY, RECONCILER_CRASHPOINT=point).code == -signal.SIGKILL

    again = begun.run(*APPLY)
    once_more = begun.run(*APPLY)

    assert again.code == 0, again.all
    assert f"Going on with this plan: {done} of 4 done already." in again.err
    assert once_more.code == 0
    assert "Every change of this plan is done already." in once_more.err
    new = written(begun)[count:]
    assert max(Counter(each for each in new if "secret" not in each[1]).values()) == 1
    assert len(plans_of(begun, count)) == 1
    left = begun.run("plan", "--prune", "--format", "json").json["summary"]
    assert left["create"] + left["update"] + left["adopt"] + left["delete"] == 0


def test_a_plan_that_was_killed_after_its_last_write_is_done(begun: Place) -> None:
    """What it deleted is known by the events that removed it."""
    assert begun.run(*APPLY, RECONCILER_CRASHPOINT="C4:2").code == -signal.SIGKILL
    count = len(written(begun))

    again = begun.run(*APPLY)

    assert again.code == 0, again.all
    assert "Every change of this plan is done already." in again.err
    assert len([each for each in written(begun)[count:] if "secret" not in each[1]]) == 0


@pytest.mark.parametrize("point", ["C2", "C4", "C4:3"])
def test_a_first_plan_that_was_killed_goes_on_in_the_store_that_it_made(
    run: Run, small: Path, point: str
) -> None:
    """The plan was made before there was a store, and the store is its own."""
    assert run("plan", "--out", "plan.json").code == 0
    assert run("apply", "plan.json", RECONCILER_CRASHPOINT=point).code == -signal.SIGKILL

    again = run("apply", "plan.json")

    assert again.code == 0, again.all
    assert run("plan", "--format", "json").json["summary"]["create"] == 0
    assert run("store", "verify").code == 0


def test_a_change_of_somebody_else_in_between_stops_it(begun: Place) -> None:
    """Of what is left, and of what was done: nothing more is written."""
    assert begun.run(*APPLY, RECONCILER_CRASHPOINT="C4").code == -signal.SIGKILL
    begun.direct.change("greet", timeout="1s")
    count = len(written(begun))

    stale = begun.run(*APPLY)

    assert stale.code == 4, stale.all
    assert "Action acme/greet: changed on the service since, by ana at 20" in stale.err
    assert stale.err.count("PLAN-STALE") == 1
    assert len(written(begun)) == count


def test_a_digest_alone_cannot_go_on(begun: Place) -> None:
    """It does not say what was approved of what is gone; the plan file does."""
    digest = begun.run("show", "plan.json", "--format", "json").json["digest"]
    assert begun.run(*APPLY, RECONCILER_CRASHPOINT="C4").code == -signal.SIGKILL
    count = len(written(begun))

    refused = begun.run(*("apply", "--digest", digest), *APPLY[2:])

    assert refused.code == 4
    assert "Give the plan file" in refused.err
    assert len(written(begun)) == count
    assert begun.run(*APPLY, "--digest", digest).code == 0
