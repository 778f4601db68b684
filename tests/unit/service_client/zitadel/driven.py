"""Steps of an order to a ZITADEL, taken with the replies that a test says."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from reconciler.resources.call import Call
from reconciler.service_client.wire import Reply
from reconciler.service_client.zitadel.steps import Step

T = TypeVar("T")


def driven(steps: Generator[Step, Reply, T], *replies: Reply) -> tuple[T, list[Step]]:
    """Take steps to their end; return their result, and the steps in their order.

    The calls get the replies in turn, and need every one of them.
    """
    left, taken = list(replies), list[Step]()
    try:
        step = next(steps)
        while True:
            taken.append(step)
            step = steps.send(left.pop(0)) if isinstance(step, Call) else next(steps)
    except StopIteration as end:
        assert left == []
        result: T = end.value
        return result, taken


def operations(steps: list[Step]) -> list[object]:
    """Return steps with each call by the name of its operation."""
    return [step.operation if isinstance(step, Call) else step for step in steps]
