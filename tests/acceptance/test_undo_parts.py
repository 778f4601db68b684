"""The undo of a part of a run: ``--target``, ``--exclude`` and ``--keep``."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import Place, an_action, write
from tests.acceptance.test_action_flows import ACCESS_TOKEN, USERINFO, a_flow
from tests.acceptance.test_moments import applied, exported
from tests.acceptance.test_undo import undone
from tests.acceptance.test_undo_cases import ours, run_of, with_metadata
from tests.acceptance.ways import on_two_ways

__all__ = ["ours"]

GREET, OTHER = "Action/acme/greet", "Action/acme/other"


@pytest.fixture
def changed(ours: Place) -> str:
    """Apply two updates, change one object by hand since, and return the id of the run."""
    applied(ours.run, ours.manifests, other=an_action("other"))
    both = {"greet": an_action(timeout="7s"), "other": an_action("other", timeout="7s")}
    run_id = run_of(applied(ours.run, ours.manifests, **both))
    ours.direct.change("other", timeout="9s")
    return run_id


def timeouts(place: Place) -> tuple[str, str]:
    held = place.direct.objects()
    return held["greet"]["spec"]["timeout"], held["other"]["spec"]["timeout"]


@pytest.mark.parametrize(
    "part",
    [
        ("--target", GREET),
        ("--exclude", OTHER),
        ("--target", "Action/acme/*", "--exclude", "*/acme/oth*"),
    ],
)
def test_what_was_changed_since_and_is_not_selected_refuses_nothing(
    ours: Place, changed: str, part: tuple[str, ...]
) -> None:
    """The whole is refused and names the object; the part is undone, and the rest stays."""
    whole = ours.run("undo", changed, "--auto-approve")
    ran = ours.run("undo", changed, "--auto-approve", *part)

    assert whole.code == 4, whole.all
    assert OTHER in whole.err
    assert ran.code == 0, ran.all
    assert timeouts(ours) == ("20s", "9s")


@pytest.mark.parametrize("part", [("--target", OTHER), ("--exclude", GREET)])
def test_what_was_changed_since_and_is_selected_is_refused(
    ours: Place, changed: str, part: tuple[str, ...]
) -> None:
    ran = ours.run("undo", changed, "--auto-approve", *part)

    assert ran.code == 4, ran.all
    assert f"--keep {OTHER}" in ran.err
    assert timeouts(ours) == ("7s", "9s")


@on_two_ways
def test_a_part_of_an_undo_is_saved_and_applied_by_its_file(ours: Place, changed: str) -> None:
    saved = ours.run("undo", changed, "--out", "undo.plan", "--target", GREET)
    assert saved.code == 0, saved.all

    whole = ours.run("apply", "undo.plan")
    ran = ours.run("apply", "undo.plan", "--target", GREET)

    assert whole.code == 4, whole.all
    assert ran.code == 0, ran.all
    assert timeouts(ours) == ("20s", "9s")


def test_what_the_selected_part_needs_and_was_changed_since_is_refused(ours: Place) -> None:
    """A flow needs its action, which cannot come back with what it was."""
    applied(ours.run, ours.manifests, other=an_action("other"), flow=a_flow({USERINFO: ["other"]}))
    flow = a_flow({ACCESS_TOKEN: ["greet"]})
    run_id = run_of(
        applied(ours.run, ours.manifests, flow=flow, other=an_action("other", timeout="7s"))
    )
    applied(ours.run, ours.manifests, other="")
    held = exported(ours.run)

    ran = ours.run("undo", run_id, "--auto-approve", "--target", "ActionFlow/acme/*")

    assert ran.code == 4, ran.all
    assert "Action acme/other before the run, and that is not held now" in ran.err
    assert "--keep ActionFlow/acme/COMPLEMENT_TOKEN" in ran.err
    assert exported(ours.run) == held


def test_what_the_run_made_is_deleted_by_name(ours: Place) -> None:
    """An undo knows what the run made, so that a part of it may be pruned."""
    made = {"greet": an_action(timeout="7s"), "one": an_action("one"), "two": an_action("two")}
    run_id = run_of(applied(ours.run, ours.manifests, **made))

    ran = ours.run("undo", run_id, "--prune", "--auto-approve", "--target", "Action/acme/one")

    assert ran.code == 0, ran.all
    assert {"one", "two"} & ours.direct.objects().keys() == {"two"}
    undone(ours.run, run_id)
    assert "two" not in ours.direct.objects()
    assert ours.direct.objects()["greet"]["spec"]["timeout"] == "20s"


def test_what_was_renamed_is_kept_by_either_name(ours: Place) -> None:
    held = ours.direct.objects()["greet"]
    renamed = with_metadata(an_action("welcome"), id=held["id"])
    run_id = run_of(applied(ours.run, ours.manifests, greet=renamed, more=an_action("more")))

    for name in ("greet", "welcome"):
        ran = ours.run("undo", run_id, "--auto-approve", "--keep", f"Action/acme/{name}")
        assert ran.code == 0, ran.all
        assert "welcome" in ours.direct.objects()
    wrong = ours.run("undo", run_id, "--auto-approve", "--keep", "Action/acme/greets")

    assert wrong.code == 1, wrong.all
    assert "--keep names nothing that is held: Action acme/greets" in wrong.err


@on_two_ways
def test_a_flow_follows_its_action_that_gets_its_name_back(ours: Place) -> None:
    """The run wrote to the action alone: the flow has its id."""
    applied(ours.run, ours.manifests, flow=a_flow({USERINFO: ["greet"]}))
    before = exported(ours.run)
    renamed = with_metadata(an_action("welcome"), id=ours.direct.objects()["greet"]["id"])
    flow = a_flow({USERINFO: ["welcome"]})
    run_id = run_of(applied(ours.run, ours.manifests, greet=renamed, flow=flow))

    undone(ours.run, run_id)

    assert exported(ours.run) == before


def test_what_the_run_made_and_others_use_by_now_is_not_deleted(ours: Place) -> None:
    """The flow of another tree names it since: said in words of an undo."""
    run_id = run_of(applied(ours.run, ours.manifests, more=an_action("more")))
    write(ours.folder / "theirs" / "flow.yaml", a_flow({USERINFO: ["more"]}))
    theirs = ours.run("apply", "theirs", "--tree", "other", "--auto-approve")
    assert theirs.code == 0, theirs.all

    refused = ours.run("undo", run_id, "--prune", "--auto-approve")
    kept = ours.run("undo", run_id, "--auto-approve")

    assert refused.code == 4, refused.all
    assert "ActionFlow acme/COMPLEMENT_TOKEN names it since" in refused.err
    assert "--keep Action/acme/more" in refused.err
    assert "manifest" not in refused.err
    assert kept.code == 0, kept.all
    assert "more" in ours.direct.objects()


@on_two_ways
def test_a_name_that_the_run_gave_to_a_new_object_comes_back_with_prune(ours: Place) -> None:
    """Without it the undo says which flag deletes the new one."""
    before = exported(ours.run)
    held = ours.direct.objects()["greet"]["id"]
    both = with_metadata(an_action("welcome"), id=held) + "\n---\n" + an_action("greet")
    run_id = run_of(applied(ours.run, ours.manifests, greet=both))

    refused = ours.run("undo", run_id, "--auto-approve")
    part = ours.run("undo", run_id, "--auto-approve", "--prune", "--target", "Action/acme/welcome")
    undone(ours.run, run_id)

    assert refused.code == 4, refused.all
    assert "--prune" in refused.err
    assert exported(ours.run) == before
    assert ours.direct.objects()["greet"]["id"] == held
    assert part.code == 4, part.all
