"""Action flows as the wire has them: flows and triggers by number, actions by id.

There is no call that makes a flow: it is there as soon as one of its triggers has actions, and no
longer when the last trigger is emptied. One call sets the actions of one trigger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from reconciler.resources.call import Call, JsonObject
from reconciler.resources.flows import FLOW_NAMED, TRIGGER_NUMBERED, flow_id
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import ACTION, ACTION_FLOW, fold
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, UpdateOrder
from reconciler.state import ObservedObject

GET, SET, CLEAR = "GetFlow", "SetTriggerActions", "ClearFlow"
FlowOrder: TypeAlias = CreateOrder | UpdateOrder


def is_of_flow(order: Order) -> bool:
    """Return whether an order is about a flow."""
    match order:
        case UpdateOrder() | DeleteOrder():
            return order.held.ref.kind is ACTION_FLOW
        case _:
            return order.ref.kind is ACTION_FLOW


def trigger_fields(order: FlowOrder) -> Iterator[JsonObject]:
    """Yield the fields of one call for each trigger whose actions change.

    Triggers are emptied last, so that a flow is not without actions on the way.
    """
    if isinstance(order, CreateOrder):
        ref, before, wanted = order.ref, DEFAULTS[ACTION_FLOW], order.spec
    else:
        ref, before, wanted = order.resource.ref, order.held.spec, order.resource.spec
    flow = FLOW_NAMED[ref.name]
    for trigger in sorted(flow.triggers, key=lambda each: not wanted[each.name]):
        names = wanted[trigger.name]
        if names != before[trigger.name]:
            ids = [order.actions[fold(name)] for name in names]
            yield {"flowType": flow.number, "triggerType": trigger.number, "actionIds": ids}


def clear_fields(held: ObservedObject) -> JsonObject:
    """Return the fields of the call that empties a flow."""
    return {"type": FLOW_NAMED[held.ref.name].number}


def id_of_new(order: CreateOrder) -> str:
    """Return the id of a flow that an order makes: it is known before."""
    return flow_id(order.organization_id, FLOW_NAMED[order.ref.name])


def runs_as_asked(order: FlowOrder, call: Call, held: ObservedObject | None) -> bool:
    """Return whether a flow as it is held has the actions that a call sets."""
    trigger = TRIGGER_NUMBERED[str(call.fields["triggerType"])]
    names: Iterable[str] = held.spec[trigger.name] if held else ()
    ids = [order.actions.get(fold(name)) for name in names]
    return bool(ids == call.fields["actionIds"])


def with_action_names(
    listed: Sequence[JsonObject], organization: str, incomplete: list[str]
) -> Sequence[JsonObject]:
    """Return the listed objects of an organization with flows that name their actions.

    A flow is answered with the ids of its actions, without triggers that have none. A flow whose
    actions are not listed is added to the incomplete.
    """
    if not any(fields.get("kind") == ACTION_FLOW for fields in listed):
        return listed
    names = {
        str(fields.get("id")): str(fields.get("name"))
        for fields in listed
        if fields.get("kind") == ACTION
    }
    return [
        {**fields, "spec": _named(fields, names, organization, incomplete)}
        if fields.get("kind") == ACTION_FLOW and isinstance(fields.get("spec"), dict)
        else fields
        for fields in listed
    ]


def _named(
    fields: JsonObject, names: Mapping[str, str], organization: str, incomplete: list[str]
) -> JsonObject:
    spec = {
        trigger: [names.get(str(action), str(action)) for action in actions]
        for trigger, actions in fields["spec"].items()
        if isinstance(actions, list)
    }
    ids = {str(action) for trigger in spec for action in fields["spec"][trigger]}
    if not ids <= names.keys():
        flow = fields.get("name")
        incomplete.append(f"{organization} lists actions of {flow} that it does not list.")
    return {**DEFAULTS[ACTION_FLOW], **fields["spec"], **spec}
