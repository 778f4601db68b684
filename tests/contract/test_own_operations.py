"""Objects, history and removals, as only our own service tells them, over every store."""

from __future__ import annotations

import json
import re

import pytest

from reconciler import __version__
from reconciler.resources.normal import DEFAULTS, LEFT_AS_HELD
from reconciler.resources.ref import Kind
from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.operations.batch import MAX_ORDERS
from reconciler.service.operations.callers import Caller, Role
from tests.examples import TIME
from tests.unit.service.asking import Asking

# Those that a manifest may leave as they are held are stored only where they are set.
FIRST_FIELDS = {
    name: value
    for name, value in DEFAULTS[Kind.OIDC_APPLICATION].items()
    if name not in LEFT_AS_HELD[Kind.OIDC_APPLICATION]
}
OFF = LEFT_AS_HELD[Kind.PROJECT]
CONTEXT = '{"tree":"default","revision":"abc","preventDelete":true}'


def test_every_object_is_listed_with_all_there_is_to_know(ask: Asking) -> None:
    """The organization first, then the rest in the order it was made."""
    app = ask.an_app(context=CONTEXT)

    organization, project, found = ask("ListObjects", organizationId=ask.organization)["objects"]

    assert (organization["kind"], organization["id"]) == ("Organization", ask.organization)
    assert (project["kind"], project["projectId"], project["spec"]) == ("Project", "", OFF)
    assert found == {
        "kind": "OidcApplication",
        "id": app["appId"],
        "organizationId": ask.organization,
        "projectId": ask.project,
        "name": "web",
        "spec": FIRST_FIELDS,
        "details": app["details"],
        "clientId": app["clientId"],
        "hasSecret": True,
        "state": "ACTIVE",
        "trees": ["default"],
        "owner": "default",
        "preventDelete": True,
        "critical": False,
        "ignore": [],
        "undone": None,
        "changedBy": "admin",
        "context": json.loads(CONTEXT),
        "verified": {},
    }


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_objects_are_listed_page_by_page_each_once(ask: Asking, limit: int) -> None:
    """The cursor leads on until it is empty."""
    for number in range(5):
        ask.an_action(f"a{number}")
    names: list[str] = []
    cursor, pages = "", 0
    while cursor or not pages:
        page = ask("ListObjects", organizationId=ask.organization, cursor=cursor, limit=limit)
        names += [found["name"] for found in page["objects"]]
        cursor, pages = page["next"], pages + 1

    assert names == ["acme", "shop", "a0", "a1", "a2", "a3", "a4"]
    assert pages == -(-6 // limit)


def test_objects_of_others_are_not_listed(ask: Asking) -> None:
    """A listing is of one organization."""
    other = ask("AddOrg", name="globex")["id"]
    ask.an_action(organization=other)

    assert ask.objects() == []
    assert len(ask("ListObjects", organization=other)["objects"]) == 2


def test_every_tree_that_ever_wrote_an_object_is_remembered(ask: Asking) -> None:
    """Pruning asks whose an object is; the last one to write is not the only one."""
    made = ask.an_action(context='{"tree":"b","preventDelete":true}')["id"]
    ask("UpdateAction", id=made, name="greet", script="x", context='{"tree":"a","critical":true}')
    ask("UpdateAction", id=made, name="greet", script="y", by=Caller("hand", Role.EDITOR))

    (found,) = ask.objects()

    assert found["trees"] == ["a", "b"]
    assert (found["preventDelete"], found["critical"]) == (True, True)
    assert (found["context"], found["changedBy"]) == ({}, "hand")


def test_ignored_fields_are_kept_until_a_context_says_others(ask: Asking) -> None:
    """Another writer's event says nothing of them; an empty text takes them away."""
    made = ask.an_action(context='{"tree":"a","ignore":"timeout,script"}')["id"]
    ask("UpdateAction", id=made, name="greet", script="y")
    (kept,) = ask.objects()
    ask("RecordContext", id=made, context='{"tree":"a","ignore":""}')
    (gone,) = ask.objects()

    assert kept["ignore"] == ["script", "timeout"]
    assert gone["ignore"] == []


def test_a_list_of_ignored_fields_that_is_too_long_is_refused(ask: Asking) -> None:
    """Rows and caches keep it."""
    with pytest.raises(Refusal, match="ignore must be at most 1000 characters long"):
        ask.an_action(context=json.dumps({"ignore": "a" * 1001}))


def test_the_trees_of_an_organization_are_those_of_what_is_in_it(ask: Asking) -> None:
    """A tree may have made only an action in an organization that was there."""
    other = ask("AddOrg", name="globex", context='{"tree":"b"}')["id"]
    ask.an_action(context='{"tree":"a"}')
    ask.an_app(context='{"tree":"c"}', custody="run-1")
    limited = Caller("limited", Role.VIEWER, frozenset({ask.organization}))

    told = ask("ListTrees")["organizations"]

    assert told == [
        {
            "id": ask.organization,
            "name": "acme",
            "trees": ["a", "c"],
            "owed": [{"tree": "c", "secrets": "1"}],
            "custody": True,
            "pauses": [],
            "unmade": [],
        },
        {
            "id": other,
            "name": "globex",
            "trees": ["b"],
            "owed": [],
            "custody": False,
            "pauses": [],
            "unmade": [],
        },
    ]
    assert ask("ListTrees", by=limited)["organizations"] == told[:1]
    assert ask("ListTrees", organization=other)["organizations"] == told[1:]


def test_trees_are_told_without_reading_what_objects_hold(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every plan asks for the trees of all organizations, also of those that it is not about."""
    ask.an_action(context='{"tree": "one"}')
    monkeypatch.delattr(Snapshot, "objects_page")

    (told,) = ask("ListTrees")["organizations"]

    assert told["trees"] == ["one"]


def test_taking_over_an_object_changes_nothing_but_whose_it_is(ask: Asking) -> None:
    """What is in step is not written anew only to remember a tree."""
    made = ask.an_action()
    sequence = int(made["details"]["sequence"])
    (before,) = ask.objects()

    assert ask.refused("RecordContext", id=made["id"], expected_sequence=sequence + 1).code == 9
    answer = ask("RecordContext", id=made["id"], context=CONTEXT, expected_sequence=sequence)

    (found,) = ask.objects()
    assert (found["trees"], found["preventDelete"]) == (["default"], True)
    assert (found["spec"], found["name"]) == (before["spec"], before["name"])
    assert found["details"]["sequence"] == answer["details"]["sequence"]


@pytest.mark.parametrize(
    "context",
    [
        "x", "[]", "1", '{"a":', '{"a":"' + "x" * 8186 + '"}', '""', '{"a":NaN}', '{"a":1.5}',
        '{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"a":1,"a":2}', f'{{"a":{"1" * 21}}}',
        f'{{"a":{"[" * 9}{"]" * 9}}}', '{"a":"\ud800"}',
    ],
)  # fmt: skip
def test_a_malformed_context_is_refused(ask: Asking, context: str) -> None:
    """What history shows later is checked when it is written, as strictly as it will be read."""
    with pytest.raises(Refusal) as caught:
        ask.an_action(context=context)
    assert caught.value.code == 3


def test_the_history_of_an_object_tells_who_did_what_when_and_why(ask: Asking) -> None:
    """Also of a removed one; hashes of secrets are nobody's business."""
    made = ask.an_app(context=CONTEXT)
    target = {"projectId": ask.project, "appId": made["appId"]}
    ask("UpdateApp", **target, name="shop", by=Caller("hand", Role.EDITOR))
    ask("RegenerateOIDCClientSecret", **target)
    ask("UpdateOIDCAppConfig", **target, devMode=True)
    ask("RemoveApp", **target)

    answer = ask("GetObjectHistory", id=made["appId"])

    events = answer["events"]
    assert answer["next"] == ""
    assert [event["type"] for event in events] == [
        "application.added",
        "application.renamed",
        "application.secret.changed",
        "application.changed",
        "application.removed",
    ]
    assert [event["version"] for event in events] == [1, 2, 3, 4, 5]
    assert [event["writer"] for event in events] == ["admin", "hand", "admin", "admin", "admin"]
    assert events[0]["context"] == json.loads(CONTEXT)
    assert events[0]["sequence"] == made["details"]["sequence"]
    assert events[0]["recordedAt"] == made["details"]["creationDate"]
    assert events[1]["payload"] == {"name": "shop"}
    assert "hash" not in json.dumps(answer)
    rest = ask("GetObjectHistory", id=made["appId"], after="3")
    assert [event["version"] for event in rest["events"]] == [4, 5]


def test_the_service_says_which_one_it_is(ask: Asking) -> None:
    """The instance is part of every plan's digest."""
    info = ask("GetServiceInfo")

    assert set(info) == {
        "instance", "product", "version", "custody", "batch", "feed", "allOrganizations", "role",
        "expires",
    }  # fmt: skip
    assert (info["allOrganizations"], info["role"], info["expires"]) == (True, "admin", "")
    assert (info["product"], info["version"]) == ("reconciler", __version__)
    assert info["batch"] == MAX_ORDERS
    assert re.fullmatch("[0-9a-f]{32}", info["instance"])
    assert ask("GetIAM") == {
        "globalOrgId": "", "iamProjectId": info["instance"], "defaultOrgId": "",
    }  # fmt: skip
    limited = Caller("ci", Role.VIEWER, frozenset({ask.organization}))
    assert ask("GetServiceInfo", by=limited)["allOrganizations"] is False
    assert ask("Healthz") == {}


def test_what_was_removed_is_told_with_who_when_and_what_it_was(ask: Asking) -> None:
    """Drift must know that an application is gone because somebody removed it."""
    made = ask.an_app(context='{"tree":"default"}')
    action = ask.an_action()
    ask("UpdateApp", projectId=ask.project, appId=made["appId"], name="shopfront")
    ask("RemoveApp", projectId=ask.project, appId=made["appId"], by=Caller("ana", Role.ADMIN))
    ask("DeleteAction", id=action["id"], context='{"tree":"other"}')

    answer = ask("ListRemovals", organizationId=ask.organization)

    app, other = answer["removals"]
    assert answer["next"] == ""
    assert (app["kind"], app["name"], app["projectId"]) == (
        "OidcApplication", "shopfront", ask.project,
    )  # fmt: skip
    assert (app["id"], app["trees"], app["writer"]) == (made["appId"], ["default"], "ana")
    assert (app["type"], app["context"]) == ("application.removed", {})
    assert TIME.fullmatch(app["recordedAt"])
    assert (other["kind"], other["projectId"], other["context"]) == (
        "Action", "", {"tree": "other"},
    )  # fmt: skip


def test_removals_are_looked_for_page_by_page(ask: Asking) -> None:
    """A long log does not make one call long, and tells nothing of what others did."""
    other = ask("AddOrg", name="globex")["id"]
    for number in range(3):
        made = ask.an_action()
        ask.an_action(organization=other, name=f"a{number}")
        ask("DeleteAction", id=made["id"])
    with ask.service.store.snapshot() as view:
        own = {str(event.sequence) for event in view.event_keys(ask.organization)}
    found, cursor, calls, cursors = [], "0", 0, set()
    while cursor:
        cursors.add(cursor)
        answer = ask("ListRemovals", organizationId=ask.organization, cursor=cursor, limit=2)
        found += answer["removals"]
        cursor, calls = answer["next"], calls + 1

    assert [removal["name"] for removal in found] == ["greet"] * 3
    assert calls == 5, "eight events, two a call, and one call that finds the end"
    assert cursors < own | {"0"}
