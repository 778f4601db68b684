"""Flags of projects: stored by every store, answered by every call that reads a project."""

from __future__ import annotations

from typing import Any

from reconciler.resources.normal import LEFT_AS_HELD
from reconciler.resources.ref import Kind
from tests.unit.service.asking import Asking

OFF = dict(LEFT_AS_HELD[Kind.PROJECT])
LABELLED = "PRIVATE_LABELING_SETTING_ALLOW_LOGIN_USER_RESOURCE_OWNER_POLICY"
SOME = {"projectRoleCheck": True, "privateLabelingSetting": LABELLED}


def flags_of(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in OFF}


def own(ask: Asking) -> dict[str, Any]:
    return {"organization": ask.organization}


def test_a_project_has_its_flags_wherever_it_is_read(ask: Asking) -> None:
    made = ask("AddProject", **own(ask), name="blog", **SOME)["id"]

    read = ask("GetProjectByID", id=made)["project"]
    listed = {each["id"]: each for each in ask("ListProjects", **own(ask))["result"]}
    objects = ask("ListObjects", organizationId=ask.organization)["objects"]
    specs = {each["id"]: each["spec"] for each in objects}
    assert flags_of(read) == {**OFF, **SOME}
    assert flags_of(listed[made]) == {**OFF, **SOME}
    assert flags_of(listed[ask.project]) == OFF
    assert (specs[made], specs[ask.project]) == ({**OFF, **SOME}, OFF)


def test_an_update_is_full_and_one_without_a_change_writes_nothing(ask: Asking) -> None:
    made = ask("AddProject", **own(ask), name="blog", **SOME)["id"]
    before = ask.event_count()

    same = ask("UpdateProject", id=made, name="blog", **SOME, hasProjectCheck=False)["details"]
    assert ask.event_count() == before
    assert same["sequence"] == ask("GetProjectByID", id=made)["project"]["details"]["sequence"]
    changed = ask("UpdateProject", id=made, name="news", hasProjectCheck=True)["details"]

    read = ask("GetProjectByID", id=made)["project"]
    assert (read["name"], flags_of(read)) == ("news", {**OFF, "hasProjectCheck": True})
    assert read["details"]["sequence"] == changed["sequence"]
    events = ask("GetObjectHistory", id=made)["events"]
    assert [(each["type"], each["payload"]) for each in events] == [
        ("project.added", {"name": "blog", "spec": {**OFF, **SOME}}),
        ("project.renamed", {"name": "news"}),
        ("project.changed", {"spec": {**OFF, "hasProjectCheck": True}}),
    ]


def test_a_project_that_is_made_without_flags_has_them_all_in_its_first_event(ask: Asking) -> None:
    (event,) = ask("GetObjectHistory", id=ask.project)["events"]

    assert event["payload"] == {"name": "shop", "spec": OFF}


def test_an_update_expects_a_sequence_and_respects_other_names(ask: Asking) -> None:
    made = ask("AddProject", **own(ask), name="blog")
    before = ask.event_count()
    sequence = int(made["details"]["sequence"])
    change = {"id": made["id"], "name": "blog", **SOME}

    assert ask.refused("UpdateProject", **change, expected_sequence=sequence - 1).code == 9
    assert ask.refused("UpdateProject", id=made["id"], name="SHOP").code == 6
    assert ask.refused("UpdateProject", id=ask.organization, name="x").code == 5
    assert ask.event_count() == before
    ask("UpdateProject", **change, expected_sequence=sequence)
    ask.an_app(projectId=made["id"])


def test_a_batch_updates_a_project_that_it_made(ask: Asking) -> None:
    orders = [
        {
            "operation": "AddProject",
            "fields": {"name": "blog"},
            "organizationId": ask.organization,
            "idempotencyKey": "key-1",
        },
        {
            "operation": "UpdateProject",
            "fields": {"name": "blog", **SOME},
            "organizationId": ask.organization,
            "from": {"id": 0, "ifMatch": 0},
        },
    ]

    made, changed = ask("WriteBatch", orders=orders)["answers"]

    read = ask("GetProjectByID", id=made["answer"]["id"])["project"]
    assert read["details"]["sequence"] == changed["answer"]["details"]["sequence"]
    assert flags_of(read) == {**OFF, **SOME}
