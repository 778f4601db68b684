"""``undo RUN``, embedded and against ``serve``, on SQLite and PostgreSQL.

The round trip goes all four ways, the rest two that have both of each.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_action, an_application, write
from tests.acceptance.test_environments import a_configuration
from tests.acceptance.test_moments import applied, exported, last_event, ours
from tests.acceptance.ways import on_two_ways

__all__ = ["ours"]

GLASS = ("--break-glass", "OidcApplication/acme/shop/web=test")
STEPS: dict[str, dict[str, str]] = {
    "create": {"more": an_action("more", script="function more() {}")},
    "update": {"web": an_application("web", redirectUris=["https://other.example.com/cb"])},
    "state": {"greet": an_action().replace('"metadata": {', '"metadata": {"active": false, ')},
    "delete": {"partner": ""},
}


def undone(way: Run, run_id: str, *more: str) -> str:
    """Undo a run, and return the id of the run that did."""
    ran = way(
        "undo", run_id, "--auto-approve", "--format", "json", "--prune", "--allow-deletes", "9",
        "--reason", "logins failed", *GLASS, *more,
    )  # fmt: skip
    assert ran.code == 0, ran.all
    return str(ran.json["run"])


@pytest.mark.parametrize("step", STEPS)
def test_an_undo_brings_back_what_was_held_and_an_undo_of_it_the_rest(
    ours: Run, small: Path, step: str
) -> None:
    """Both ways: the service holds what it held before the run that is undone."""
    before = exported(ours)
    run_id = str(applied(ours, small, **STEPS[step]).json["run"])
    after = exported(ours)
    assert after != before

    second = undone(ours, run_id)
    assert exported(ours) == before

    undone(ours, second)
    assert exported(ours) == after


@on_two_ways
def test_what_was_changed_since_is_refused_unless_it_is_kept(ours: Run, small: Path) -> None:
    """The later run and --keep are named; nothing is written."""
    first = str(applied(ours, small, **STEPS["state"], **STEPS["update"]).json["run"])
    later = str(applied(ours, small, greet=an_action(timeout="7s")).json["run"])
    held = exported(ours)

    refused = ours("undo", first, "--auto-approve", *GLASS)

    assert refused.code == 4, refused.all
    assert f"run {later}" in refused.err
    assert "--keep Action/acme/greet" in refused.err
    assert exported(ours) == held
    undone(ours, first, "--keep", "Action/acme/greet")
    assert "other.example.com" not in exported(ours)
    assert "7s" in exported(ours)


@on_two_ways
def test_an_undo_is_saved_and_applied_by_its_file(ours: Run, small: Path) -> None:
    """Saving writes nothing to the service; apply FILE makes the same plan again."""
    before = exported(ours)
    run_id = str(applied(ours, small, **STEPS["update"]).json["run"])
    after = exported(ours)

    saved = ours("undo", run_id, "--out", "undo.plan", "--reason", "logins failed", *GLASS)

    assert saved.code == 0, saved.all
    assert f"undo of run {run_id}" in saved.out
    assert "reconciler apply undo.plan" in saved.err
    assert exported(ours) == after
    shown = ours("show", "undo.plan")
    assert f"undo of run {run_id}" in shown.out

    ran = ours("apply", "undo.plan", "--revision", "a-commit", *GLASS)

    assert ran.code == 0, ran.all
    assert exported(ours) == before
    told = ours("history", "OidcApplication/acme/shop/web", "--format", "json")
    assert run_id in told.out
    assert "a-commit" not in told.out  # what an undo brings back is of no commit
    plan = ours("plan", *GLASS)
    assert "logins failed" in plan.err


@on_two_ways
def test_a_saved_undo_is_stale_once_an_object_of_it_was_changed(ours: Run, small: Path) -> None:
    """Another object may change; one that it writes to may not. The options are the same too."""
    both = {**STEPS["update"], "greet": an_action(timeout="7s")}
    run_id = str(applied(ours, small, **both).json["run"])
    keep = ("--keep", "Action/acme/greet")
    assert ours("undo", run_id, "--out", "undo.plan", *keep, *GLASS).code == 0
    applied(ours, small, greet=an_action(timeout="9s"), more=an_action("more"))

    other = ours("apply", "undo.plan", "--prune", *GLASS)
    assert (other.code, "without --prune" in other.err) == (4, True), other.all
    applied(ours, small, web=an_application("web", redirectUris=["https://third.example.com/cb"]))
    held = exported(ours)

    stale = ours("apply", "undo.plan", *GLASS)

    assert stale.code == 4, stale.all
    assert exported(ours) == held


@on_two_ways
def test_a_saved_undo_is_applied_although_another_object_was_changed(
    ours: Run, small: Path
) -> None:
    run_id = str(applied(ours, small, **STEPS["update"]).json["run"])
    assert ours("undo", run_id, "--out", "undo.plan", *GLASS).code == 0
    applied(ours, small, greet=an_action(timeout="9s"))

    ran = ours("apply", "undo.plan", *GLASS)

    assert ran.code == 0, ran.all
    held = exported(ours)
    assert "other.example.com" not in held
    assert "9s" in held


@on_two_ways
def test_the_last_run_and_the_run_of_a_plan_are_found(ours: Run, small: Path) -> None:
    """An undo is a run, too, and history and compare say of which run it is."""
    applied(ours, small, greet=an_action(timeout="7s"))
    before = exported(ours)
    run = applied(ours, small, greet=an_action(timeout="9s"))
    digest, after = str(last_event(ours)["plan"]), exported(ours)

    first = undone(ours, digest)
    assert exported(ours) == before
    undone(ours, "--last")
    assert exported(ours) == after
    undone(ours, "--last")
    assert exported(ours) == before

    said = f"undo of run {run.json['run']}"
    assert said in ours("history", "--organization", "acme").out
    assert "undo of run" in ours("compare", "--at", first).out
    assert f"undo of run {first}" in ours("history", "Action/acme/greet").out


def test_a_protected_environment_shows_the_plan_and_takes_its_digest(run: Run, small: Path) -> None:
    """The plan is shown with its digest, so that it can be approved; nothing is written."""
    a_configuration(small.parent)
    chosen = ("--env", "production")

    def applied_there() -> str:
        assert run("plan", *chosen, "--out", "p.plan").code == 0
        ran = run("apply", "p.plan", *chosen, "--format", "json")
        assert ran.code == 0, ran.all
        return str(ran.json["run"])

    applied_there()
    write(small / "greet.yaml", an_action(timeout="7s"))
    first = applied_there()
    write(small / "greet.yaml", an_action(timeout="9s"))
    second = applied_there()

    asked = run("undo", second, *chosen)
    flag = run("undo", second, *chosen, "--auto-approve")

    assert (asked.code, flag.code) == (1, 1)
    assert "9s" in run("export", *chosen).out
    digest = next(word for word in asked.err.split() if word.startswith("sha256:")).rstrip(";")
    assert run("undo", second, *chosen, "--digest", digest).code == 0
    assert "7s" in run("export", *chosen).out
    refused = run("undo", first, *chosen, "--digest", digest)
    assert refused.code == 4, refused.all
    assert run("undo", "--last", *chosen, "--out", "u.plan").code == 0
    assert run("apply", "u.plan", *chosen).code == 0
    assert "9s" in run("export", *chosen).out


def test_a_run_is_named_once(run: Run, small: Path) -> None:
    """Neither two runs, nor none, nor one that is not there."""
    assert run("apply", "--auto-approve").code == 0

    none, two = run("undo"), run("undo", "--last", "0" * 44)
    strange, other = run("undo", "last"), run("undo", "--last", "--tree", "other")
    unknown = run("undo", f"sha256:{'0' * 64}")

    assert "no run is named" in none.err
    assert "both name a run" in two.err
    assert "neither the id of a run nor the digest" in strange.err
    assert "there is no run of tree other" in other.err
    assert "no run applied the plan" in unknown.err
    assert all(each.code == 1 for each in (none, two, strange, other, unknown))


def test_what_an_undo_deletes_and_manifests_declare_is_a_warning(run: Run, small: Path) -> None:
    """Manifests that cannot be read are a note, and do not stop the undo."""
    assert run("apply", "--auto-approve").code == 0
    write(small / "more.yaml", an_action("more"))
    made = run("apply", "--auto-approve", "--format", "json")
    assert made.code == 0, made.all
    saved = run("undo", "--last", "manifests", "--prune", "--out", "undo.plan")
    assert saved.code == 0, saved.all
    assert "UNDO-STILL-DECLARED" in saved.err
    assert "Action acme/more" in saved.err
    write(small / "more.yaml", "kind: [")

    ran = run("apply", "undo.plan", "--prune")

    assert ran.code == 0, ran.all
    assert ran.err.count("UNDO-MANIFESTS-NOT-READ") == 1
    assert "more" not in run("export").out
