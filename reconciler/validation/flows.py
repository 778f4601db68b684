"""Rules for the manifests of action flows, each on its own."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.resources.flows import FLOW_NAMED, FLOWS
from reconciler.resources.nearest import nearest, one_of
from reconciler.resources.ref import fold
from reconciler.state import Resource
from reconciler.validation.problem import Problem, cut, wrong
from reconciler.validation.uris import duplicates


def flow_problems(resource: Resource) -> Iterator[tuple[Problem, tuple[str | int, ...]]]:
    """Yield what is wrong with a flow, each with the path in its document."""
    triggers = [trigger.name for trigger in FLOW_NAMED[resource.ref.name].triggers]
    for trigger, names in resource.spec.items():
        if trigger in resource.written and trigger not in triggers:
            yield _not_of_the_flow(resource.ref.name, trigger, triggers), ("spec", trigger)
        for position in duplicates([fold(name) for name in names]):
            yield _twice(names[position]), ("spec", trigger, position)


def _not_of_the_flow(flow: str, trigger: str, triggers: list[str]) -> Problem:
    others = [each.name for each in FLOWS if trigger in {one.name for one in each.triggers}]
    meant = nearest(trigger, triggers)
    hint = f"Did you mean {meant}? " if meant else ""
    return wrong(
        "FLOW-TRIGGER",
        f"{flow} has no trigger {trigger}",
        f"{hint}Write {one_of(triggers)}; {trigger} is a trigger of {one_of(others)}.",
    )


def _twice(name: str) -> Problem:
    return wrong(
        "FLOW-ACTION-TWICE",
        f"the action {cut(name)} is in this list already",
        "Remove one: a trigger runs an action once.",
    )
