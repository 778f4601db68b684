"""Flows of the service over every store: set, read, refused, and left by removed actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.kinds.action_flow import operations
from reconciler.service.build import open_postgres
from reconciler.service.domain.refusal import Code
from reconciler.service.eventstore.rows import Lookups
from reconciler.service.operations import engine
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.request import Request
from reconciler.service.operations.session import Writing
from reconciler.service.projections.maintenance import rebuild, verify
from tests.examples import Clock
from tests.postgres_server import PostgresServer
from tests.unit.service.asking import Asking

LOGIN, TOKEN = "3", "2"
POST_AUTHENTICATION, PRE_CREATION = "1", "2"
PRE_USERINFO, PRE_ACCESS_TOKEN = "4", "5"


def set_actions(ask: Asking, flow: str, trigger: str, *ids: str, **beside: Any) -> dict[str, Any]:
    """Set the actions of a trigger; return the details."""
    fields = {"flowType": flow, "triggerType": trigger, "actionIds": [*ids]}
    answer = ask("SetTriggerActions", organization=ask.organization, **fields, **beside)
    details: dict[str, Any] = answer["details"]
    return details


def triggers(ask: Asking, flow: str) -> dict[str, list[str]]:
    """Return the names of the actions at each trigger of a flow, as ``GetFlow`` answers them."""
    found = ask("GetFlow", organization=ask.organization, type=flow)["flow"]
    assert (found["type"]["id"], found["state"]) == (flow, "FLOW_STATE_ACTIVE")
    return {
        each["triggerType"]["id"]: [action["name"] for action in each["actions"]]
        for each in found["triggerActions"]
    }


def listed(ask: Asking) -> list[tuple[str, Any]]:
    """Return name and triggers of each flow in the listing of everything."""
    return [(each["name"], each["spec"]) for each in ask.objects() if each["kind"] == "ActionFlow"]


def test_what_is_set_is_read_in_its_order(ask: Asking) -> None:
    """Each call is for one trigger and leaves the others; the last list counts."""
    first, second = (ask.an_action(name)["id"] for name in ("first", "second"))

    set_actions(ask, TOKEN, PRE_ACCESS_TOKEN, second, first)
    details = set_actions(ask, TOKEN, PRE_USERINFO, first)

    assert triggers(ask, TOKEN) == {"4": ["first"], "5": ["second", "first"]}
    assert triggers(ask, LOGIN) == {}
    assert listed(ask) == [
        (
            "COMPLEMENT_TOKEN",
            {"PRE_ACCESS_TOKEN_CREATION": [second, first], "PRE_USERINFO_CREATION": [first]},
        )
    ]
    flow = ask("GetFlow", organization=ask.organization, type=TOKEN)["flow"]
    assert flow["details"]["sequence"] == details["sequence"]
    assert flow["triggerActions"][0]["actions"][0] == ask("GetAction", id=first)["action"]


def test_a_flow_without_actions_is_not_there(ask: Asking) -> None:
    """It is removed by clearing it, and by emptying its last trigger; its sequence goes on."""
    action = ask.an_action()["id"]
    set_actions(ask, LOGIN, POST_AUTHENTICATION, action)
    set_actions(ask, LOGIN, PRE_CREATION, action)

    set_actions(ask, LOGIN, POST_AUTHENTICATION)
    assert triggers(ask, LOGIN) == {"2": ["greet"]}
    emptied = set_actions(ask, LOGIN, PRE_CREATION)
    assert (triggers(ask, LOGIN), listed(ask)) == ({}, [])
    set_actions(ask, LOGIN, PRE_CREATION, action, expected_sequence=int(emptied["sequence"]))
    cleared = ask("ClearFlow", organization=ask.organization, type=LOGIN)["details"]

    assert (triggers(ask, LOGIN), listed(ask)) == ({}, [])
    flow = ask("GetFlow", organization=ask.organization, type=LOGIN)["flow"]
    assert flow["details"] == cleared
    removals = ask("ListRemovals", organizationId=ask.organization)["removals"]
    assert [(each["kind"], each["name"]) for each in removals] == [
        ("ActionFlow", "INTERNAL_AUTHENTICATION")
    ] * 2


def test_a_removed_action_leaves_every_trigger_in_the_same_commit(ask: Asking) -> None:
    """The tree that removes it does not become the owner of the flows."""
    first, second, third = (ask.an_action(name)["id"] for name in ("first", "second", "third"))
    for flow, trigger, ids in (
        (TOKEN, PRE_USERINFO, (third, first, second)), (TOKEN, PRE_ACCESS_TOKEN, (first,)),
        (LOGIN, PRE_CREATION, (first,)),
    ):  # fmt: skip
        set_actions(ask, flow, trigger, *ids, context='{"tree":"mine"}')

    ask("DeleteAction", id=first, context='{"tree":"other"}')

    assert listed(ask) == [("COMPLEMENT_TOKEN", {"PRE_USERINFO_CREATION": [third, second]})]
    assert triggers(ask, TOKEN) == {"4": ["third", "second"]}
    assert triggers(ask, LOGIN) == {}
    (held,) = [each for each in ask.objects() if each["kind"] == "ActionFlow"]
    assert (held["owner"], held["trees"]) == ("mine", ["mine"])
    assert verify(ask.service.store) == []


def test_what_changes_nothing_is_no_event(ask: Asking) -> None:
    """As with every update: it answers the present details."""
    action = ask.an_action()["id"]
    assert set_actions(ask, LOGIN, PRE_CREATION) == {
        "sequence": "0", "resourceOwner": ask.organization,
    }  # fmt: skip
    before = set_actions(ask, LOGIN, PRE_CREATION, action)
    count = ask.event_count()

    assert set_actions(ask, LOGIN, PRE_CREATION, action) == before
    ask("ClearFlow", organization=ask.organization, type=TOKEN)
    assert ask.event_count() == count


WRONG: Sequence[tuple[dict[str, Any], Code]] = (
    ({"flowType": "5"}, Code.INVALID_ARGUMENT),
    ({"flowType": "LOGIN"}, Code.INVALID_ARGUMENT),
    ({"triggerType": "4"}, Code.INVALID_ARGUMENT),
    ({"triggerType": "0"}, Code.INVALID_ARGUMENT),
    ({"actionIds": ["404"]}, Code.PRECONDITION_FAILED),
    ({"actionIds": [""]}, Code.INVALID_ARGUMENT),
    ({"actionIds": ["1"] * 101}, Code.INVALID_ARGUMENT),
)


def test_what_no_flow_has_is_refused(ask: Asking) -> None:
    """With the code of the service we are compatible with; nothing is written."""
    before = ask.event_count()
    good = {"flowType": LOGIN, "triggerType": PRE_CREATION, "actionIds": []}
    for fields, code in WRONG:
        asked = {**good, **fields}
        refusal = ask.refused("SetTriggerActions", organization=ask.organization, **asked)
        assert refusal.code == code
        assert next(iter(fields)) in refusal.message
    assert ask.event_count() == before


def test_only_actions_of_the_organization_each_once(ask: Asking) -> None:
    """An action of another organization looks like a missing one."""
    other = ask("AddOrg", name="globex")["id"]
    mine, foreign = ask.an_action()["id"], ask.an_action(organization=other)["id"]
    app = ask.an_app()["appId"]
    before = ask.event_count()

    refusals = [
        ask.refused(
            "SetTriggerActions", organization=ask.organization,
            flowType=LOGIN, triggerType=PRE_CREATION, actionIds=ids,
        )
        for ids in (["404"], [foreign], [app], [mine, mine], [mine, foreign])
    ]  # fmt: skip

    assert {(each.code, each.message, each.reason) for each in refusals} == {
        (
            Code.PRECONDITION_FAILED,
            "actionIds: must be ids of actions of this organization, each once",
            "flow.actions_unknown",
        )
    }
    assert ask.event_count() == before


def test_the_words_of_old_clients_are_taken(ask: Asking) -> None:
    """The API had words for the first flow before it had numbers."""
    action = ask.an_action()["id"]

    set_actions(ask, "FLOW_TYPE_EXTERNAL_AUTHENTICATION", "TRIGGER_TYPE_POST_CREATION", action)

    assert triggers(ask, "1") == {"3": ["greet"]}


def test_a_flow_is_expected_at_its_sequence(ask: Asking) -> None:
    """Zero expects a flow that holds nothing, which no other caller has filled meanwhile."""
    action = ask.an_action()["id"]
    made = int(set_actions(ask, LOGIN, PRE_CREATION, action, expected_sequence=0)["sequence"])
    for operation, fields in (
        ("SetTriggerActions", {"flowType": LOGIN, "triggerType": PRE_CREATION}),
        ("ClearFlow", {"type": LOGIN}),
    ):
        for expected in (0, made - 1):
            refusal = ask.refused(
                operation, organization=ask.organization, **fields, expected_sequence=expected
            )
            assert (refusal.code, refusal.details) == (9, {"sequence": str(made)})
    cleared = ask("ClearFlow", organization=ask.organization, type=LOGIN, expected_sequence=made)[
        "details"
    ]
    for expected in (0, int(cleared["sequence"])):
        set_actions(ask, LOGIN, PRE_CREATION, expected_sequence=expected)
    assert ask.refused(
        "ClearFlow", organization=ask.organization, type=LOGIN, expected_sequence=made
    ).details == {"sequence": cleared["sequence"]}


def test_the_same_key_sets_once(ask: Asking) -> None:
    """A repeated call gets the first answer, whatever was set since."""
    action = ask.an_action()["id"]
    first = set_actions(ask, LOGIN, PRE_CREATION, action, idempotency_key="k")
    set_actions(ask, LOGIN, PRE_CREATION)

    assert set_actions(ask, LOGIN, PRE_CREATION, action, idempotency_key="k") == first
    assert triggers(ask, LOGIN) == {}


def test_history_tells_who_set_and_who_took_out(ask: Asking) -> None:
    """A flow has one history, through every time that it was cleared."""
    action = ask.an_action()["id"]
    set_actions(ask, LOGIN, PRE_CREATION, action, by=Caller("ana", Role.EDITOR))
    flow = next(each["id"] for each in ask.objects() if each["kind"] == "ActionFlow")
    ask("DeleteAction", id=action)
    again = ask.an_action()["id"]
    set_actions(ask, LOGIN, PRE_CREATION, again)

    events = ask("GetObjectHistory", id=flow)["events"]

    assert [(each["type"], each["writer"]) for each in events] == [
        ("flow.trigger.set", "ana"), ("flow.removed", "admin"), ("flow.trigger.set", "admin"),
    ]  # fmt: skip
    assert events[0]["payload"] == {
        "flow": "INTERNAL_AUTHENTICATION", "trigger": "PRE_CREATION", "actions": [action],
    }  # fmt: skip


def test_rebuilding_gives_the_same_flows(ask: Asking) -> None:
    """Also of one that was removed and came back."""
    first, second = (ask.an_action(name)["id"] for name in ("first", "second"))
    set_actions(ask, LOGIN, PRE_CREATION, first, second)
    ask("ClearFlow", organization=ask.organization, type=LOGIN)
    set_actions(ask, LOGIN, PRE_CREATION, second, first, context='{"tree":"t"}')
    ask("DeleteAction", id=first)
    before = ask.objects()

    rebuild(ask.service.store)

    assert ask.objects() == before
    assert verify(ask.service.store) == []


def test_flows_of_other_organizations_are_their_own(ask: Asking) -> None:
    """The flow of a number is that of the organization of the call."""
    other = ask("AddOrg", name="globex")["id"]
    action = ask.an_action()["id"]
    set_actions(ask, LOGIN, PRE_CREATION, action)

    assert ask("GetFlow", organization=other, type=LOGIN)["flow"]["triggerActions"] == []
    limited = Caller("limited", Role.ADMIN, frozenset({other}))
    flow = next(each["id"] for each in ask.objects() if each["kind"] == "ActionFlow")
    assert ask.refused("GetObjectHistory", id=flow, by=limited).code == Code.NOT_FOUND


@pytest.fixture
def servers(postgres: PostgresServer, tmp_path: Path) -> Iterator[tuple[Asking, Asking]]:
    """Open one database twice, as two servers would."""
    clock = Clock()
    with ExitStack() as stack:
        address = stack.enter_context(postgres.empty_store())
        first, second = (
            stack.enter_context(
                closing(open_postgres(address, seal_key_file=tmp_path / "seal-key", now=clock))
            )
            for _ in range(2)
        )
        ask = Asking(first, clock)
        ask.prepare()
        yield ask, replace(ask, service=second)


def test_an_action_that_another_server_removes_meanwhile_is_not_set(
    servers: tuple[Asking, Asking], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The removal is committed after the flow was looked at, and before it is written.

    That takes a call whose organization was not locked before, which is done for speed alone.
    """
    ask, other = servers
    action = ask.an_action()["id"]
    change, lookups = operations._change, engine.expected_lookups

    def unlocked(requests: Sequence[Request]) -> Lookups:
        return lookups(requests)._replace(organizations=frozenset())

    monkeypatch.setattr(engine, "expected_lookups", unlocked)

    def delayed(*args: Any) -> int:
        monkeypatch.setattr(operations, "_change", change)
        other("DeleteAction", id=action)
        return change(*args)

    monkeypatch.setattr(operations, "_change", delayed)
    fields = {"flowType": LOGIN, "triggerType": PRE_CREATION, "actionIds": [action]}
    refusal = ask.refused("SetTriggerActions", organization=ask.organization, **fields)

    assert refusal.reason == "flow.actions_unknown"
    assert listed(ask) == []


