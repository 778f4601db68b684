"""A wire that answers as a test says, and remembers what it was sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reconciler.resources.call import Call
from reconciler.service_client.locks import this_process
from reconciler.service_client.wire import Answer, WireRefusal

HERE = this_process()


CONTEXT = {"tree": "default"}


Reply = Answer | WireRefusal | Exception


class FakeWire:
    """Answers each call by its operation, from a table or a function; keeps what was sent."""

    def __init__(self, **replies: Callable[[Call], Reply] | Reply) -> None:
        self.replies = replies
        self.sent: list[list[Call]] = []

    def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        """Answer calls, or raise what an operation is told to raise."""
        self.sent.append(list(calls))
        return [self._reply(call) for call in calls]

    def _reply(self, call: Call) -> Answer | WireRefusal:
        reply = self.replies[call.operation]
        found = reply(call) if callable(reply) else reply
        if isinstance(found, Exception):
            raise found
        return found


def done(sequence: int = 0, **fields: Any) -> Answer:
    return Answer({"details": {"sequence": str(sequence)}, **fields})


def operations_of(wire: FakeWire) -> list[list[str]]:
    return [[call.operation for call in calls] for calls in wire.sent]
