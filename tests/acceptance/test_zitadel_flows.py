"""Action flows of a ZITADEL through the command line, in both generations of its servers."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.acceptance.conftest import ORGANIZATION, Run, an_action, write
from tests.acceptance.test_action_flows import ACCESS_TOKEN, USERINFO, a_flow
from tests.acceptance.zitadel import a_zitadel
from tests.zitadel.stand_in import GENERATIONS, FakeZitadel

CLEARED = ("--auto-approve", "--prune-unmanaged", "--allow-deletes", "9")


class Zitadel(NamedTuple):
    """A stand-in, the manifests for it, and what runs the program against it."""

    fake: FakeZitadel
    tree: Path
    run: Run
    known: dict[str, str]

    def __call__(self, *arguments: str) -> Any:
        return self.run(*arguments, **self.known)

    def triggers(self, flow: str = "2") -> dict[str, list[str]]:
        """Return the names of the actions that a flow runs, by the number of the trigger."""
        item = self.fake.held["flows"].get(f"{self.fake.organization}-{flow}", {"triggers": {}})
        names = {action["id"]: action["name"] for action in self.fake.held["actions"].values()}
        return {
            number: [names[action] for action in actions]
            for number, actions in item["triggers"].items()
            if actions
        }


@pytest.fixture(params=GENERATIONS)
def zitadel(run: Run, tree: Path, request: pytest.FixtureRequest) -> Iterator[Zitadel]:
    write(tree / "organization.yaml", ORGANIZATION)
    for name in ("greet", "log"):
        write(tree / f"{name}.yaml", an_action(name))
    with a_zitadel(version=request.param) as (fake, known):
        yield Zitadel(fake, tree, run, known)


def test_a_flow_is_made_changed_exported_and_cleared(zitadel: Zitadel) -> None:
    """What another run holds is in step; a delete needs --prune-unmanaged."""
    manifest = write(zitadel.tree / "token.yaml", a_flow({USERINFO: ["log", "greet"]}))
    made = zitadel("apply", "--auto-approve")
    first = zitadel.triggers()
    again = zitadel("plan", "--detailed-exitcode")
    exported = zitadel("export", "ActionFlow/acme/COMPLEMENT_TOKEN")
    write(manifest, a_flow({ACCESS_TOKEN: ["greet"]}))
    changed = zitadel("apply", "--auto-approve")
    second = zitadel.triggers()
    manifest.unlink()
    kept = zitadel("plan", "--prune", "--detailed-exitcode")
    cleared = zitadel("apply", *CLEARED)
    after = zitadel("plan", "--prune-unmanaged", "--detailed-exitcode")

    assert (made.code, changed.code, cleared.code) == (0, 0, 0), made.all + changed.all
    assert (first, second) == ({"4": ["log", "greet"]}, {"5": ["greet"]})
    assert zitadel.triggers() == {}
    assert (again.code, after.code) == (0, 0), again.all + after.all
    assert f"  {USERINFO}:\n    - log\n    - greet\n" in exported.out
    assert kept.code == 0
    assert "--prune-unmanaged would delete it" in kept.out
    assert "deleted  ActionFlow acme/COMPLEMENT_TOKEN" in cleared.out


def test_a_flow_that_another_tool_made_is_adopted_and_owned_whole(zitadel: Zitadel) -> None:
    """What it ran at other triggers is shown as a reset, and emptied."""
    assert zitadel("apply", "--auto-approve").code == 0
    log = zitadel.fake.named("actions", "log")[0]["id"]
    asked = {"flowType": "2", "triggerType": "5", "actionIds": [log]}
    zitadel.fake.flows.set(asked, zitadel.fake.organization)
    write(zitadel.tree / "token.yaml", a_flow({USERINFO: ["greet"]}))

    refused = zitadel("plan", "--no-adopt", "--detailed-exitcode")
    planned = zitadel("plan", "--format", "json").json
    applied = zitadel("apply", "--auto-approve")

    (change,) = planned["changes"]
    fields = {each["name"]: each for each in change["fields"]}
    assert (change["change"], fields[ACCESS_TOKEN]["reset"]) == ("adopt", True)
    assert [risk["class"] for risk in change["risks"]] == [
        "trigger-emptied",
        "trigger-action-added",
    ]
    assert refused.code == 3
    assert applied.code == 0, applied.all
    assert zitadel.triggers() == {"4": ["greet"]}


def test_a_tree_without_flows_asks_for_none(zitadel: Zitadel) -> None:
    """Each costs a request. What prunes, exports and looks for drift sees them all the same."""
    assert zitadel("apply", "--auto-approve").code == 0
    greet = zitadel.fake.named("actions", "greet")[0]["id"]
    asked = {"flowType": "1", "triggerType": "1", "actionIds": [greet]}
    zitadel.fake.flows.set(asked, zitadel.fake.organization)
    zitadel.fake.calls.clear()

    planned = zitadel("plan", "--detailed-exitcode")
    calls = zitadel.fake.calls.get("GetFlow", 0)
    exported = zitadel("export")
    pruned = zitadel("plan", "--prune")

    assert (planned.code, calls) == (0, 0)
    assert "POST_AUTHENTICATION:\n    - greet\n" in exported.out
    assert "ActionFlow acme/EXTERNAL_AUTHENTICATION" in pruned.out


def test_a_flow_is_changed_before_its_action_is_deleted(zitadel: Zitadel) -> None:
    manifest = write(zitadel.tree / "token.yaml", a_flow({USERINFO: ["log", "greet"]}))
    assert zitadel("apply", "--auto-approve").code == 0
    (zitadel.tree / "log.yaml").unlink()

    refused = zitadel("plan", "--prune-unmanaged")
    write(manifest, a_flow({USERINFO: ["greet"]}))
    applied = zitadel("apply", *CLEARED)

    assert refused.code == 1
    assert "PLAN-ACTION-IN-USE" in refused.err
    assert applied.code == 0, applied.all
    assert zitadel.triggers() == {"4": ["greet"]}
    assert zitadel.fake.named("actions", "log") == []


def test_a_flow_runs_the_action_that_takes_the_name_of_a_removed_one(zitadel: Zitadel) -> None:
    """The name is free only after the delete, which changes each flow that ran the action."""
    manifest = write(zitadel.tree / "token.yaml", a_flow({USERINFO: ["log", "greet"]}))
    assert zitadel("apply", "--auto-approve").code == 0
    renamed = json.loads(an_action("log"))
    renamed["metadata"]["id"] = zitadel.fake.named("actions", "greet")[0]["id"]
    (zitadel.tree / "greet.yaml").unlink()
    write(zitadel.tree / "log.yaml", json.dumps(renamed))
    write(manifest, a_flow({ACCESS_TOKEN: ["log"]}))

    applied = zitadel("apply", *CLEARED)

    assert applied.code == 0, applied.all
    assert zitadel.triggers() == {"5": ["log"]}


@pytest.mark.parametrize("killed_at", ["", "C4"])
def test_a_plan_that_empties_a_flow_goes_on(zitadel: Zitadel, killed_at: str) -> None:
    """A service without events: the flow is done where it is gone."""
    manifest = write(zitadel.tree / "token.yaml", a_flow({USERINFO: ["log", "greet"]}))
    assert zitadel("apply", "--auto-approve").code == 0
    write(manifest, a_flow({}))
    assert zitadel("plan", "--out", "plan.json").code == 0

    known = {**zitadel.known, **({"RECONCILER_CRASHPOINT": killed_at} if killed_at else {})}
    first = zitadel.run("apply", "plan.json", **known)
    again = zitadel("apply", "plan.json")

    assert first.code == (-signal.SIGKILL if killed_at else 0), first.all
    assert again.code == 0, again.all
    assert "Every change of this plan is done already." in again.err
    assert zitadel.triggers() == {}


@pytest.mark.parametrize(("left", "code"), [({"4": 2}, 0), ({"4": 1}, 4), ({"4": 2, "5": 2}, 4)])
def test_a_plan_goes_on_with_a_flow_that_is_half_emptied(
    zitadel: Zitadel, left: dict[str, int], code: int
) -> None:
    """A call empties one trigger: a kill may leave the others, and nothing but these."""
    manifest = write(
        zitadel.tree / "token.yaml", a_flow({USERINFO: ["log", "greet"], ACCESS_TOKEN: ["greet"]})
    )
    assert zitadel("apply", "--auto-approve").code == 0
    write(manifest, a_flow({}))
    assert zitadel("plan", "--out", "plan.json").code == 0
    flow = zitadel.fake.held["flows"][f"{zitadel.fake.organization}-2"]
    actions = flow["triggers"]["4"]
    flow["triggers"] = {number: actions[:count] for number, count in left.items()}
    zitadel.fake.things.touch("flows", flow)

    again = zitadel("apply", "plan.json")

    assert again.code == code, again.all
    assert (zitadel.triggers() == {}) is (code == 0)