def test_an_action_that_another_server_sets_meanwhile_is_taken_out(
    servers: tuple[Asking, Asking], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is set after the action was looked at, and before its removal is written."""
    ask, other = servers
    action = ask.an_action()["id"]
    expect = Writing.expect

    def delayed(call: Writing, sequence: int) -> None:
        monkeypatch.setattr(Writing, "expect", expect)
        set_actions(other, LOGIN, PRE_CREATION, action)
        expect(call, sequence)

    monkeypatch.setattr(Writing, "expect", delayed)
    ask("DeleteAction", id=action)

    assert listed(ask) == []
    assert verify(ask.service.store) == []


def test_a_lost_lease_writes_no_flow(ask: Asking) -> None:
    """Neither one that is not there yet, nor one that is."""
    action = ask.an_action()["id"]
    fields = {"flowType": LOGIN, "triggerType": PRE_CREATION, "actionIds": [action]}
    here = {"organization": ask.organization, "under": "1.x"}

    refusals = [ask.refused("SetTriggerActions", **fields, **here).code]
    set_actions(ask, LOGIN, PRE_CREATION, action)
    refusals += [
        ask.refused("SetTriggerActions", **{**fields, "triggerType": "1"}, **here).code,
        ask.refused("ClearFlow", type=LOGIN, **here).code,
    ]

    assert refusals == [10, 10, 10]
    assert triggers(ask, LOGIN) == {"2": ["greet"]}
