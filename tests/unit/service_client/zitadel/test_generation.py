"""The generation of a ZITADEL: told by a call that only 4.x has, and never by a proxy."""

from __future__ import annotations

import pytest

from reconciler.service_client.wire import Answer, WireRefusal, refusal_in
from reconciler.service_client.zitadel.generation import ask_generation
from tests.unit.service_client.fake_wire import FakeWire, Reply

NOT_FOUND = refusal_in({"code": 5, "message": "Not Found"})
DENIED = refusal_in({"code": 7, "message": "no", "details": [{"id": "AUTH-5mWD2"}]})


@pytest.mark.parametrize(
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
    ids=["answer", "no right", "no address", "no method", "a proxy", "no answer", "failure"],
)
def test_the_generation(reply: Reply, generation: int, asked: int) -> None:
    """An unknown address is asked for twice; everything unclear is unknown."""
    wire = FakeWire(ListExecutionFunctions=reply)

    assert ask_generation(wire) == generation
    assert len(wire.sent) == asked
