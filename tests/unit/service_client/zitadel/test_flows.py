"""Flows as a ZITADEL answers them, and waiting for them to show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.resources.call import Call
from reconciler.service_client.port import CreateOrder, DeleteOrder, Written
from reconciler.service_client.wire import Answer, Reply
from reconciler.service_client.zitadel.flows import AwaitedFlows, read_flows
from tests.builders import ACME, GREET, TOKEN, declared, held

USERINFO = "PRE_USERINFO_CREATION"


class Flows:
    """A wire that answers one flow, and nothing of the others."""

    def __init__(self, *triggers: tuple[str, list[str]]) -> None:
        self.asked: list[Call] = []
        self._triggers = [
            {"triggerType": {"id": number}, "actions": [{"id": a, "name": f"at {a}"} for a in ids]}
            for number, ids in triggers
        ]

    def send(self, calls: Sequence[Call]) -> Sequence[Reply]:
        self.asked += calls
        return [self._answer(call) for call in calls]

    def _answer(self, call: Call) -> Reply:
        flow: dict[str, Any] = {"type": {"id": call.fields["type"]}}
        if call.fields["type"] == "2":
            flow |= {"triggerActions": self._triggers, "details": {"sequence": "9"}}
        return Answer({"flow": flow})


def test_a_flow_names_the_actions_that_are_listed() -> None:
    wire = Flows(("4", ["7", "8"]), ("5", []))

    (found,) = read_flows(wire, [held(ACME), held(GREET, object_id="7")])

    assert found.spec[USERINFO] == ["greet", "at 8"]
    assert (found.ref, found.sequence, found.uncarried) == (TOKEN, 9, ())
    assert found.id == f"{found.organization_id}-2"


def test_an_organization_without_actions_is_not_asked() -> None:
    wire = Flows()

    assert (read_flows(wire, [held(ACME)]), wire.asked) == ([], [])


def test_a_trigger_that_is_not_known_is_not_overwritten() -> None:
    (found,) = read_flows(Flows(("9", ["7"])), [held(GREET, object_id="7")])

    assert found.uncarried == ("actions at trigger 9",)


def test_a_written_flow_shows_by_its_actions_or_by_a_later_write() -> None:
    spec = declared(TOKEN, {USERINFO: ["greet"]}).spec
    awaited = AwaitedFlows()
    awaited.note(CreateOrder(TOKEN, spec, "key", "77"), Written("77-2", 9))

    missing = [
        awaited.not_shown(objects, ["acme"])
        for objects in ({}, {TOKEN.key: held(TOKEN, {USERINFO: ["log"]}, sequence=8)})
    ]
    later = awaited.not_shown({TOKEN.key: held(TOKEN, {USERINFO: ["log"]}, sequence=10)}, ["acme"])

    assert (missing, later) == ([[TOKEN.key], [TOKEN.key]], [])
    assert awaited.not_shown({}, ["acme"]) == []


def test_a_cleared_flow_must_be_gone() -> None:
    flow = held(TOKEN, {USERINFO: ["greet"]}, sequence=9)
    awaited = AwaitedFlows()
    awaited.note(DeleteOrder(flow), Written(flow.id, 9))

    assert awaited.not_shown({TOKEN.key: flow}, ["acme"]) == [TOKEN.key]
    assert awaited.not_shown({}, ["acme"]) == []
