"""A part of a tree, through the command line: ``--target`` and ``--exclude``."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import conftest
from tests.acceptance.conftest import Place, Ran, Run, an_action, an_application, write_small
from tests.direct import Direct

WEB = "OidcApplication/globex/shop/web"
FAILING = "exec:false"  # takes no secret, so that it stays owed
COMMANDS = (("plan",), ("apply", "--auto-approve"), ("drift",))


def write(path: Path, text: str) -> Path:
    """Write a manifest of an organization that no server of these tests has from the start."""
    return conftest.write(path, text.replace("acme", "globex"))


@pytest.fixture
def small(tree: Path) -> Path:
    """Return the small tree, for that organization."""
    for file in write_small(tree).iterdir():
        write(file, file.read_text(encoding="utf-8"))
    return tree


@pytest.fixture
def place(place: Place) -> Place:
    return replace(place, direct=Direct(place.direct.store, organization="globex"))


def a_flow(*actions: str) -> str:
    return json.dumps(
        {
            "apiVersion": "reconciler/v1",
            "kind": "ActionFlow",
            "metadata": {"organization": "globex", "name": "COMPLEMENT_TOKEN"},
            "spec": {"PRE_USERINFO_CREATION": [*actions]},
        }
    )


def changes(ran: Ran) -> set[str]:
    """Return what a plan would do, or what an apply did."""
    told = ran.json.get("changes") or ran.json.get("outcomes", [])
    return {f"{each['change']} {each['ref']['kind']} {each['ref']['name']}" for each in told}


def planned(place: Place, *options: str) -> set[str]:
    return changes(place.run("plan", "--format", "json", *options))


def applied(place: Place, *options: str) -> Ran:
    ran = place.run("apply", "--auto-approve", "--format", "json", *options)
    assert ran.code == 0, ran.all
    return ran


def state(place: Place) -> dict[str, Any]:
    """Return all that is held, with sequences, by id."""
    return place.direct.objects()


EVERYTHING = {
    "create Organization globex",
    "create Project shop",
    "create OidcApplication web",
    "create OidcApplication spa",
    "create Action greet",
    "create IdpJwtConfig partner",
}


def test_one_object_goes_out_with_what_it_needs_and_nothing_else(place: Place) -> None:
    """The rest is counted before and after, and is what the next plan has."""
    plan = place.run("plan", "--target", WEB)
    done = applied(place, "--target", WEB)
    left = place.run("plan", "--format", "json")

    assert f"Part of the tree: --target {WEB}, +2 that it needs. Left out: 3 changes." in plan.out
    web = {"create Organization globex", "create Project shop", "create OidcApplication web"}
    assert changes(done) == web
    assert done.json["summary"]["remaining"] == 0
    assert done.json["summary"]["left_out"] == 3
    assert changes(left) == EVERYTHING - web
    assert left.json["selection"] is None


def test_an_apply_of_a_part_says_that_the_tree_is_not_in_step(place: Place) -> None:
    """It is done all the same: the exit code is 0, the first time and the second."""
    first, second = (
        place.run("apply", "--auto-approve", "--target", "Action/globex/*") for _ in range(2)
    )

    assert (first.code, second.code) == (0, 0), first.all + second.all
    for ran in (first, second):
        assert "The tree is not in step: 4 changes were left out." in ran.out
    assert "No changes. What is selected is held as it is declared; the rest" in second.out


def test_json_names_the_part_and_counts_the_rest(place: Place) -> None:
    """The whole tree has null in this place."""
    told = place.run(
        "plan", "--format", "json", "--target", "*/GLOBEX/shop/*", "--exclude", "*/globex/shop/spa"
    ).json

    selection = told["selection"]
    assert selection["target"] == ["*/globex/shop/*"]
    assert selection["exclude"] == ["*/globex/shop/spa"]
    assert [each["name"] for each in selection["needed"]] == ["globex", "shop"]
    assert selection["left_out"]["create"] == 3
    assert told["summary"]["create"] == 3


def test_every_form_shows_that_it_is_a_part(run: Run, small: Path) -> None:
    """A reviewer of one comment must not take it for the whole."""
    for form, words in [
        ("text", f"Part of the tree: --target {WEB}, +2 that it needs. Left out: 3 changes."),
        ("markdown", f"- Part of the tree: `--target {WEB}`, +2 that it needs. Left out: 3"),
        ("html", f"<dt>Part of the tree</dt><dd><code>--target {WEB}</code>, +2 that it needs"),
    ]:
        assert words in run("plan", "--format", form, "--target", WEB).out
        assert "Part of the tree" not in run("plan", "--format", form).out


def test_the_comment_of_a_part_is_not_that_of_the_whole(run: Run, small: Path) -> None:
    """CI finds a comment again by its first line, also where the manifests are wrong."""
    options: Sequence[Sequence[str]] = [
        (), ("--target", WEB), ("--exclude", WEB), ("--target", "OidcApplication/globex/shop/*"),
    ]  # fmt: skip
    told = [run("plan", "--format", "markdown", *each) for each in options]
    first = [ran.out.splitlines()[0] for ran in told]
    write(small / "wrong.yaml", "kind: [")
    wrong = [run("plan", "--format", "markdown", *each).out.splitlines()[0] for each in options]

    assert len({*first}) == len(options)
    assert all(re.fullmatch("<!-- reconciler-plan .* -->", line) for line in first)
    assert wrong == first


def test_what_is_held_is_not_needed(place: Place) -> None:
    """In an emergency one object goes out, and not a change of its project with it."""
    applied(place)
    write(
        place.manifests / "organization.yaml",
        (place.manifests / "organization.yaml").read_text() + "spec: {projectRoleCheck: true}\n",
    )
    write(place.manifests / "web.yaml", an_application("web", devMode=True))
    before = state(place)

    done = applied(place, "--target", WEB)

    assert changes(done) == {"update OidcApplication web"}
    after = state(place)
    assert {name for name in after if after[name] != before[name]} == {"web"}
    assert planned(place) == {"update Project shop"}
    assert planned(place, "--target", WEB, "--target", "Project/globex/*") == {
        "update Project shop"
    }


def test_a_renamed_object_has_both_names(place: Place) -> None:
    """What takes a name needs the object that gives it up, and a flow the name it knows."""
    applied(place)
    listed = place.direct.objects()
    greet = listed["greet"]["id"]
    renamed = json.loads(an_action("greets"))
    renamed["metadata"]["id"] = greet
    write(place.manifests / "greet.yaml", json.dumps(renamed))
    write(place.manifests / "new.yaml", an_action("greet"))
    write(place.manifests / "flow.yaml", a_flow("greets"))
    whole = {"update Action greets", "create Action greet", "create ActionFlow COMPLEMENT_TOKEN"}

    assert planned(place) == whole
    assert planned(place, "--target", "Action/globex/greets") == {"update Action greets"}
    assert (
        planned(place, "--exclude", "Action/globex/greet", "--exclude", "ActionFlow/*/*") == set()
    )
    taken = place.run("plan", "--exclude", "Action/globex/greets", "--exclude", "ActionFlow/*/*")
    assert "Action globex/greet needs Action globex/greets, which has another name" in taken.err
    flow = planned(place, "--target", "ActionFlow/globex/*")
    assert flow == whole - {"create Action greet"}
    assert changes(applied(place, "--target", "Action/globex/greet")) == whole - {
        "create ActionFlow COMPLEMENT_TOKEN"
    }
    applied(place)
    assert planned(place) == set()


def test_what_is_needed_and_excluded_blocks_and_both_are_named(place: Place) -> None:
    """It is blocked only where the service does not hold it."""
    options = ("--target", WEB, "--exclude", "Project/globex/shop")
    plan = place.run("plan", "--detailed-exitcode", *options)
    refused = place.run("apply", "--auto-approve", *options)

    assert (plan.code, refused.code) == (3, 3)
    for ran in (plan, refused):
        assert "error GUARD-EXCLUDED: what a selected object needs is excluded" in ran.err
        assert (
            "OidcApplication globex/shop/web needs Project globex/shop, which is not held yet"
            in (ran.err)
        )
    assert "--exclude OidcApplication/globex/shop/web" in refused.err
    assert planned(place) == EVERYTHING
    applied(place, "--target", "Project/globex/shop")
    assert changes(applied(place, *options)) == {"create OidcApplication web"}


def test_guards_judge_the_whole(place: Place) -> None:
    """Four of ten updates are too many, also where one of them is selected."""
    names = [f"action{number}" for number in range(10)]
    for name in names:
        write(place.manifests / f"{name}.yaml", an_action(name))
    applied(place)
    for name in names[:4]:
        write(place.manifests / f"{name}.yaml", an_action(name, timeout="3s"))
    one = ("--target", "Action/globex/action0")

    refused = place.run("apply", "--auto-approve", *one)
    done = applied(place, *one, "--allow-updates", "4")

    assert refused.code == 3
    assert "GUARD-MANY-UPDATES" in refused.err
    assert changes(done) == {"update Action action0"}


@pytest.mark.parametrize("prune", ["--prune", "--prune-unmanaged"])
@pytest.mark.parametrize("part", ["--target", "--exclude"])
@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_part_is_not_pruned(run: Run, small: Path, prune: str, part: str, command: str) -> None:
    """Neither by flags nor by a variable that a job has set."""
    by_flag = run(command, prune, part, WEB)
    by_variable = run(
        command, part, WEB, **{f"RECONCILER_{prune[2:].upper()}".replace("-", "_"): "1"}
    )

    for refused in (by_flag, by_variable):
        assert (refused.code, refused.out) == (1, "")
        assert f"Error: {prune} is for a whole tree, and {part} selects a part" in refused.err
    assert not (small.parent / ".reconciler").exists()


def test_only_the_secrets_of_selected_applications_are_delivered(place: Place) -> None:
    """What is owed to another one stays owed, and is counted."""
    write(place.manifests / "portal.yaml", an_application("portal"))
    failed = place.run("apply", "--auto-approve", "--secrets-to", FAILING)
    assert failed.code == 5, failed.all
    assert place.run("plan", "--format", "json").json["summary"]["owed"] == 2

    plan = place.run("plan", "--format", "json", "--target", WEB).json
    done = applied(place, "--target", WEB).json
    none = applied(place, "--exclude", "OidcApplication/*/*/*").json

    assert [each["ref"]["name"] for each in plan["owed"]] == ["web"]
    assert plan["selection"]["left_out"]["owed"] == 1
    assert [each["ref"]["name"] for each in done["delivered"]] == ["web"]
    assert none["delivered"] == []
    left = place.run("plan", "--format", "json").json
    assert [each["ref"]["name"] for each in left["owed"]] == ["portal"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_names_nothing_is_an_error(run: Run, small: Path, command: Sequence[str]) -> None:
    """A misspelt target would do nothing, and a misspelt exclusion too much."""
    run("apply", "--auto-approve")
    write(small.parent / "empty.txt", "# nothing yet\n\n")
    write(small.parent / "wrong.txt", f"{WEB}\nOidcApplication/globex\n")

    for flag in ("--target", "--exclude"):
        for text, words in [
            (
                "Action/globex/gret",
                f"{flag} names nothing that is declared or held: Action/globex/gret",
            ),
            ("Action/*/x*", f"{flag} names nothing that is declared or held: Action/*/x*"),
            ("Aktion/globex/greet", f"{flag} 'Aktion/globex/greet' names no object"),
            ("*/globex/a/b/c", f"{flag} '*/globex/a/b/c' names no object"),
            ("*/*//x", f"{flag} '*/*//x' names no object"),
            ("@none.txt", f"{flag} @none.txt does not exist"),
            ("@empty.txt", f"{flag} @empty.txt lists nothing"),
            ("@wrong.txt", f"{flag} @wrong.txt line 2: 'OidcApplication/globex' names no object"),
            ("", f"{flag} '' names no object"),
        ]:
            refused = run(*command, flag, text)
            assert refused.code == 1, text
            assert f"Error: {words}" in refused.err, refused.err
            assert "Traceback" not in refused.err


def test_a_list_and_a_variable_name_refs_one_on_each_line(run: Run, small: Path) -> None:
    """A list in a file may have comments."""
    write(small.parent / "urgent.txt", f"# ticket 12\n{WEB}\n\n  Action/globex/greet  \n")
    expected = {"create Organization globex", "create Project shop", "create OidcApplication web",
                "create Action greet"}  # fmt: skip

    listed = run("plan", "--format", "json", "--target", "@urgent.txt")
    by_variable = run("plan", "--format", "json", RECONCILER_TARGET=f"{WEB}\nAction globex/greet")

    assert changes(listed) == changes(by_variable) == expected
    write(small.parent / "marked.txt", f"\ufeff{WEB}\r\n")
    assert run("plan", "--target", "@marked.txt").code == 0


def test_a_star_in_a_name_is_written_as_a_code(run: Run, small: Path) -> None:
    """What a report prints is read back as the same object."""
    for name in ("a*b", "axb"):
        write(small / f"{name}.yaml", an_application(name, redirectUris=["https://a.example.com"]))
    shown = run("plan").out
    assert "+ OidcApplication globex/shop/a%2Ab" in shown

    one = run("plan", "--format", "json", "--target", "OidcApplication/globex/shop/a%2ab")
    both = run("plan", "--format", "json", "--target", "OidcApplication/globex/shop/a*b")

    apps = {"create OidcApplication a*b", "create OidcApplication axb"}
    assert changes(one) & apps == {"create OidcApplication a*b"}
    assert changes(both) & apps == apps


def test_a_plan_of_a_part_is_applied_as_that_part_alone(place: Place) -> None:
    """The file and the digest are of the part; what is left out may move meanwhile."""
    saved = place.run("plan", "--out", "plan.json", "--target", "OidcApplication/*/shop/web")
    digest = next(line for line in saved.out.splitlines() if line.startswith("Digest: "))[8:]
    assert "reconciler apply plan.json --target 'OidcApplication/*/shop/web'" in saved.err

    for other in ((), ("--target", WEB), ("--exclude", WEB)):
        by_file = place.run("apply", "plan.json", *other)
        by_digest = place.run("apply", "--digest", digest, *other)
        assert (by_file.code, by_digest.code) == (4, 4)
        assert "with --target 'OidcApplication/*/shop/web'" in by_file.err
    shown = place.run("show", "plan.json")
    assert "+2 that it needs. Left out: 3 changes." in shown.out
    done = place.run("apply", "plan.json", "--target", "OidcApplication/*/shop/web")
    assert done.code == 0, done.all
    assert "The tree is not in step: 3 changes were left out." in done.out
    again = place.run("apply", "plan.json", "--target", "OidcApplication/*/shop/web")
    assert again.code == 0, again.all
    assert "Every change of this plan is done already." in again.err


def test_a_plan_of_a_part_goes_on_after_it_was_cut_short(run: Run, small: Path) -> None:
    """What it needed is made then, and no longer needed."""
    run("plan", "--out", "plan.json", "--target", WEB)
    failed = run("apply", "plan.json", "--target", WEB, "--secrets-to", FAILING)
    assert failed.code == 5, failed.all

    done = run("apply", "plan.json", "--target", WEB)

    assert done.code == 0, done.all
    assert "of 3 done already" in done.err or "Every change of this plan is done" in done.err


@pytest.mark.parametrize("point", ["C4", "C11"])
def test_a_plan_of_a_part_goes_on_after_a_kill(place: Place, point: str) -> None:
    """What the part needed is made by then, and is what the approved plan has made."""
    place.run("plan", "--out", "plan.json", "--target", "Action/globex/greet")
    killed = place.run(
        "apply", "plan.json", "--target", "Action/globex/greet", RECONCILER_CRASHPOINT=point
    )
    assert killed.code == -signal.SIGKILL, killed.all
    assert "create Organization globex" not in planned(place)

    done = place.run("apply", "plan.json", "--target", "Action/globex/greet")

    assert done.code == 0, done.all
    assert "Going on with this plan: 1 of 2 done already." in done.err
    assert planned(place, "--target", "Action/globex/greet") == set()
    assert "create IdpJwtConfig partner" in planned(place)


@pytest.mark.parametrize("named", ["greet", "before"])
def test_a_part_with_renames_goes_on_after_a_kill(place: Place, named: str) -> None:
    """An object that was selected by its old name has another one by then."""
    write(place.manifests / "other.yaml", an_action("before"))
    applied(place)
    listed = place.direct.objects()
    for name, new, file in [("greet", "welcome", "greet"), ("before", "greet", "other")]:
        renamed = json.loads(an_action(new))
        renamed["metadata"]["id"] = listed[name]["id"]
        write(place.manifests / f"{file}.yaml", json.dumps(renamed))
    target = ("--target", f"Action/globex/{named}")
    place.run("plan", "--out", "plan.json", *target)
    killed = place.run("apply", "plan.json", *target, RECONCILER_CRASHPOINT="C11")
    assert killed.code == -signal.SIGKILL, killed.all
    assert planned(place) == {"update Action greet"}

    done = place.run("apply", "plan.json", *target)
    again = place.run("apply", "plan.json", *target)

    assert (done.code, again.code) == (0, 0), done.all + again.all
    assert "Going on with this plan: 1 of 2 done already." in done.err
    assert "0 remaining" in done.out
    assert "Every change of this plan is done already." in again.err
    assert planned(place) == set()


def test_drift_is_that_of_the_part(place: Place) -> None:
    """The rest is counted."""
    applied(place)
    place.direct.change("greet", script="function greet(ctx, api) { return 1 }")
    place.direct.remove_app("web")

    whole = place.run("drift", "--format", "json", "--detailed-exitcode")
    part = place.run(
        "drift", "--format", "json", "--detailed-exitcode", "--target", "Action/globex/*"
    )
    none = place.run("drift", "--detailed-exitcode", "--target", "IdpJwtConfig/globex/*")

    assert len(whole.json["drift"]) == 2
    assert (whole.json["selection"], whole.json["summary"]["left_out"]) == (None, 0)
    assert [each["ref"]["name"] for each in part.json["drift"]] == ["greet"]
    assert part.json["summary"]["left_out"] == 1
    assert part.json["selection"] == {"target": ["Action/globex/*"], "exclude": []}
    assert (part.code, none.code) == (2, 0)
    assert "Left out: 2 of the objects that differ." in none.out
    assert "Nothing of this part was changed on the service." in none.out


def test_drift_of_a_part_finds_what_was_renamed_on_the_service(place: Place) -> None:
    """The manifests know one name, and the service another one, which no target names."""
    applied(place)
    held = state(place)["greet"]
    place.direct("UpdateAction", id=held["id"], **{**held["spec"], "name": "hello"})

    for target in ("Action/globex/greet", "Action/globex/hello"):
        told = place.run("drift", "--format", "json", "--target", target).json
        assert told["summary"]["changed"] == (1 if target.endswith("greet") else 0)
    (drifted,) = place.run("drift", "--format", "json", "--target", "*/globex/greet").json["drift"]
    assert drifted["fields"][0]["held"] == "hello"


CONFIGURATION = """\
apiVersion: reconciler/v1
kind: Configuration
environments:
  staging:
    tree: staging
  production:
    allowPartial: false
