"""The rules of action flows: triggers, and what runs at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.diagnostics import Diagnostic, cut, error, warning
from reconciler.kinds.action_flow.flows import FLOW_NAMED, FLOWS, TRIGGER_NAMED
from reconciler.resources.call import JsonObject
from reconciler.resources.fields import Spec
from reconciler.resources.nearest import nearest, one_of
from reconciler.resources.ref import fold
from reconciler.rules.form import Compile, Found, KindRules, Planned
from reconciler.rules.risks import Removal, Rule, gains_any, keeps_some, moves, turned_off
from reconciler.rules.texts import duplicates
from reconciler.state import DesiredState, ObjectEvent, ObservedState, Resource

_TRIGGERS = tuple(TRIGGER_NAMED)


def _findings(resource: Resource, written: Spec, _: Compile) -> Iterator[Found]:
    triggers = [trigger.name for trigger in FLOW_NAMED[resource.ref.name].triggers]
    for trigger, names in resource.spec.items():
        if trigger in written and trigger not in triggers:
            problem = _not_of_the_flow(resource.ref.name, trigger, triggers)
            yield Found(problem, ("spec", trigger))
        for position in duplicates([fold(name) for name in names]):
            yield Found(_twice(names[position]), ("spec", trigger, position))


def _not_of_the_flow(flow: str, trigger: str, triggers: list[str]) -> Diagnostic:
    others = [each.name for each in FLOWS if trigger in {one.name for one in each.triggers}]
    meant = nearest(trigger, triggers)
    hint = f"Did you mean {meant}? " if meant else ""
    return error(
        "FLOW-TRIGGER",
        f"{flow} has no trigger {trigger}",
        f"{hint}Write {one_of(triggers)}; {trigger} is a trigger of {one_of(others)}.",
    )


def _twice(name: str) -> Diagnostic:
    return error(
        "FLOW-ACTION-TWICE",
        f"the action {cut(name)} is in this list already",
        "Remove one: a trigger runs an action once.",
    )


def _not_run(planned: Planned, _: DesiredState, observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield one warning where actions of flows that are written never run.

    This project's own service stores flows and runs none. The Login V2 of a ZITADEL does not run
    those of the authentication flows; no call reports which login an organization has.
    """
    flows = [resource for resource, _ in planned.written if any(resource.spec.values())]
    if not flows:
        return
    if observed.keeps_history:
        yield warning(
            "PLAN-FLOW-NOT-RUN",
            "this service stores the actions of flows and runs none",
            "Scripts run on a ZITADEL only. Here flows are planned, reviewed and kept.",
            flows[0].source.place("metadata", "name"),
        )
        return
    logins = [flow for flow in flows if flow.ref.name in _OF_LOGIN]
    if logins:
        names = ", ".join(sorted({flow.ref.name for flow in logins}))
        yield warning(
            "PLAN-FLOW-NOT-RUN",
            "Login V2 does not run the actions of an authentication flow",
            f"{names}: only the pages of Login V1 run it. Login V2 is the default of instances "
            "that were made with ZITADEL 4: check which login the organization uses before it "
            "relies on these actions.",
            logins[0].source.place("metadata", "name"),
        )


_OF_LOGIN = frozenset({"EXTERNAL_AUTHENTICATION", "INTERNAL_AUTHENTICATION"})

# Events of a flow name one trigger each, and actions by id.
_SET, _DROPPED, _REMOVED = "flow.trigger.set", "flow.action.dropped", "flow.removed"


def ids_named(events: Sequence[ObjectEvent]) -> Iterator[str]:
    """Yield the ids of the actions that events of a flow name."""
    for event in events:
        if event.type == _SET:
            yield from _ids(event.payload)


def with_specs(events: Sequence[ObjectEvent], names: Mapping[str, str]) -> Sequence[ObjectEvent]:
    """Return events of an object; those of a flow with its whole spec.

    An action that is not among ``names``, which are by id, is shown as its id.
    """
    triggers: dict[str, list[str]] = {}
    told = []
    for event in events:
        if event.type not in {_SET, _DROPPED, _REMOVED}:
            told.append(event)
            continue
        triggers = _after(triggers, event.type, event.payload)
        spec = {
            trigger: [names.get(action, f"(action of id {action})") for action in actions]
            for trigger, actions in triggers.items()
        }
        told.append(replace(event, payload={"spec": spec}))
    return told


def _after(
    triggers: Mapping[str, list[str]], event: str, payload: JsonObject
) -> dict[str, list[str]]:
    """Return the ids of the actions of each trigger that ever had any, after an event."""
    if event == _SET:
        return {**triggers, str(payload.get("trigger", "")): _ids(payload)}
    if event == _REMOVED:
        return {trigger: [] for trigger in triggers}
    gone = payload.get("action")
    return {
        trigger: [action for action in actions if action != gone]
        for trigger, actions in triggers.items()
    }


def _ids(payload: JsonObject) -> list[str]:
    actions = payload.get("actions")
    return [str(action) for action in actions] if isinstance(actions, list) else []


RULES = KindRules(
    guarded=frozenset(_TRIGGERS),
    removal=Removal(
        "flow-cleared", 960, "no action runs in it any more: nothing of it is enforced"
    ),
    risks=(
        Rule(
            "trigger-emptied", 750, _TRIGGERS, turned_off,
            "no action runs at the trigger any more: what they enforced is not enforced",
        ),
        Rule(
            "trigger-action-removed", 740, _TRIGGERS, keeps_some,
            "what the action enforced at the trigger is no longer enforced",
        ),
        Rule(
            "trigger-action-added", 730, _TRIGGERS, gains_any,
            "other code runs while people sign in or tokens are made", also_new=True,
        ),
        Rule(
            "trigger-order-changed", 480, _TRIGGERS, moves,
            "an action may see what one that came after it before has set, or miss it",
        ),
    ),
    findings=_findings,
    advice=_not_run,
    ids_named=ids_named,
    with_specs=with_specs,
)  # fmt: skip
