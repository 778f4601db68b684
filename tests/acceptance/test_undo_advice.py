"""What an undo says of the manifests: a commit to revert, or those that differ."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import Place, an_action, write
from tests.acceptance.test_moments import applied, exported
from tests.acceptance.test_undo import undone
from tests.acceptance.test_undo_cases import commit_in, ours, run_of
from tests.acceptance.ways import on_two_ways

__all__ = ["ours"]

GREET = "Action/acme/greet"


def test_without_a_commit_the_manifests_that_differ_are_named(ours: Place) -> None:
    """One that differs, one that the undo brought back, and none that is in step."""
    files = {"greet": an_action(timeout="7s"), "more": an_action("more"), "partner": ""}
    run_id = run_of(applied(ours.run, ours.manifests, **files))
    write(ours.manifests / "more.yaml", an_action("less"))

    ran = ours.run("undo", run_id, "--auto-approve", "--prune")

    assert ran.code == 0, ran.all
    assert "manifests/greet.yaml:1: Action acme/greet\n" in ran.err
    assert "reconciler export IdpJwtConfig/acme/partner\n" in ran.err
    advice = ran.err[ran.err.index("These differ:") :]
    assert len(advice.splitlines()) == 3, advice


def test_manifests_that_say_the_same_are_said_to(ours: Place) -> None:
    before = (ours.manifests / "greet.yaml").read_text()
    run_id = run_of(applied(ours.run, ours.manifests, greet=an_action(timeout="7s")))
    write(ours.manifests / "greet.yaml", before)

    ran = ours.run("undo", run_id, "--auto-approve")

    assert ran.code == 0, ran.all
    assert "The manifests say the same" in ran.err


def test_manifests_that_cannot_be_read_stop_nothing(ours: Place) -> None:
    run_id = run_of(applied(ours.run, ours.manifests, greet=an_action(timeout="7s")))
    write(ours.manifests / "greet.yaml", "kind: [")

    ran = ours.run("undo", run_id, "--auto-approve")

    assert ran.code == 0, ran.all
    assert "Change the manifests to what is held now" in ran.err


@pytest.mark.parametrize("part", [("--keep", GREET), ("--exclude", GREET)])
def test_a_part_of_a_commit_is_not_reverted(ours: Place, part: tuple[str, str]) -> None:
    """Git revert would take back what stays as well; where nothing was undone nothing is said."""
    commit_in(ours.folder)
    assert ours.run("apply", "--auto-approve").code == 0
    applied(ours.run, ours.manifests, other=an_action("other"))
    commit_in(ours.folder)
    assert ours.run("apply", "--auto-approve").code == 0
    for name in ("greet", "other"):
        write(ours.manifests / f"{name}.yaml", an_action(name, timeout="7s"))
    commit_in(ours.folder)
    run_id = run_of(applied(ours.run, ours.manifests))

    some = ours.run("undo", run_id, "--auto-approve", *part)
    nothing = ours.run("undo", run_id, "--auto-approve", *part)

    assert some.code == 0, some.all
    assert "git revert" not in some.err
    assert "manifests/other.yaml:1: Action acme/other\n" in some.err
    assert "manifests/greet.yaml" not in some.err
    assert nothing.code == 0, nothing.all
    assert "No changes." in nothing.out
    assert "git revert" not in nothing.err
    assert "manifests" not in nothing.err


def test_a_path_that_leads_nowhere_is_refused_before_anything_is_written(ours: Place) -> None:
    """With --prune and without, and beside a plan file."""
    run_id = run_of(applied(ours.run, ours.manifests, greet=an_action(timeout="7s")))
    held = exported(ours.run)
    assert ours.run("undo", run_id, "manifests", "--out", "undo.plan").code == 0

    for words in (
        ("undo", run_id, "manifest", "--auto-approve"),
        ("undo", run_id, "manifest", "--prune", "--auto-approve"),
        ("undo", run_id, "manifests", "manifest", "--out", "other.plan"),
        ("undo", "--last", "manifests", "manifest", "--auto-approve"),
        ("apply", "undo.plan", "manifest"),
    ):
        refused = ours.run(*words)
        assert refused.code == 1, refused.all
        assert "manifest does not exist" in refused.err
    assert exported(ours.run) == held
    undone(ours.run, run_id, "manifests")


@on_two_ways
def test_a_stale_approval_of_an_undo_names_the_undo(ours: Place) -> None:
    """By digest, and by a file with other options."""
    run_id = run_of(applied(ours.run, ours.manifests, greet=an_action(timeout="7s")))
    assert ours.run("undo", run_id, "--out", "undo.plan").code == 0

    digest = ours.run("undo", run_id, "--digest", f"sha256:{'0' * 64}")
    options = ours.run("apply", "undo.plan", "--prune")

    for refused in (digest, options):
        assert refused.code == 4, refused.all
        assert f"Run `reconciler undo {run_id}` again" in refused.err
        assert "reconciler plan" not in refused.err