"""


def test_an_environment_can_forbid_parts(run: Run, small: Path) -> None:
    """Also by a plan file that was made before it did."""
    file = small.parent / "reconciler.yaml"
    write(file, CONFIGURATION.replace("allowPartial: false", "allowPartial: true"))
    saved = run("plan", "--env", "production", "--target", WEB, "--out", "plan.json")
    assert saved.code == 0, saved.all
    write(file, CONFIGURATION)

    for arguments in [
        ("plan", "--target", WEB),
        ("plan", "--exclude", WEB),
        ("apply", "--auto-approve", "--target", WEB),
        ("apply", "plan.json", "--target", WEB),
        ("apply", "plan.json"),
    ]:
        refused = run(*arguments, "--env", "production")
        assert refused.code == 1, refused.all
        assert "environment production does not allow a part of the tree" in refused.err
        assert "reconciler.yaml:7" in refused.err
    assert run("plan", "--env", "production").code == 0
    assert run("plan", "--env", "staging", "--target", WEB).code == 0


def test_a_pull_request_does_not_allow_itself_a_part(run: Run, small: Path) -> None:
    """The configuration of the target branch counts."""
    write(small.parent / "trusted.yaml", CONFIGURATION)
    write(small.parent / "reconciler.yaml", CONFIGURATION.replace("    allowPartial: false\n", ""
          ).replace("production:", "production: {}"))  # fmt: skip

    plan = run(
        "plan", "--env", "production", "--target", WEB, "--trusted-config", "trusted.yaml",
        "--detailed-exitcode",
    )  # fmt: skip

    assert plan.code == 3, plan.all
    assert "allowPartial of environment production is not as in the trusted configuration" in (
        plan.out + plan.err
    )
    assert "It is true here and false there." in plan.err
