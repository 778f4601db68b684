"""Action flows of a ZITADEL: one call reads one flow of one organization.

So they are read only where a run needs them, and only in organizations that have actions: a
trigger runs actions of its own organization. A flow is held while a trigger has actions. Its
sequence is that of one of its triggers, so what must show is told by its actions as well.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from reconciler.errors import ServiceError
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.fields import Spec
from reconciler.resources.flows import FLOW_NAMED, FLOWS, TRIGGER_NUMBERED, Flow, flow_id
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import ACTION, ACTION_FLOW, ResourceRef, fold
from reconciler.service_client.answers import id_of, objects_of, sequence_of, text_of, unsound
from reconciler.service_client.orders import calls_of, unchanged, written
from reconciler.service_client.port import CreateOrder, DeleteOrder, UpdateOrder, Written
from reconciler.service_client.wire import (
    Answer,
    Reply,
    Wire,
    WireRefusal,
    answers_of,
    error_id,
    service_error,
)
from reconciler.service_client.zitadel.asking import Pause, Steps, changed_since, despite_conflicts
from reconciler.service_client.zitadel.objects import Owner
from reconciler.state import ObservedObject

# Ids of refusals of a write that finds the flow as it should be.
NOT_CHANGED = frozenset({"COMMAND-Nfh52", "COMMAND-DgGh3"})


def read_flows(wire: Wire, objects: Iterable[ObservedObject]) -> list[ObservedObject]:
    """Return the flows that have actions, in the organizations among some objects.

    Raises:
        ServiceError: one of them cannot be read.
    """
    actions: dict[str, dict[str, str]] = {}
    owners: dict[str, Owner] = {}
    for held in objects:
        if held.ref.kind is ACTION:
            actions.setdefault(held.organization_id, {})[held.id] = held.ref.name
            owners[held.organization_id] = Owner(held.organization_id, held.ref.organization)
    asked = [(owner, flow) for owner in owners.values() for flow in FLOWS]
    calls = [Call("GetFlow", {"type": flow.number}, owner.id) for owner, flow in asked]
    found = zip(asked, answers_of(wire, calls), strict=True)
    flows = [_observed(flow, _flow_in(each), owner, actions) for (owner, flow), each in found]
    return [each for each in flows if each is not None]


def _flow_in(answer: JsonObject) -> JsonObject:
    """Return the flow that is answered.

    Raises:
        ServiceError: there is none.
    """
    found = answer.get("flow")
    if not isinstance(found, dict):
        raise unsound("?", "flow is not an object")
    return found


def _observed(
    flow: Flow, fields: JsonObject, owner: Owner, actions: Mapping[str, Mapping[str, str]]
) -> ObservedObject | None:
    triggers = _triggers(fields)
    if not triggers:
        return None
    spec: dict[str, Any] = {**DEFAULTS[ACTION_FLOW]}
    strange: list[str] = []
    listed = actions[owner.id]
    for number, ran in triggers.items():
        # An action that was made or renamed since the list was read has the name of this answer.
        names = [listed.get(id_of(action)) or text_of(action, "name") for action in ran]
        trigger = TRIGGER_NUMBERED.get(number)
        if trigger in flow.triggers and trigger is not None:
            spec[trigger.name] = names
        else:
            strange.append(f"actions at trigger {number}")
    details = _details(fields)
    return ObservedObject(
        ref=ResourceRef(ACTION_FLOW, owner.name, "", flow.name),
        id=flow_id(owner.id, flow),
        sequence=sequence_of({"sequence": "0", **details}),
        spec=spec,
        organization_id=owner.id,
        changed_at=text_of({"changeDate": "", **details}, "changeDate"),
        uncarried=tuple(sorted(strange)),
    )


def _triggers(fields: JsonObject) -> Mapping[str, Sequence[JsonObject]]:
    """Return the actions of each trigger that has any, by the number of the trigger."""
    found = {}
    for each in objects_of({"triggerActions": [], **fields}, "triggerActions"):
        kind = each.get("triggerType")
        actions = objects_of({"actions": [], **each}, "actions")
        if not isinstance(kind, dict):
            raise unsound("?", "triggerType is not an object")
        if actions:
            found[text_of(kind, "id")] = actions
    return found


def _details(fields: JsonObject) -> JsonObject:
    details = fields.get("details", {})
    return details if isinstance(details, dict) else {}


def write_flow(order: CreateOrder | UpdateOrder | DeleteOrder) -> Steps:
    """Set each trigger that changes, or clear the flow; read it first.

    To set a trigger again gives the same, so a lost answer is asked for again.
    """
    result: Written | ServiceError = unchanged(order)
    # Contexts are kept by our service alone.
    calls = [call for call in calls_of(order, {}) if call.operation != "RecordContext"]
    is_moved = not isinstance(order, CreateOrder) and order.is_moved
    if calls and not is_moved:
        moved = yield from _moved_on(order)
        if moved is not None:
            return moved
    for number, call in enumerate(calls):
        # The flow has changed by what this order, or an earlier one of this run, wrote.
        look = None if number or is_moved else partial(_moved_on, order)
        reply = yield from despite_conflicts(
            Call(call.operation, call.fields, call.organization), look
        )
        if isinstance(reply, ServiceError):
            return reply
        if isinstance(reply, Answer):
            result = unchanged(order) if isinstance(order, DeleteOrder) else written(order, reply)
        elif error_id(reply) not in NOT_CHANGED:
            return service_error(reply)
    return result


def _moved_on(
    order: CreateOrder | UpdateOrder | DeleteOrder,
) -> Generator[Call | Pause, Reply, ServiceError | None]:
    """Read a flow just before it is written to; return why that must not be."""
    if isinstance(order, CreateOrder):
        ref, organization, sequence = order.ref, order.organization_id, 0
        held: Spec = DEFAULTS[ACTION_FLOW]
    else:
        ref, organization = order.held.ref, order.held.organization_id
        held, sequence = order.held.spec, order.held.sequence
    flow = FLOW_NAMED[ref.name]
    reply = yield Call("GetFlow", {"type": flow.number}, organization)
    if isinstance(reply, WireRefusal):
        return service_error(reply)
    found = _flow_in(reply.fields)
    triggers = _triggers(found)
    # Numbers, not names: the read may show an action under the name it had before this run.
    now = {each.name: len(triggers.get(each.number, ())) for each in flow.triggers}
    is_same = all(number == len(held[name]) for name, number in now.items())
    if is_same and (not triggers or sequence_of({"sequence": "0", **_details(found)}) <= sequence):
        return None
    return changed_since(ref)


class AwaitedFlows:
    """Flows that were written and must show.

    The sequence of a flow is that of one trigger, and a flow without actions has none. So a flow
    shows what was written when it has the actions of the order, or was written to later.
    """

    def __init__(self) -> None:
        self._awaited: dict[ResourceRef, tuple[Spec, int]] = {}

    def note(self, order: CreateOrder | UpdateOrder | DeleteOrder, written: Written) -> None:
        """Take note of what must show after an order that was carried out."""
        match order:
            case CreateOrder(ref=ref, spec=spec):
                self._awaited[ref.key] = spec, written.sequence
            case UpdateOrder(resource=resource):
                self._awaited[resource.ref.key] = resource.spec, written.sequence
            case DeleteOrder(held=held):
                self._awaited[held.ref.key] = DEFAULTS[ACTION_FLOW], written.sequence

    def not_shown(
        self, objects: Mapping[ResourceRef, ObservedObject], organizations: Collection[str]
    ) -> list[ResourceRef]:
        """Return the flows of some organizations (names) that do not show yet."""
        names = {fold(name) for name in organizations}
        missing = []
        for ref, (spec, sequence) in list(self._awaited.items()):
            if ref.organization not in names:
                continue
            held = objects.get(ref)
            shown = held.spec if held else DEFAULTS[ACTION_FLOW]
            if shown == spec or (held is not None and held.sequence > sequence):
                del self._awaited[ref]
            else:
                missing.append(ref)
        return missing
