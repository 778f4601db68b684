"""The service is named, never guessed: by every report, and before anything is looked at."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_action, write

NEW = "Service sqlite:.reconciler/identity.db (new: there is no store yet), tree default\n"
KNOWN = re.compile(
    r"Service sqlite:\.reconciler/identity\.db \(instance [0-9a-f]{32}\), tree default\n"
)


def test_every_plan_and_report_begins_with_service_instance_and_tree(run: Run, small: Path) -> None:
    """Also the first, made before there is a store."""
    planned, applied = run("plan"), run("apply", "--auto-approve")
    write(small / "greet.yaml", an_action(timeout="5s"))
    again, drift = run("plan"), run("drift")

    assert planned.out.startswith(NEW)
    assert applied.out.startswith(NEW)
    assert KNOWN.search(applied.out)
    assert all(KNOWN.match(ran.out) for ran in (again, drift))


def test_every_form_for_machines_names_them_too(run: Run, small: Path) -> None:
    """As keys beside those that were there before."""
    new = run("plan", "--format", "json").json
    applied = run("apply", "--auto-approve", "--format", "json").json
    write(small / "greet.yaml", an_action(timeout="5s"))
    plan = run("plan", "--format", "json").json
    stream = run("apply", "--auto-approve", "--format", "jsonl", "--tree", "web").out
    records = [json.loads(line) for line in stream.splitlines()]

    assert (new["instance"], new["new_service"]) == (None, True)
    assert (plan["instance"], plan["new_service"]) == (applied["instance"], False)
    for found in (plan, applied, run("drift", "--format", "json").json):
        assert found["service"] == "sqlite:.reconciler/identity.db"
        assert (found["instance"], found["tree"]) == (plan["instance"], "default")
    assert [r["tree"] for r in records if "instance" in r] == ["web", "web"]


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_plan_for_a_reviewer_names_them_at_the_top(run: Run, small: Path, form: str) -> None:
    """Above everything that the pull request wrote."""
    text = run("plan", "--format", form, "--tree", "web").out

    top = text[: text.index("in step")]
    assert "sqlite:.reconciler/identity.db" in top
    assert "new: there is no store yet" in top
    assert "web" in top
