"""Looking at a service: what could write does not get as far as the wire."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reconciler.resources.call import ADDRESSES, Call
from reconciler.service_client.read_only import ReadOnlyWire
from reconciler.service_client.wire import Answer, WireRefusal


class Sent:
    """A wire that notes what is sent."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        self.calls += calls
        return [Answer({}) for _ in calls]


@pytest.mark.parametrize("operation", ADDRESSES)
def test_a_wire_for_reading_carries_what_gets_or_lists_and_nothing_else(operation: str) -> None:
    """Whatever a plan, a drift or an export asks for: not one call of a batch is sent."""
    sent = Sent()
    calls = [Call("ListOrgs"), Call(operation)]

    if operation.startswith(("Get", "List", "Healthz")):
        assert ReadOnlyWire(sent).send(calls) == [Answer({}), Answer({})]
        assert sent.calls == calls
    else:
        with pytest.raises(AssertionError, match=f"^{operation} writes"):
            ReadOnlyWire(sent).send(calls)
        assert sent.calls == []
