"""Flows of a ZITADEL: read where there are actions, and before each is written to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reconciler.errors import ObjectNotFoundError, PreconditionFailedError, ServiceError
from reconciler.kinds.action_flow.zitadel import ROW, answered_flow
from reconciler.resources.call import Call, JsonObject
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, Written
from reconciler.service_client.wire import Answer, Reply, WireRefusal
from reconciler.service_client.zitadel.writes import steps_of
from tests.builders import ACME, GREET, TOKEN, declared, held
from tests.unit.service_client.zitadel.driven import driven, operations

MINE: dict[str, Any] = {"object_id": "7", "organization_id": "1", "sequence": 9}
GONE = WireRefusal(5, "no such object", {"id": "A-1"})
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

    (found,) = ROW.read_one_by_one(wire, [held(ACME), held(GREET, object_id="7")])

    assert found.spec[USERINFO] == ["greet", "at 8"]
    assert (found.ref, found.sequence, found.uncarried) == (TOKEN, 9, ())
    assert found.id == f"{found.organization_id}-2"


def test_an_organization_without_actions_is_not_asked() -> None:
    wire = Flows()

    assert (ROW.read_one_by_one(wire, [held(ACME)]), wire.asked) == ([], [])


def test_a_trigger_that_is_not_known_is_not_overwritten() -> None:
    (found,) = ROW.read_one_by_one(Flows(("9", ["7"])), [held(GREET, object_id="7")])

    assert found.uncarried == ("actions at trigger 9",)


def test_a_flow_has_the_triggers_that_run_actions() -> None:
    triggers = [
        {"triggerType": {"id": "4"}, "actions": [{"id": "7"}]},
        {"triggerType": {"id": "5"}},
    ]

    found = answered_flow({"flow": {"triggerActions": triggers, "details": {"sequence": "9"}}})

    assert (found.triggers, found.sequence, found.changed_at) == ({"4": [{"id": "7"}]}, 9, "")
    assert answered_flow({"flow": {}}).triggers == {}


@pytest.mark.parametrize(
    "answer", [{}, {"flow": []}, {"flow": {"triggerActions": [{"triggerType": "4"}]}}]
)
def test_a_flow_that_cannot_be_read_is_an_error(answer: JsonObject) -> None:
    with pytest.raises(ServiceError, match="not an object"):
        answered_flow(answer)


def at(sequence: int) -> JsonObject:
    return {"sequence": str(sequence), "resourceOwner": "1"}


def done() -> Answer:
    return Answer({"details": at(10)})


FLOW = CreateOrder(declared(TOKEN, {USERINFO: ["greet"]}), "1", named_ids={"greet": "7"})


def flow(*actions: str, sequence: int = 9) -> Answer:
    triggers = [{"triggerType": {"id": "4"}, "actions": [{"id": each} for each in actions]}]
    return Answer({"flow": {"triggerActions": triggers, "details": at(sequence)}})


@pytest.mark.parametrize(
    ("order", "replies", "result"),
    [
        pytest.param(FLOW, [flow(), done()], Written("1-2", 10), id="new"),
        pytest.param(FLOW, [flow("8")], PreconditionFailedError, id="made by another"),
        pytest.param(
            FLOW, [flow(), WireRefusal(9, "no (COMMAND-Nfh52)")], Written("1-2", 0), id="no change"
        ),
        pytest.param(FLOW, [flow(), GONE], ObjectNotFoundError, id="refused"),
        pytest.param(
            DeleteOrder(held(TOKEN, {USERINFO: ["greet"]}, **{**MINE, "object_id": "1-2"})),
            [flow("7"), done()],
            Written("1-2", 9),
            id="cleared",
        ),
    ],
)
def test_a_flow_is_read_before_it_is_written_to(
    order: Order, replies: list[Reply], result: Written | type[ServiceError]
) -> None:
    made, steps = driven(steps_of(order, ROW), *replies)

    assert (made if isinstance(made, Written) else type(made)) == result
    assert operations(steps)[0] == "GetFlow"


def test_a_flow_that_this_run_changed_before_is_not_read() -> None:
    order = DeleteOrder(held(TOKEN, {USERINFO: ["greet"]}, **MINE), is_moved=True)

    _, steps = driven(steps_of(order, ROW), done())

    assert operations(steps) == ["ClearFlow"]
