"""The main job as a user does it: write, plan, apply, and nothing is left to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.conftest import ROOT, Run, an_action, an_application, write


def test_a_starter_is_planned_applied_and_then_in_step(run: Run) -> None:
    """The first five minutes with the tool work from an empty folder."""
    assert run("init").code == 0
    assert run("validate").code == 0
    assert run("plan", "--detailed-exitcode").code == 2
    assert run("apply", "--auto-approve").code == 0

    after = run("plan", "--detailed-exitcode")

    assert after.code == 0
    assert "\n\nNo changes." in after.out


def test_the_example_organization_converges(run: Run) -> None:
    """What the repository shows is what works."""
    manifests = str(ROOT / "manifests")
    applied = run("apply", manifests, "--auto-approve", "--format", "json")

    assert applied.code == 0
    assert applied.json["summary"]["remaining"] == 0
    assert applied.json["summary"]["failed"] == 0
    assert run("plan", manifests, "--detailed-exitcode").code == 0


def test_plan_never_writes(run: Run, small: Path, tmp_path: Path) -> None:
    """Looking makes nothing, not even the store's folder."""
    before = sorted(tmp_path.rglob("*"))

    assert run("plan").code == 0

    assert sorted(tmp_path.rglob("*")) == before


def test_one_changed_field_is_one_update_that_names_just_that_field(run: Run, small: Path) -> None:
    """A reviewer sees what was meant and nothing else."""
    run("apply", "--auto-approve")
    write(small / "greet.yaml", an_action(timeout="5s"))

    plan = run("plan", "--format", "json").json

    assert plan["summary"]["update"] == 1
    (change,) = plan["changes"]
    assert change["ref"]["name"] == "greet"
    (field,) = change["fields"]
    assert field.pop("cause")["kind"] == "declared"
    assert field == {
        "name": "timeout",
        "before": "20s",
        "after": "5s",
        "reset": False,
        "kept": False,
    }


def test_one_changed_item_of_a_list_is_the_same_in_every_form(run: Run, small: Path) -> None:
    """Words, Markdown, HTML and JSON name the item that is gone and the one that came."""
    run("apply", "--auto-approve")
    write(small / "web.yaml", an_application(redirectUris=["https://new.example.com/callback"]))

    (change,) = run("plan", "--format", "json").json["changes"]

    lost, gained = change["fields"][0]["items"]
    assert (lost["added"], gained["added"], gained["position"]) == (False, True, 0)
    assert gained["value"] == "https://new.example.com/callback"
    for form in ("text", "markdown", "html"):
        shown = run("plan", "--format", form).out
        assert lost["value"] in shown, form
        assert gained["value"] in shown, form


def test_a_field_taken_out_of_a_manifest_is_marked_as_reset(run: Run, small: Path) -> None:
    """A full update resets what is left out, and says so first."""
    write(small / "greet.yaml", an_action(timeout="5s"))
    run("apply", "--auto-approve")
    write(small / "greet.yaml", an_action())

    (change,) = run("plan", "--format", "json").json["changes"]

    (field,) = change["fields"]
    assert field.pop("cause")["kind"] == "declared"
    assert field == {
        "name": "timeout",
        "before": "5s",
        "after": "20s",
        "reset": True,
        "kept": False,
    }
    assert "the update resets it" in run("plan").out


def test_what_is_declared_nowhere_is_listed_and_left_alone(run: Run, small: Path) -> None:
    """Silence in the manifests is never an order to write."""
    run("apply", "--auto-approve")
    (small / "greet.yaml").unlink()

    plan = run("plan", "--format", "json", "--detailed-exitcode")

    assert plan.code == 0
    assert [ref["name"] for ref in plan.json["unmanaged"]] == ["greet"]
    assert "Action acme/greet" in run("plan").out


def test_protection_alone_can_be_taken_back(run: Run, small: Path) -> None:
    """Changing only preventDelete is a change of its own, and it converges."""
    manifest = json.loads(an_action("keep"))
    manifest["metadata"]["preventDelete"] = True
    write(small / "keep.yaml", json.dumps(manifest))
    run("apply", "--auto-approve")
    write(small / "keep.yaml", an_action("keep"))

    assert run("apply", "--auto-approve").code == 0
    assert run("plan", "--detailed-exitcode").code == 0
    (small / "keep.yaml").unlink()
    assert run("apply", "--prune", "--auto-approve").code == 0


