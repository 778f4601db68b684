"""Which tree owns an object, through the real command: embedded and against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import ORGANIZATION, Ran, Run, an_action, an_application, write
from tests.direct import Direct
from tests.running import running_server

NONE = "OIDC_AUTH_METHOD_TYPE_NONE"
WEB = "OidcApplication/acme/shop/web"
TAKE_OVER = ("--take-over", WEB)


@dataclass
class Place:
    """A service, the program that is told of it, and a folder for each tree."""

    run: Run
    folder: Path
    direct: Direct

    def tree(self, name: str, **manifests: str) -> None:
        """Write the manifests of a tree: each of them with the organization."""
        write(self.folder / name / "organization.yaml", ORGANIZATION)
        for file, text in manifests.items():
            write(self.folder / name / f"{file}.yaml", text)

    def __call__(self, command: str, tree: str, *arguments: str) -> Ran:
        more = ("--auto-approve",) if command == "apply" else ()
        return self.run(command, tree, "--tree", tree, *more, *arguments)

    def plan(self, tree: str, *arguments: str) -> dict[str, Any]:
        """Return a plan as JSON."""
        ran = self("plan", tree, "--format", "json", *arguments)
        assert ran.code == 0, ran.all
        plan: dict[str, Any] = ran.json
        return plan


def codes(plan: dict[str, object]) -> list[str]:
    """Return the codes of the findings of a plan."""
    found = plan["diagnostics"]
    assert isinstance(found, list)
    return [finding["code"] for finding in found]


EVERYWHERE = pytest.mark.parametrize("place", ["embedded", "served"], indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest, run: Run, tmp_path: Path) -> Iterator[Place]:
    """Return a service of which the trees know nothing yet; tests that are ``EVERYWHERE`` get each.

    A process takes its time, so what only the planner decides is tried on one service alone.
    """
    if getattr(request, "param", "embedded") == "embedded":
        store = tmp_path / ".reconciler" / "identity.db"
        write(tmp_path / "owners" / "organization.yaml", ORGANIZATION)
        assert run("apply", "owners", "--tree", "owners", "--auto-approve").code == 0
        yield Place(run, tmp_path, Direct(store))
        return
    (tmp_path / "server").mkdir()
    with running_server(tmp_path / "server") as server:
        known = {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token()}

        def told(*arguments: str, **more: str) -> Ran:
            return run(*arguments, **{**known, **more})

        yield Place(told, tmp_path, Direct(server.store))


def public(name: str, **spec: object) -> str:
    """Return an application that has no client secret."""
    return an_application(name, authMethodType=NONE, **spec)


@EVERYWHERE
def test_a_manifest_that_moves_to_another_tree_is_not_deleted_by_the_first(place: Place) -> None:
    """It keeps its client id: the other tree takes it over, and from then on it alone deletes."""
    place.tree("a", web=public("web"), greet=an_action(), stay=public("stay"))
    place.tree("b", other=an_action("other"))
    assert place("apply", "a").code == 0
    held = place.direct.objects()["web"]["id"]
    (place.folder / "a" / "web.yaml").rename(place.folder / "b" / "web.yaml")

    before = place.plan("b")
    taking = place.plan("b", *TAKE_OVER)
    shown = place("plan", "b", *TAKE_OVER).out

    assert "PLAN-OTHER-TREE" in codes(before)
    assert [change["ref"]["name"] for change in before["changes"]] == ["other"]
    assert f"--take-over {WEB}" in json.dumps(before["diagnostics"])
    (change,) = [each for each in taking["changes"] if each["ref"]["name"] == "web"]
    assert (change["change"], change["id"], change["risks"]) == ("adopt", held, [])
    assert [tuple(field.values())[:3] for field in change["fields"]] == [("owner", "a", "b")]
    assert 'owner: "a" -> "b"' in shown
    assert taking["digest"] != before["digest"]

    assert place("apply", "b", *TAKE_OVER).code == 0
    assert place("plan", "b", *TAKE_OVER, "--detailed-exitcode").code == 0
    assert place.direct.objects()["web"]["owner"] == "b"
    plan = place.plan("a", "--prune-unmanaged")
    (left,) = [each for each in plan["unmanaged"] if each["name"] == "web"]
    assert plan["summary"]["delete"] == 0
    assert (left["id"], left["owner"], left["deleted_by"]) == (held, "b", None)
    pruned = place("apply", "a", "--prune")
    assert pruned.code == 0
    assert f"OidcApplication acme/shop/web  (id {held}, tree b owns it)" in pruned.out
    assert "web" in place.direct.objects()

    (place.folder / "b" / "web.yaml").unlink()
    assert place("apply", "b", "--prune").code == 0
    assert "web" not in place.direct.objects()


def test_a_saved_plan_takes_over_only_with_the_flag_it_was_made_with(place: Place) -> None:
    """What is approved is what is done."""
    place.tree("a", web=public("web"))
    place.tree("b", web=public("web"))
    place("apply", "a")
    assert place("plan", "b", *TAKE_OVER, "--out", "plan.json").code == 0

    without = place.run("apply", "plan.json", "b", "--tree", "b")
    given = place.run("apply", "plan.json", "b", "--tree", "b", *TAKE_OVER)

    assert without.code == 4
    assert f"with {' '.join(TAKE_OVER)}".casefold() in without.err.casefold()
    assert given.code == 0, given.all
    assert place.direct.objects()["web"]["owner"] == "b"
    history = place.run("history", WEB, "--format", "json").json["events"]
    assert [event["tree"] for event in history] == ["a", "b"]


def by_hand(place: Place, operation: str, **fields: object) -> None:
    """Make something of the organization as a person does, without a context."""
    (owner,) = [
        found["id"] for found in place.direct("ListOrgs")["result"] if found["name"] == "acme"
    ]
    place.direct(operation, organization=owner, **fields)


def test_only_prune_unmanaged_takes_what_no_tree_owns(place: Place) -> None:
    """And only what no other tree owns."""
    place.tree("a", web=public("web"))
    place.tree("b", greet=an_action(), keep=an_action("keep"))
    place("apply", "a")
    place("apply", "b")
    by_hand(place, "CreateAction", name="made", script="function made() {}", timeout="5s")
    (place.folder / "b" / "greet.yaml").unlink()

    fates = {each["name"]: each["deleted_by"] for each in place.plan("b")["unmanaged"]}
    pruned = place.plan("b", "--prune")
    every = place.plan("b", "--prune-unmanaged", "--allow-deletes", "9")

    assert (fates["greet"], fates["made"], fates["web"]) == ("--prune", "--prune-unmanaged", None)
    assert [change["ref"]["name"] for change in pruned["changes"]] == ["greet"]
    assert sorted(change["ref"]["name"] for change in every["changes"]) == ["greet", "made"]
    assert "PLAN-NO-OWNERS" not in codes(every)


@EVERYWHERE
def test_preventing_the_delete_of_what_was_made_by_hand_protects_it(place: Place) -> None:
    """It is a change of its own, it is recorded, and it outlives the manifest."""
    by_hand(place, "CreateAction", name="made", script="function made() {}", timeout="5s")
    manifest = json.loads(an_action("made", script="function made() {}", timeout="5s"))
    place.tree("a", keep=an_action("keep"), made=json.dumps(manifest))
    assert place("apply", "a").code == 0
    manifest["metadata"]["preventDelete"] = True
    write(place.folder / "a" / "made.yaml", json.dumps(manifest))

    changes = place.plan("a")["changes"]
    assert [field["name"] for field in changes[0]["fields"]] == ["metadata.preventDelete"]
    assert place("apply", "a").code == 0
    assert place("plan", "a", "--detailed-exitcode").code == 0
    (place.folder / "a" / "made.yaml").unlink()
    blocked = place("plan", "a", "--prune-unmanaged", "--format", "json").json

    assert "GUARD-PREVENT-DELETE" in codes(blocked)


@EVERYWHERE
def test_a_rotation_makes_no_owner(place: Place) -> None:
    """A tree that only replaced a secret does not delete the application."""
    place.tree("a", web=an_application("web"))
    place.tree("b", greet=an_action())
    secrets = ("--secrets-to", "file:secrets")
    assert place("apply", "a", *secrets).code == 0
    assert place("apply", "b").code == 0

    rotate = ("secret", "rotate", "acme/shop/web", "--tree", "b", *secrets)
    rotated = place.run(*rotate, RECONCILER_AUTO_APPROVE="1")

    assert rotated.code == 0, rotated.all
    assert place.direct.objects()["web"]["owner"] == "a"
    plan = place.plan("b", "--prune")
    assert plan["changes"] == []
    assert [each["owner"] for each in plan["unmanaged"] if each["name"] == "web"] == ["a"]
