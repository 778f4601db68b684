"""The generation of a ZITADEL, and what its lists must show after a write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.resources.ref import Kind
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.wire import Answer, WireRefusal, refusal_in
from reconciler.service_client.zitadel.client import Awaited, ask_generation
from reconciler.state import ObservedObject
from tests.builders import GREET, TOKEN, WEB, declared, held
from tests.rows import each_row
from tests.unit.service_client.fake_wire import FakeWire, Reply

NOT_FOUND = refusal_in({"code": 5, "message": "Not Found"})
DENIED = refusal_in({"code": 7, "message": "no", "details": [{"id": "AUTH-5mWD2"}]})


@each_row(
    ("reply", "generation", "asked"),
    [
        (Answer({"functions": []}), 4, 1),
        (DENIED, 4, 1),
        (NOT_FOUND, 3, 2),
        (refusal_in({"code": 12, "message": "Not Implemented"}), 3, 2),
        (WireRefusal(5, "page not found"), 0, 1),
        (WireRefusal(0, "no answer", unsure=True), 0, 1),
        (refusal_in({"code": 13, "message": "no"}), 0, 1),
    ],
)
def test_the_generation(reply: Reply, generation: int, asked: int) -> None:
    """An unknown address is asked for twice; everything unclear is unknown."""
    wire = FakeWire(ListExecutionFunctions=reply)

    assert ask_generation(wire) == generation
    assert len(wire.sent) == asked


USERINFO = "PRE_USERINFO_CREATION"
BEFORE, AFTER = held(GREET, sequence=8), held(GREET, sequence=9)
OFF = replace(AFTER, active=False)
FLOW = held(TOKEN, {USERINFO: ["greet"]}, sequence=9)
OTHER = held(TOKEN, {USERINFO: ["log"]}, sequence=9)


@each_row(
    ("order", "shown", "not_shown"),
    [
        pytest.param(
            CreateOrder(declared(GREET)), [[BEFORE], [AFTER]], [[], [held(WEB)]], id="a create"
        ),
        pytest.param(
            UpdateOrder(declared(GREET), BEFORE), [[AFTER], [OFF]], [[], [BEFORE]], id="an update"
        ),
        pytest.param(
            UpdateOrder(replace(declared(GREET), active=False), BEFORE),
            [[OFF], [replace(OFF, sequence=10)]],
            [[AFTER], [replace(BEFORE, active=False)], []],
            id="a state",
        ),
        pytest.param(DeleteOrder(AFTER), [[], [held(WEB)]], [[BEFORE], [AFTER]], id="a delete"),
        pytest.param(
            SecretOrder(
                held(WEB, object_id=AFTER.id, organization_id="1", project_id="2", client_id="3")
            ),
            [[]],
            [],
            id="a secret",
        ),
        pytest.param(
            CreateOrder(declared(TOKEN, FLOW.spec), FLOW.organization_id),
            [[FLOW], [replace(OTHER, sequence=10)]],
            [[], [OTHER]],
            id="a new flow",
        ),
        pytest.param(
            UpdateOrder(declared(TOKEN, {USERINFO: ["greet"]}), OTHER),
            [[FLOW], [replace(OTHER, sequence=10)]],
            [[], [OTHER]],
            id="a flow",
        ),
        pytest.param(DeleteOrder(FLOW), [[]], [[FLOW]], id="a cleared flow"),
    ],
)
def test_what_was_written_shows_as_it_is_or_by_what_came_later(
    order: Order, shown: list[list[ObservedObject]], not_shown: list[list[ObservedObject]]
) -> None:
    """A list that shows less is older than the write, and would be planned from."""
    written = Written(FLOW.id if order.ref.kind is Kind.ACTION_FLOW else AFTER.id, 9)
    for objects, missing in (
        *((objects, []) for objects in shown),
        *((objects, [order.ref.key]) for objects in not_shown),
    ):
        awaited = Awaited()
        awaited.note(order, written)

        assert awaited.not_shown(objects, ["initech"], flows=True) == []
        assert awaited.not_shown(objects, ["Acme"], flows=True) == missing
        if not missing:  # what has shown once is not awaited any more
            assert awaited.not_shown([], ["acme"], flows=True) == []


def test_flows_are_awaited_only_where_they_are_read() -> None:
    awaited = Awaited()
    awaited.note(DeleteOrder(FLOW), Written(FLOW.id, 9))

    assert awaited.not_shown([], ["acme"], flows=False) == []
    assert awaited.not_shown([FLOW], ["acme"], flows=True) == [TOKEN.key]


def test_a_state_stays_awaited_when_the_object_is_written_to_again() -> None:
    awaited = Awaited()
    awaited.note(UpdateOrder(replace(declared(GREET), active=False), BEFORE), Written(AFTER.id, 9))
    awaited.note(UpdateOrder(declared(GREET), AFTER), Written(AFTER.id, 10))

    assert awaited.not_shown([replace(AFTER, sequence=10)], ["acme"], flows=True) == [GREET.key]
    assert awaited.not_shown([replace(OFF, sequence=10)], ["acme"], flows=True) == []