def test_too_many_updates_at_once_are_blocked_until_they_are_allowed(run: Run, small: Path) -> None:
    """One wrong search-and-replace does not reach every login."""
    for number in range(12):
        write(small / f"a{number}.yaml", an_action(f"a{number}"))
    run("apply", "--auto-approve")
    for number in range(5):
        write(small / f"a{number}.yaml", an_action(f"a{number}", timeout="1s"))

    blocked = run("plan", "--detailed-exitcode")
    assert blocked.code == 3
    assert "Plan: 0 to create, 5 to update, 0 to delete." in blocked.out
    assert "--allow-updates 5" in blocked.err
    assert run("plan").code == 0
    assert run("apply", "--auto-approve").code == 3
    assert run("apply", "--auto-approve", "--allow-updates", "5").code == 0


def test_references_to_what_the_service_holds_already_are_fine(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """One team owns the organization, another only adds to it."""
    run("apply", "--auto-approve")
    other = tmp_path / "other"
    write(other / "a.yaml", an_application("extra"))

    assert run("plan", "other", "--tree", "other").code == 0
    assert "REF-UNDECLARED" in run("validate", "other").out


def test_an_owner_that_exists_nowhere_is_told_with_its_place(run: Run, tree: Path) -> None:
    """Whether a project is held only the service knows; the place is still in the manifest."""
    write(tree / "web.yaml", an_application("web"))

    told = run("plan")

    assert told.code == 1
    assert "manifests/web.yaml:1:" in told.err
    assert "REF-NOT-HELD" in told.err


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["plan", "--no-such-flag"], id="an unknown flag"),
        pytest.param(["plan", "--detailed-exitcode", "--format", "xml"], id="an unknown format"),
        pytest.param(["frobnicate"], id="an unknown command"),
        pytest.param(["plan", "--service", "ftp://x"], id="an unknown service"),
        pytest.param(["plan", "--allow-updates", "-1"], id="a negative count"),
        pytest.param(["explain", "Nonsense"], id="an unknown kind"),
        pytest.param(["explain", "Action.nonsense"], id="an unknown field"),
        pytest.param(["apply", "--secrets-to", "vault:x", "--auto-approve"], id="no such sink"),
    ],
)
def test_wrong_usage_exits_1_and_never_2(run: Run, small: Path, arguments: list[str]) -> None:
    """In CI, 2 means that changes are pending; a typo must not read as that."""
    wrong = run(*arguments)

    assert wrong.code == 1
    assert wrong.err


def test_apply_without_a_terminal_wants_to_be_told_to_go_on(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """A job never hangs on a question, and never takes silence for yes."""
    refused = run("apply")

    assert refused.code == 1
    assert "--auto-approve" in refused.err
    assert "Plan: 6 to create" in refused.out
    assert not (tmp_path / ".reconciler").exists()


def test_outputs_name_every_application_in_every_form(run: Run, small: Path) -> None:
    """Deployments need client ids; they are no secret."""
    run("apply", "--auto-approve")
    applications = run("outputs", "--format", "json").json["applications"]

    ids = {app["ref"]["name"]: app["client_id"] for app in applications}

    assert set(ids) == {"web", "spa"}
    assert f"ACME_SHOP_WEB_CLIENT_ID={ids['web']}" in run("outputs", "--format", "env").out
    assert ids["spa"] in run("outputs").out


def test_the_store_folder_keeps_itself_out_of_git(run: Run, small: Path) -> None:
    """Nobody commits a store, a key or a secret by accident."""
    run("apply", "--auto-approve")

    assert (small.parent / ".reconciler" / ".gitignore").read_text() == "*\n"


def test_a_store_made_in_an_existing_folder_hides_nothing_of_it(run: Run, small: Path) -> None:
    """A .gitignore of * in somebody's own folder would hide their files."""
    run("apply", "--auto-approve", "--service", "sqlite:identity.db")

    assert not (small.parent / ".gitignore").exists()
