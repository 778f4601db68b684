"""Lists and flows of a ZITADEL: a flow is read where there are actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.resources.call import Call
from reconciler.service_client.wire import Answer, Reply
from reconciler.service_client.zitadel.reading import read_flows
from tests.builders import ACME, GREET, TOKEN, held

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
