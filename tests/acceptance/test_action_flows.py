"""Action flows through the command line: planned, applied, reset, adopted, exported, ended."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, Place, Run, an_action, write
from tests.direct import Direct

USERINFO, ACCESS_TOKEN = "PRE_USERINFO_CREATION", "PRE_ACCESS_TOKEN_CREATION"


def a_flow(spec: Mapping[str, list[str]], name: str = "COMPLEMENT_TOKEN") -> str:
    """Return the manifest of a flow."""
    metadata = {"organization": "acme", "name": name}
    return json.dumps(
        {"apiVersion": "reconciler/v1", "kind": "ActionFlow", "metadata": metadata, "spec": spec}
    )


@pytest.fixture
def flow(small: Path) -> Path:
    """Return the manifest of a flow that runs two actions of the small tree."""
    for file in ("web.yaml", "spa.yaml", "partner.yaml"):
        (small / file).unlink()
    write(small / "log.yaml", an_action("log"))
    return write(small / "token.yaml", a_flow({USERINFO: ["log", "greet"]}))


def test_a_flow_is_applied_reset_exported_and_ended(flow: Path, place: Place) -> None:
    """It names actions that the same run makes; what is left out later is taken back."""
    run = place.run
    made = run("apply", "--auto-approve")
    again = run("plan", "--detailed-exitcode")
    exported = run("export", "ActionFlow/acme/COMPLEMENT_TOKEN")
    write(flow, a_flow({ACCESS_TOKEN: ["greet"]}))
    planned = run("plan")
    changed = run("apply", "--auto-approve")
    history = run("history", "ActionFlow/acme/COMPLEMENT_TOKEN")
    flow.unlink()
    left = run("plan")
    ended = run("apply", "--auto-approve", "--prune", "--allow-deletes", "1")
    after = run("plan", "--detailed-exitcode", "--prune")

    assert made.code == 0, made.all
    assert "created  ActionFlow acme/COMPLEMENT_TOKEN" in made.out
    assert (again.code, after.code) == (0, 0), again.all + after.all
    assert f"  {USERINFO}:\n    - log\n    - greet\n" in exported.out
    assert f"{USERINFO}:  # not in the manifest: the update resets it" in planned.out
    assert changed.code == 0, changed.all
    assert "removed" not in history.out
    assert "--prune would delete it" in left.out
    assert ended.code == 0, ended.all


def test_a_flow_that_another_writer_made_is_adopted(flow: Path, place: Place) -> None:
    """The plan says so, and --no-adopt refuses."""
    run = place.run
    flow.unlink()
    assert run("apply", "--auto-approve").code == 0
    log = place.direct.objects()["log"]
    of_flow = {"flowType": "2", "triggerType": "4", "actionIds": [log["id"]]}
    place.direct("SetTriggerActions", log["organizationId"], **of_flow)
    write(flow, a_flow({USERINFO: ["greet"]}))

    planned = run("plan", "--format", "json").json
    refused = run("plan", "--detailed-exitcode", "--no-adopt")
    adopted = run("apply", "--auto-approve")

    (change,) = planned["changes"]
    assert (change["change"], change["fields"][0]["before"]) == ("adopt", ["log"])
    assert refused.code == 3
    assert adopted.code == 0, adopted.all
    assert run("plan", "--detailed-exitcode").code == 0


def test_an_unknown_action_is_told_offline_and_in_the_plan(run: Run, flow: Path) -> None:
    write(flow, a_flow({USERINFO: ["log", "gret"]}))

    offline, planned = run("validate"), run("plan")

    assert offline.code == 0
    assert "REF-UNDECLARED" in offline.all
    assert planned.code == 1
    assert "Action acme/gret is neither declared nor held" in planned.err
    assert "Did you mean greet?" in planned.err


def test_a_protected_flow_is_emptied_once_its_protection_is_lifted(run: Run, flow: Path) -> None:
    """The empty manifest would take the flow off the service, as a delete does."""

    def applied(spec: Mapping[str, list[str]], *, is_protected: bool) -> int:
        manifest = json.loads(a_flow(spec))
        manifest["metadata"]["preventDelete"] = is_protected
        write(flow, json.dumps(manifest))
        return run("apply", "--auto-approve").code

    runs = {USERINFO: ["log"]}
    assert applied(runs, is_protected=True) == 0
    assert [applied({}, is_protected=mark) for mark in (True, False)] == [3, 3]
    assert [applied(spec, is_protected=False) for spec in (runs, {})] == [0, 0]


EMPTYING = ("apply", "plan.json", "--allow-updates", "9")


@pytest.mark.parametrize("killed_at", ["", "C4", "C11"])
def test_a_plan_that_empties_a_flow_goes_on(flow: Path, place: Place, killed_at: str) -> None:
    """The service holds no object then: the event of its removal tells that this plan did it."""
    run = place.run
    write(flow, a_flow({USERINFO: ["log", "greet"], ACCESS_TOKEN: ["greet"]}))
    assert run("apply", "--auto-approve").code == 0
    write(flow, a_flow({}))
    write(flow.parent / "late.yaml", an_action("late"))
    assert run("plan", "--out", "plan.json").code == 0

    known = {"RECONCILER_CRASHPOINT": killed_at} if killed_at else {}
    first = run(*EMPTYING, **known)
    again = run(*EMPTYING)
    once_more = run(*EMPTYING)

    assert first.code == (-signal.SIGKILL if killed_at else 0), first.all
    assert (again.code, once_more.code) == (0, 0), again.all + once_more.all
    assert "Every change of this plan is done already." in once_more.err
    assert run("plan", "--detailed-exitcode").code == 0


def test_a_plan_does_not_go_on_where_another_writer_emptied_the_flow(
    flow: Path, place: Place
) -> None:
    """Nor where it was filled again since."""
    run = place.run
    assert run("apply", "--auto-approve").code == 0
    write(flow, a_flow({}))
    assert run("plan", "--out", "plan.json").code == 0
    log = place.direct.objects()["log"]
    of_flow = {"flowType": "2", "triggerType": "4"}

    place.direct("SetTriggerActions", log["organizationId"], **of_flow, actionIds=[])
    emptied = run(*EMPTYING)
    place.direct("SetTriggerActions", log["organizationId"], **of_flow, actionIds=[log["id"]])
    filled = run(*EMPTYING)

    assert (emptied.code, filled.code) == (4, 4)
    assert "ActionFlow acme/COMPLEMENT_TOKEN: gone from the service" in emptied.err


def test_a_critical_flow_is_guarded_and_its_drift_is_told(run: Run, flow: Path) -> None:
    """What another writer did to a trigger is told by name, with the trigger."""
    manifest = json.loads(a_flow({USERINFO: ["log", "greet"]}))
    manifest["metadata"]["critical"] = True
    write(flow, json.dumps(manifest))
    assert run("apply", "--auto-approve").code == 0
    direct = Direct(flow.parents[1] / ".reconciler" / "identity.db")
    log = direct.objects()["log"]
    of_flow = {"flowType": "2", "triggerType": "5", "actionIds": [log["id"]]}
    direct("SetTriggerActions", log["organizationId"], **of_flow)

    drift = run("drift", "--format", "json").json
    write(flow.parent / "greet.yaml", an_action("greet", script="function greet() { exit() }"))
    blocked = run("plan", "--detailed-exitcode", "--format", "json")

    (changed,) = drift["drift"]
    fields = [(each["name"], each["held"]) for each in changed["fields"]]
    assert fields == [(ACCESS_TOKEN, ["log"])]
    assert blocked.code == 3
    guards = [each for each in blocked.json["diagnostics"] if each["code"] == "GUARD-CRITICAL"]
    assert {each["summary"] for each in guards} == {
        "a critical object would be weakened",
        "an action of a critical flow would be changed",
    }


def test_a_plan_knows_an_action_that_another_writer_removed(run: Run, flow: Path) -> None:
    """The manifest is as it was applied, so the difference is that writer's alone."""
    assert run("apply", "--auto-approve").code == 0
    direct = Direct(flow.parents[1] / ".reconciler" / "identity.db")
    log = direct.objects()["log"]
    direct("DeleteAction", log["organizationId"], id=log["id"])

    planned = run("plan", "--format", "json").json
    history = run("history", "ActionFlow/acme/COMPLEMENT_TOKEN")

    (changed,) = [each for each in planned["changes"] if each["change"] == "update"]
    assert [each["cause"]["kind"] for each in changed["fields"]] == ["changed_on_service"]
    assert '- "log"' in history.out
    assert "action of id" not in history.out


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_flow_runs_the_action_that_takes_the_name_of_a_removed_one(
    run: Run, flow: Path, *, is_kept: bool
) -> None:
    """The name is free only after the delete, which changes each flow that ran the action."""
    assert run("apply", "--auto-approve").code == 0
    direct = Direct(flow.parents[1] / ".reconciler" / "identity.db")
    greet = json.loads(an_action("log"))
    greet["metadata"]["id"] = direct.objects()["greet"]["id"]
    (flow.parent / "greet.yaml").unlink()
    write(flow.parent / "log.yaml", json.dumps(greet))
    write(flow, a_flow({USERINFO: ["log"]}))
    if not is_kept:
        flow.unlink()

    applied = run("apply", "--auto-approve", "--prune", "--allow-deletes", "2")

    assert applied.code == 0, applied.all
    assert run("plan", "--prune", "--detailed-exitcode").code == 0


def test_an_action_of_the_flow_of_another_tree_is_deleted_only_by_name(
    run: Run, flow: Path
) -> None:
    """The service takes it out of that flow, and the other tree sees no plan of it."""
    theirs = write(flow.parents[1] / "theirs" / "token.yaml", flow.read_text(encoding="utf-8"))
    write(theirs.with_name("o.yaml"), ORGANIZATION)
    flow.unlink()
    assert run("apply", "--auto-approve").code == 0
    assert run("apply", "theirs", "--tree", "theirs", "--auto-approve").code == 0
    (flow.parent / "log.yaml").unlink()
    prune = ("apply", "--prune", "--auto-approve")

    stopped = run(*prune)
    allowed = run(*prune, "--break-glass", "Action/acme/log=agreed with them")

    assert stopped.code == 3
    assert "GUARD-ACTION-IN-USE" in stopped.err
    assert "which tree theirs owns, runs Action acme/log" in stopped.err
    assert allowed.code == 0, allowed.all
