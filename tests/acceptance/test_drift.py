"""What somebody changed on the service is found, with who and when, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Place, Run, an_action, an_application, write
from tests.acceptance.test_saved_plans import events
from tests.direct import Direct


@pytest.fixture
def direct(run: Run, small: Path) -> Direct:
    """Apply the small tree, and return a way to go behind its back."""
    assert run("apply", "--auto-approve", "--revision", "abc123").code == 0
    return Direct(small.parent / ".reconciler" / "identity.db")


def test_without_drift_there_is_none(run: Run, direct: Direct) -> None:
    """Also where something is declared and not applied yet."""
    assert run("drift", "--detailed-exitcode").code == 0

    write(direct.store.parents[1] / "manifests" / "greet.yaml", an_action(timeout="5s"))
    drift = run("drift", "--detailed-exitcode")

    assert drift.code == 0
    assert "No drift." in drift.out
    assert run("plan", "--detailed-exitcode").code == 2


def test_a_direct_change_is_drift_with_its_author(run: Run, direct: Direct) -> None:
    """Declared and held, by whom, when, at which sequence."""
    direct.change("greet", timeout="1s")

    text = run("drift", "--detailed-exitcode")
    (drifted,) = run("drift", "--format", "json").json["drift"]

    assert text.code == 2
    assert "~ Action acme/greet" in text.out
    assert "changed by ana at 20" in text.out
    assert 'timeout: "20s" -> "1s"' in text.out
    assert "Drift: 1 changed on the service, 0 removed." in text.out
    assert (drifted["by"], drifted["tree"], drifted["drift"]) == ("ana", None, "changed")
    assert drifted["fields"] == [
        {"name": "timeout", "before": "20s", "held": "1s", "declared": "20s"}
    ]


def test_a_field_drifts_from_what_was_applied(place: Place) -> None:
    """A manifest that was edited since, and not applied, was never on the service."""
    assert place.run("apply", "--auto-approve").code == 0
    write(place.manifests / "greet.yaml", an_action(timeout="5s"))
    place.direct.change("greet", timeout="1s")

    text = place.run("drift").out
    (drifted,) = place.run("drift", "--format", "json").json["drift"]

    assert 'timeout: "20s" -> "1s"' in text
    assert drifted["fields"] == [
        {"name": "timeout", "before": "20s", "held": "1s", "declared": "5s"}
    ]


def test_an_object_that_was_made_again_drifts_from_the_one_before(run: Run, direct: Direct) -> None:
    """That it has another id is told apart from what is different in it."""
    manifests = direct.store.parents[1] / "manifests"
    write(manifests / "greet.yaml", an_action(timeout="5s", allowedToFail=True))
    made_again(direct, timeout="1s")

    text = run("drift").out
    (drifted,) = run("drift", "--format", "json").json["drift"]

    assert "made again by ana" in text
    assert drifted["fields"] == [
        {"name": "timeout", "before": "20s", "held": "1s", "declared": "5s"}
    ]


def test_what_was_removed_or_renamed_on_the_service_is_drift(run: Run, direct: Direct) -> None:
    """By its history, not by what is left."""
    direct.change("greet", name="hello")
    direct.remove_app("web")

    fields = run("drift", "--format", "json").json
    text = run("drift").out

    found = {drifted["ref"]["name"]: drifted for drifted in fields["drift"]}
    assert found["web"]["drift"] == "removed"
    assert found["greet"]["fields"] == [
        {"name": "metadata.name", "before": "greet", "held": "hello", "declared": "greet"}
    ]
    assert {drifted["by"] for drifted in fields["drift"]} == {"ana"}
    assert fields["unmanaged"] == []
    assert "- OidcApplication acme/shop/web" in text
    assert "removed by ana" in text


def test_another_tree_that_took_an_object_over_is_named(run: Run, direct: Direct) -> None:
    """Two teams find out that they manage the same object."""
    folder = direct.store.parents[1]
    write(folder / "theirs" / "greet.yaml", an_action(timeout="7s"))
    run("apply", "theirs", "--tree", "theirs", "--auto-approve")

    assert run("drift", "--format", "json").json["drift"][0]["tree"] == "theirs"
    assert " for tree theirs at " in run("drift").out


def test_drift_that_is_taken_back_is_gone(run: Run, direct: Direct) -> None:
    """Apply is the way back; declaring the same is the other."""
    direct.change("greet", timeout="1s")
    assert run("apply", "--auto-approve").code == 0
    assert run("drift", "--detailed-exitcode").code == 0

    direct.change("greet", timeout="2s")
    write(direct.store.parents[1] / "manifests" / "greet.yaml", an_action(timeout="2s"))
    assert run("drift", "--detailed-exitcode").code == 0


def test_drift_writes_nothing(run: Run, direct: Direct) -> None:
    """Not an event, and not a file where there is no service."""
    direct.change("greet", timeout="1s")
    count = events(run)

    run("drift")

    assert events(run) == count
    assert run("drift", "--service", "sqlite:none/identity.db").code == 1
    assert not (direct.store.parents[1] / "none").exists()


def test_drift_for_an_issue_is_harmless_markdown(run: Run, direct: Direct) -> None:
    """What others wrote stands in a fence that it cannot leave."""
    direct.change("greet", script="````\n@everyone <img src=x>\nfunction greet() {}\n")

    text = run("drift", "--format", "markdown").out

    assert text.startswith("### Drift: 1 changed on the service, 0 removed.\n\n`````text\n")
    assert text.endswith("\n`````\n")
    assert text.count("`````") == 2


def test_history_lists_every_change_with_its_reason(run: Run, direct: Direct) -> None:
    """Who, when, from which revision and plan, and which fields."""
    direct.change("greet", timeout="1s")
    run("apply", "--auto-approve", "--revision", "def456")

    text = run("history", "Action acme/greet").out
    again = run("history", "action", "ACME/Greet", "--format", "json").json

    made, changed, back = again["events"]
    assert (made["revision"], made["tree"], made["type"]) == ("abc123", "default", "action.added")
    assert made["plan"].startswith("sha256:")
    assert (changed["by"], changed["revision"]) == ("ana", None)
    assert changed["fields"] == [{"name": "timeout", "before": "20s", "after": "1s"}]
    assert (back["revision"], back["fields"][0]["after"]) == ("def456", "20s")
    assert 'timeout: "20s" -> "1s"' in text
    assert "revision def456" in text
    id_ = again["id"]
    heads = [run("history", *named).out.splitlines()[0] for named in (["action ACME/Greet"], [id_])]
    assert heads == [f"Action/acme/greet  (id {id_})", f"id {id_}"]


def test_history_of_a_removed_object_is_found_by_name_and_by_id(run: Run, direct: Direct) -> None:
    """Just then one wants to know."""
    held = direct.objects()["web"]
    direct.remove_app("web")

    by_name = run("history", "OidcApplication", "acme/shop/web", "--format", "json").json
    by_id = run("history", held["id"], "--format", "json").json

    assert by_name == by_id
    assert [event["removed"] for event in by_id["events"]] == [False, True]
    assert "secret_hash" not in json.dumps(by_id)


def test_history_of_a_former_name_asks_for_the_name_of_today(run: Run, direct: Direct) -> None:
    """An object had it, so nothing may be said of what never was."""
    direct.change("greet", name="hello")

    told = run("history", "Action/acme/greet")

    assert told.code == 1
    assert "removed nothing of this name" in told.err
    assert "its name of today or its id" in " ".join(told.err.split())


@pytest.mark.parametrize(
    "arguments",
    [["Action acme/nobody"], ["123"], ["Nonsense acme/x"], [""], ["a b/c"], ["Action"], ["../x"]],
)
def test_history_of_nothing_is_told(run: Run, direct: Direct, arguments: list[str]) -> None:
    """In words, not in a traceback."""
    told = run("history", *arguments)

    assert told.code == 1
    assert told.err


def test_an_adopted_object_says_that_it_never_was_this_tree_s(run: Run, direct: Direct) -> None:
    """First contact is shown on its own."""
    write(direct.store.parents[1] / "mine" / "web.yaml", an_application("web", devMode=True))

    (change,) = run("plan", "mine", "--tree", "mine", "--format", "json").json["changes"]

    assert (change["change"], change["cause"]["kind"]) == ("adopt", "never_applied")


def made_again(direct: Direct, **fields: Any) -> tuple[str, str]:
    """Delete an action and make it again, as ana; return both ids."""
    held = direct.objects()["greet"]
    direct("DeleteAction", id=held["id"])
    owner = direct("ListOrgs")["result"][0]["id"]
    spec = {**held["spec"], **fields}
    return held["id"], direct("CreateAction", owner, name="greet", **spec)["id"]


def test_an_object_that_was_deleted_and_made_again_is_drift(run: Run, direct: Direct) -> None:
    """Equal or not: it is another object, with another id."""
    old, new = made_again(direct)

    text = run("drift", "--detailed-exitcode")
    (equal,) = run("drift", "--format", "json").json["drift"]

    assert text.code == 2
    assert f"~ Action acme/greet  (id {new})\n" in text.out
    assert f"what this tree applied was deleted (id {old})\n    made again by ana at" in text.out
    assert (equal["id"], equal["removed_id"], equal["fields"]) == (new, old, [])
    assert run("plan", "--detailed-exitcode", "--tree", "default").code == 0

    made_again(direct, timeout="3s")
    (differs,) = run("drift", "--format", "json").json["drift"]

    assert [(each["before"], each["held"]) for each in differs["fields"]] == [("20s", "3s")]


def test_what_this_tree_never_applied_cannot_be_judged(run: Run, direct: Direct) -> None:
    """In step or not, nobody knows how it came to be so; it is said, and is no drift."""
    write(direct.store.parents[1] / "theirs" / "greet.yaml", an_action())
    write(direct.store.parents[1] / "theirs" / "web.yaml", an_application("web", devMode=True))

    text = run("drift", "theirs", "--tree", "theirs", "--detailed-exitcode")
    told = run("drift", "theirs", "--tree", "theirs", "--format", "json").json

    assert text.code == 0
    assert "Nothing was changed" not in text.out
    assert "  Action acme/greet  (never applied by this tree)\n" in text.out
    assert text.out.endswith("No drift found; 2 cannot be judged.\n")
    assert (told["history"], told["summary"]["unjudged"]) == (True, 2)
    assert {each["reason"] for each in told["unjudged"]} == {"never_applied"}
