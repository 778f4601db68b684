"""A saved plan that was cut short is gone on with: nothing twice, nothing that was not approved."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, Place, Run, an_action, an_application, write
from tests.listening import listening
from tests.running import Server, running_server
from tests.zitadel.stand_in import IAM, FakeZitadel


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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


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


# What was done is asked of the service: of a server in one case, of which the store is the same.
@pytest.mark.parametrize(
    ("place", "point", "done"),
    [("embedded", "C4", 2), ("embedded", "C6", 3), ("embedded", "C10", 3), ("served", "C10", 3)],
    indirect=["place"],
)
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


def test_a_plan_for_a_store_that_is_not_there_is_for_no_other(run: Run, small: Path) -> None:
    """Two stores that do not exist hold the same, and only one of them was looked at."""
    there, other = ("--service", "sqlite:a/one.db"), ("--service", "sqlite:b/two.db")
    digest = run("plan", *there, "--out", "plan.json", "--format", "json").json["digest"]
    assert run("token", "create", "--name", "x", "--role", "viewer", *other).code == 0

    for elsewhere in (("--service", "sqlite:c/three.db"), other):
        by_file = run("apply", "plan.json", *elsewhere)
        by_digest = run("apply", "--digest", digest, *elsewhere)

        assert (by_file.code, by_digest.code) == (4, 4), by_file.all + by_digest.all
        assert "made for another store, which was not there yet" in by_file.err
        assert "Give the --service it was made for (sqlite:a/one.db)." in by_file.err
    assert not (small.parent / "c").exists()
    assert run("plan", *other, "--format", "json").json["summary"]["create"] == 6

    assert run("apply", "plan.json", "--service", f"sqlite:{small.parent}/b/../a/one.db").code == 0


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


def test_a_plan_that_was_partly_refused_goes_on_once_it_may(
    run: Run, small: Path, server: Server
) -> None:
    """The first token may not create organizations; the second may."""
    here = {"RECONCILER_SERVICE": server.address, "RECONCILER_SECRETS_TO": "file:s"}
    admin = {**here, "RECONCILER_TOKEN": server.token("admin")}
    assert run("apply", "--auto-approve", **admin).code == 0
    write(small / "greet.yaml", an_action(timeout="5s"))
    write(small / "new.yaml", ORGANIZATION.split("---")[0].replace("acme", "newco"))
    write(small / "hello.yaml", an_action("hello").replace('"acme"', '"newco"'))
    assert run("plan", "--out", "plan.json", **admin).code == 0
    store = ("--service", f"sqlite:{server.store}")
    token = run("token", "create", "--name", "some", "--role", "editor", *store).out.strip()

    partly = run("apply", "plan.json", **here, RECONCILER_TOKEN=token)
    rest = run("apply", "plan.json", **admin)
    again = run("apply", "plan.json", **admin)

    assert partly.code == 5, partly.all
    assert "1 updated" in partly.out
    assert rest.code == 0, rest.all
    assert "Going on with this plan: 1 of 3 done already." in rest.err
    assert "2 created, 0 updated" in rest.out
    assert again.code == 0
    assert "Every change of this plan is done already." in again.err


def test_a_plan_whose_secret_was_not_delivered_goes_on_with_the_delivery(begun: Place) -> None:
    """Everything is written, and the sink failed: the same command delivers."""
    sink = begun.folder / "sink"
    broken = begun.folder / "broken"
    sink.write_text(f"#!/bin/sh\ntest -e {broken} && exit 1\ncat >> {begun.folder}/got\n")
    sink.chmod(0o700)
    broken.touch()
    to = ("--secrets-to", f"exec:{sink}")

    partly = begun.run(*APPLY, *to)
    count = len(written(begun))
    broken.unlink()
    rest = begun.run(*APPLY, *to)

    assert partly.code == 5, partly.all
    assert rest.code == 0, rest.all
    names = [event for _, event in written(begun)[count:] if ".secret." not in event]
    assert [name for name in names if name.endswith((".added", ".changed"))] == []
    assert len((begun.folder / "got").read_text()) == 2 * 64


def test_a_plan_for_a_zitadel_goes_on_by_what_it_holds(run: Run, small: Path) -> None:
    """It tells no events: a change is done where the object is as planned."""
    fake = FakeZitadel()
    with listening(fake.app()) as address:
        here = {"RECONCILER_SERVICE": address, "RECONCILER_TOKEN": IAM}
        to = {"RECONCILER_SECRETS_TO": "file:s"}
        assert run("plan", "--out", "plan.json", **here).code == 0
        killed = run("apply", "plan.json", **here, **to, RECONCILER_CRASHPOINT="C4:2")
        rest = run("apply", "plan.json", **here, **to)

    assert killed.code == -signal.SIGKILL
    assert "done already." in rest.err, rest.all
    assert len(fake.held["apps"]) == 2
    assert len(fake.held["actions"]) == 1
