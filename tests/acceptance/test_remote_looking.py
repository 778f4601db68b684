"""Everything that only looks at a service, over HTTP and with a token that may only look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.resources.ref import Kind
from tests.acceptance.conftest import Run, an_action, write
from tests.acceptance.test_remote import Served, a_token, serving


@pytest.fixture
def looking(run: Run, small: Path) -> Iterator[dict[str, str]]:
    """Return the environment of a viewer, after a token applied and another went behind it."""
    with serving(small.parent, "sqlite:served/identity.db") as served:
        yield _prepared(run, served, small)


def _prepared(run: Run, served: Served, small: Path) -> dict[str, str]:
    tokens = {
        name: a_token(run, served, "--name", name, "--role", role)
        for name, role in {"ci": "admin", "ana": "admin", "eye": "viewer"}.items()
    }
    write(small.parent / "theirs" / "greet.yaml", an_action(timeout="1s"))
    write(small.parent / "theirs" / "other.yaml", an_action("other"))
    sink = ("--auto-approve", "--secrets-to", "file:kept", "--service", served.address)
    assert run("apply", *sink, RECONCILER_TOKEN=tokens["ci"]).code == 0
    theirs = run("apply", "theirs", "--tree", "t", *sink, RECONCILER_TOKEN=tokens["ana"])
    assert theirs.code == 0, theirs.all
    return {"RECONCILER_TOKEN": tokens["eye"], "RECONCILER_SERVICE": served.address}


def test_a_viewer_sees_drift_history_and_exports(
    run: Run, looking: dict[str, str], tmp_path: Path
) -> None:
    """A change made through the service carries the name of the token that made it."""
    drift = run("drift", "--format", "json", "--detailed-exitcode", **looking)
    (drifted,) = drift.json["drift"]
    history = run("history", "Action", "acme/greet", "--format", "json", **looking).json

    assert drift.code == 2
    assert (drifted["by"], drifted["tree"]) == ("ana", "t")
    assert [event["by"] for event in history["events"]] == ["ci", "ana"]
    assert run("export", "--out", "out", **looking).code == 0
    assert run("plan", "out", "--detailed-exitcode", **looking).code == 0
    assert len(list((tmp_path / "out").rglob("*.yaml"))) == len(Kind) + 2


def test_a_viewer_makes_the_plan_that_somebody_else_applies(
    run: Run, looking: dict[str, str]
) -> None:
    """The job of the pull request cannot write; what it says is held against what is done."""
    planned = run("plan", "--out", "plan.json", **looking)
    digest = run("show", "plan.json", "--format", "json").json["digest"]

    denied = run("apply", "plan.json", "--secrets-to", "file:kept", **looking)

    assert planned.code == 0
    assert "changed on the service since, by ana for tree t" in planned.out
    assert denied.code == 7
    assert digest in planned.out
