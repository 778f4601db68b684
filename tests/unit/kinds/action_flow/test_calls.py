"""The calls that write a flow: one for each trigger that changes."""

from __future__ import annotations

import json
from typing import Any

from reconciler.resources.call import Call
from reconciler.service_client.orders import calls_of, unchanged
from reconciler.service_client.port import CreateOrder, DeleteOrder, UpdateOrder
from reconciler.state import ObservedObject
from tests.builders import TOKEN, declared, held

USERINFO, ACCESS_TOKEN = "PRE_USERINFO_CREATION", "PRE_ACCESS_TOKEN_CREATION"
IDS = {"greet": "7", "log": "8"}
FLOW_ID = "77-2"
TREE = {"tree": "default"}


def a_new_flow(**said: list[str]) -> CreateOrder:
    return CreateOrder(declared(TOKEN, said), "77", named_ids=IDS)


def a_flow_update(before: dict[str, list[str]], after: dict[str, list[str]]) -> UpdateOrder:
    return UpdateOrder(declared(TOKEN, after), a_held_flow(before), named_ids=IDS)


def a_held_flow(said: dict[str, list[str]], **more: Any) -> ObservedObject:
    more = {"object_id": FLOW_ID, "sequence": 5, "organization_id": "77", **more}
    return held(TOKEN, said, owner="default", **more)


def sets(call: Call) -> tuple[object, object, object]:
    assert (call.operation, call.fields["flowType"]) == ("SetTriggerActions", "2")
    return call.fields["triggerType"], call.fields["actionIds"], call.expected_sequence


def test_a_flow_is_made_trigger_by_trigger_where_none_is() -> None:
    order = a_new_flow(PRE_USERINFO_CREATION=["Log", "greet"], PRE_ACCESS_TOKEN_CREATION=["greet"])

    calls = calls_of(order, TREE)

    assert [sets(call) for call in calls] == [("4", ["8", "7"], 0), ("5", ["7"], 0)]
    assert unchanged(order).id == FLOW_ID
    assert json.loads(calls[0].context)["tree"] == "default"


def test_triggers_that_differ_are_set_and_emptied_ones_last() -> None:
    """Otherwise the flow would be gone on the way, with what is known of it."""
    order = a_flow_update({USERINFO: ["greet"]}, {ACCESS_TOKEN: ["greet"]})

    assert [sets(call)[:2] for call in calls_of(order, TREE)] == [("5", ["7"]), ("4", [])]


def test_a_flow_that_stays_has_its_owner_recorded() -> None:
    order = a_flow_update({USERINFO: ["greet"]}, {USERINFO: ["greet"]})

    (call,) = calls_of(order, TREE)

    assert (call.operation, call.fields) == ("RecordContext", {"id": FLOW_ID})


def test_a_flow_is_cleared_at_its_sequence() -> None:
    (call,) = calls_of(DeleteOrder(a_held_flow({USERINFO: ["greet"]})), TREE)

    assert (call.operation, call.fields) == ("ClearFlow", {"type": "2"})
    assert call.expected_sequence == 5
