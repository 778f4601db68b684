"""The feed: where each organization's log ends, and what happened since, over every store."""

from __future__ import annotations

import json
from secrets import token_bytes
from typing import Any

import pytest

from reconciler.service.eventstore.rows import TokenRow
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.operations.callers import Caller, Role, make_token
from tests.unit.service.asking import Asking

SECRET = {"authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC"}
FLOW = {"flowType": "3", "triggerType": "2"}


def heads(ask: Asking, **fields: Any) -> dict[str, dict[str, Any]]:
    """Return the heads by the name of the organization."""
    return {each["name"]: each for each in ask("ListHeads", **fields)["organizations"]}


def changes(ask: Asking, cursor: str = "", **fields: Any) -> list[dict[str, Any]]:
    """Return every change past a cursor, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        more = {"cursor": cursor} if cursor else {}
        answer = ask("ListChanges", organizationId=ask.organization, **fields, **more)
        found += answer["changes"]
        if not (cursor := answer["next"]):
            return found


def test_a_head_moves_with_every_event_of_its_organization_and_no_other(ask: Asking) -> None:
    """One call says that nothing happened: leases and reads are no events."""
    ask("AddOrg", name="globex")
    before = heads(ask)
    made = ask.an_action()
    after = heads(ask)
    ask("AcquireLease", named="acme", holder="me", seconds=60)
    ask("AcquireLease", named="acme", tree="shop", holder="me", seconds=60)

    assert after["acme"]["sequence"] == made["details"]["sequence"]
    assert after["acme"]["sequence"] > before["acme"]["sequence"]
    assert after["globex"] == before["globex"]
    assert heads(ask) == after
    assert ask("ListHeads")["instance"] == ask("GetServiceInfo")["instance"]


def test_heads_count_the_secrets_that_are_still_kept(ask: Asking) -> None:
    """One that is lost cannot be delivered, by no round."""
    ask.an_app("a", **SECRET, custody="run-1")
    ask.an_app("b", **SECRET, custody="run-1")
    assert heads(ask)["acme"]["owed"] == "2"

    ask.clock.time += 31 * 24 * 3600 * 1_000_000

    assert heads(ask)["acme"]["owed"] == "0"


def test_a_caller_gets_the_heads_of_its_organizations_alone(ask: Asking) -> None:
    """Another tenant's organization does not exist, nor anything that happens there."""
    other = ask("AddOrg", name="globex")["id"]
    limited = Caller("limited", Role.VIEWER, frozenset({ask.organization}))
    before = ask("ListHeads", by=limited)
    ask("PauseTree", named="globex", tree="shop", reason="x", seconds=60)
    ask("AddProject", organization=other, name="hidden")

    assert ask("ListHeads", by=limited) == before
    assert [each["name"] for each in before["organizations"]] == ["acme"]
    assert ask("ListHeads", by=limited, organization=other)["organizations"] == []
    assert [*heads(ask, organization=other)] == ["globex"]
    refusal = ask.refused("ListChanges", organizationId=other, by=limited)
    assert refusal.code == ask.refused("ListChanges", organizationId="1", by=limited).code == 5


