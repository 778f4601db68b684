"""Everything that only looks at a service, over HTTP and with a token that may only look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.resources.ref import Kind
from tests.acceptance.conftest import Run, an_action, write
from tests.running import running_server


@pytest.fixture
def looking(
    run: Run, small: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """Return the environment of a viewer, after a token applied and another went behind it."""
    write(small.parent / "theirs" / "greet.yaml", an_action(timeout="1s"))
    write(small.parent / "theirs" / "other.yaml", an_action("other"))
    with running_server(tmp_path_factory.mktemp("server")) as server:
        sink = ("--secrets-to", "file:kept")
        apply = ("apply", "--auto-approve", *sink, "--service", server.address)
        ours = run(*apply, RECONCILER_TOKEN=server.token("editor"))
        theirs = run(*apply, "theirs", "--tree", "t", RECONCILER_TOKEN=server.token("admin"))
        assert ours.code == theirs.code == 0, ours.all + theirs.all
        yield {
            "RECONCILER_TOKEN": server.token("viewer"),
            "RECONCILER_SERVICE": server.address,
        }


def test_a_viewer_sees_drift_history_and_exports(
    run: Run, looking: dict[str, str], tmp_path: Path
) -> None:
    """A change made through the service carries the name of the token that made it."""
    drift = run("drift", "--format", "json", "--detailed-exitcode", **looking)
    (drifted,) = drift.json["drift"]
    history = run("history", "Action", "acme/greet", "--format", "json", **looking).json

    assert drift.code == 2
    assert (drifted["by"], drifted["tree"]) == ("admin", "t")
    assert [event["by"] for event in history["events"]] == ["editor", "admin"]
    assert run("export", "--out", "out", **looking).code == 0
    assert run("plan", "out", "--detailed-exitcode", **looking).code == 0
    assert len(list((tmp_path / "out").rglob("*.yaml"))) == len(Kind)  # without flow and role


def test_a_viewer_makes_the_plan_that_somebody_else_applies(
    run: Run, looking: dict[str, str]
) -> None:
    """The job of the pull request cannot write; what it says is held against what is done."""
    planned = run("plan", "--out", "plan.json", **looking)
    digest = run("show", "plan.json", "--format", "json").json["digest"]

    denied = run("apply", "plan.json", "--secrets-to", "file:kept", **looking)

    assert planned.code == 0
    assert "changed on the service since, by admin for tree t" in planned.out
    assert denied.code == 7
    assert digest in planned.out