def test_heads_are_cut_and_go_on_after_the_last_one(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.service.operations.trees.HEADS_AT_ONCE", 2)
    for name in ("globex", "initech", "umbrella"):
        ask("AddOrg", name=name)
    first = ask("ListHeads")
    rest = ask("ListHeads", cursor=first["next"])

    names = [each["name"] for page in (first, rest) for each in page["organizations"]]
    assert names == ["acme", "globex", "initech", "umbrella"]
    assert (len(first["organizations"]), rest["next"]) == (2, "")


def test_the_heads_read_no_object_and_no_event(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an idle round costs does not grow with what is held."""
    for number in range(20):
        ask.an_action(f"a{number}")
    for name in ("objects_page", "page_keys", "page_marks", "read_stream", "event_keys"):
        monkeypatch.delattr(Snapshot, name)
    monkeypatch.setattr(ask.service.store, "objects_page", None, raising=False)

    assert [*heads(ask)] == ["acme"]


def test_a_change_says_of_what_by_whom_when_and_why(ask: Asking) -> None:
    ana = Caller("ana", Role.EDITOR)
    start = heads(ask)["acme"]["sequence"]
    action = ask.an_action(context='{"tree":"shop","revision":"c0ffee"}')
    ask("UpdateAction", id=action["id"], name="greet", script="x", by=ana)

    made, changed = changes(ask, start)

    assert made == {
        "kind": "Action",
        "id": action["id"],
        "projectId": "",
        "name": "greet",
        "type": "action.added",
        "sequence": action["details"]["sequence"],
        "recordedAt": action["details"]["creationDate"],
        "writer": "admin",
        "context": {"tree": "shop", "revision": "c0ffee"},
        "verified": {},
    }
    assert (changed["type"], changed["writer"], changed["context"]) == ("action.changed", "ana", {})
    assert changes(ask, changed["sequence"]) == []


def test_a_change_has_no_secret_and_no_hash(ask: Asking) -> None:
    """Neither what made a secret, nor what claimed it, nor the script of an action."""
    secret = ask.an_app(**SECRET, custody="run-1")["clientSecret"]
    made_at = ask("ListOwedSecrets", organizationId=ask.organization)["owedSecrets"][0]
    lease = ask("AcquireLease", named="acme", holder="me", seconds=60)["lease"]
    named = [{"id": made_at["id"], "madeAt": made_at["madeAt"]}]
    ask("ClaimSecrets", organizationId=ask.organization, secrets=named, under=lease)
    ask.an_action(script="function greet() { return 'in the script' }")

    found = changes(ask)

    text = json.dumps(found)
    assert secret not in text
    assert "secret_hash" not in text
    assert "in the script" not in text
    claimed = next(each for each in found if each["type"] == "application.secret.claimed")
    assert (claimed["kind"], claimed["id"], claimed["name"]) == (
        "OidcApplication", made_at["id"], "web",
    )  # fmt: skip
    names = "kind id projectId name type sequence recordedAt writer context verified"
    assert {" ".join(each) for each in found} == {names}


def test_changes_of_what_was_removed_have_its_last_name(ask: Asking) -> None:
    app = ask.an_app("web")["appId"]
    ask("UpdateApp", projectId=ask.project, appId=app, name="shopfront")
    ask("RemoveApp", projectId=ask.project, appId=app)
    action = ask.an_action("a")["id"]
    for _ in range(2):  # a flow can come back
        ask("SetTriggerActions", organization=ask.organization, **FLOW, actionIds=[action])
        ask("ClearFlow", organization=ask.organization, type="3")

    found = changes(ask)

    of_app = [each for each in found if each["id"] == app]
    assert [each["type"].partition(".")[2] for each in of_app] == ["added", "renamed", "removed"]
    assert {(each["name"], each["projectId"]) for each in of_app} == {("shopfront", ask.project)}
    of_flow = [each for each in found if each["kind"] == "ActionFlow"]
    assert [each["type"] for each in of_flow].count("flow.removed") == 2
    assert len({(each["id"], each["name"]) for each in of_flow}) == 1


def test_changes_are_the_same_in_pages_of_any_length(ask: Asking) -> None:
    for number in range(7):
        made = ask.an_action(f"a{number}")["id"]
        if number % 2:
            ask("DeleteAction", id=made)

    whole = changes(ask)

    assert len(whole) == 2 + 7 + 3
    for limit in (1, 2, 5, 1000):
        assert changes(ask, limit=limit) == whole
    assert [int(each["sequence"]) for each in whole] == sorted(
        int(each["sequence"]) for each in whole
    )


def test_changes_are_cut_by_bytes(ask: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.service.operations.texts.MAX_LIST_BYTES", 1000)
    for number in range(5):
        ask.an_action(f"a{number}", context=json.dumps({"reason": "x" * 400}))

    answer = ask("ListChanges", organizationId=ask.organization)

    assert 1 <= len(answer["changes"]) <= 4
    assert len(changes(ask)) == 7


def test_removals_are_the_changes_that_removed_something(ask: Asking) -> None:
    """One walk through the log serves both."""
    for name in ("a", "b"):
        ask("DeleteAction", id=ask.an_action(name, context='{"tree":"t"}')["id"])

    removals = ask("ListRemovals", organizationId=ask.organization)["removals"]

    removed = [each for each in changes(ask) if each["type"].endswith(".removed")]
    assert removals == [{**each, "trees": ["t"]} for each in removed]


def test_the_newest_changes_come_first_and_go_on_before_the_last_one(ask: Asking) -> None:
    """Both orders answer the same events, removed objects included."""
    gone = ask.an_action("gone")
    ask("DeleteAction", id=gone["id"])
    for number in range(5):
        ask.an_action(f"a{number}")
    newest: list[dict[str, Any]] = []
    cursor = "0"
    while cursor:
        here = {"organizationId": ask.organization, "order": "newest", "limit": 2}
        answer = ask("ListChanges", **here, cursor=cursor)
        assert len(answer["changes"]) <= 2
        newest, cursor = newest + answer["changes"], answer["next"]

    assert newest == changes(ask)[::-1]
    assert newest[5]["name"] == "gone"
    assert ask.refused("ListChanges", organizationId=ask.organization, order="random").code == 3


def test_an_admin_gets_the_names_of_tokens_that_see_no_more_than_it_sees(ask: Asking) -> None:
    other = ask("AddOrg", name="globex")["id"]
    both = json.dumps([ask.organization, other])
    for name, organizations in (("all", ""), ("both", both), ("one", f'["{ask.organization}"]')):
        row = TokenRow(name, "viewer", organizations, b"", 1, 0, 0)
        assert make_token(ask.service.store, row, token_bytes) is not None
    admin = Caller("limited", Role.ADMIN, frozenset({ask.organization}))

    def names(**fields: Any) -> list[str]:
        return [each["name"] for each in ask("ListTokens", **fields)["tokens"]]

    assert names() == ["all", "both", "one"]
    assert names(by=admin) == ["one"]
    first = ask("ListTokens", limit=2)
    assert names(limit=2, cursor=first["next"]) == ["one"]
    assert set(first["tokens"][0]) == {
        *("name", "role", "allOrganizations", "organizations", "created", "expires", "revoked")
    }
    for role in (Role.VIEWER, Role.EDITOR):
        assert ask.refused("ListTokens", by=Caller("x", role)).code == 7
