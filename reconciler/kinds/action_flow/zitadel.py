"""Action flows of a ZITADEL, each of which is read by a call of its own.

A flow has no name, id or sequence there, but for the sequence of one of its triggers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reconciler.errors import ServiceError
from reconciler.kinds.action_flow.flows import (
    FLOW_NAMED,
    FLOWS,
    TRIGGER_NUMBERED,
    Flow,
    flow_id,
)
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import ACTION, ACTION_FLOW, Kind, ResourceRef
from reconciler.service_client.answers import id_of, objects_of, sequence_of, text_of, unsound
from reconciler.service_client.port import CreateOrder
from reconciler.service_client.wire import Wire, answers_of
from reconciler.service_client.zitadel.kinds import ZitadelKind
from reconciler.service_client.zitadel.objects import Owner
from reconciler.service_client.zitadel.steps import changed_since
from reconciler.state import ObservedObject


class _Flows(ZitadelKind):
    def read_one_by_one(
        self, wire: Wire, objects: Sequence[ObservedObject]
    ) -> Sequence[ObservedObject]:
        # One call reads one flow of one organization. Only those that have actions are asked: a
        # trigger runs actions of its own organization.
        actions: dict[Owner, dict[str, str]] = {}
        for held in objects:
            if held.ref.kind is ACTION:
                owner = Owner(held.organization_id, held.ref.organization)
                actions.setdefault(owner, {})[held.id] = held.ref.name
        asked = [(owner, flow) for owner in actions for flow in FLOWS]
        calls = [Call(self.reads[0], {"type": flow.number}, owner.id) for owner, flow in asked]
        answers = map(answered_flow, answers_of(wire, calls))
        return [
            _flow_object(flow, found, owner, actions[owner])
            for (owner, flow), found in zip(asked, answers, strict=True)
            if found.triggers
        ]

    def as_read(
        self, at: CreateOrder | ObservedObject, answer: JsonObject
    ) -> ObservedObject | None:
        owner = Owner(at.organization_id, at.ref.organization)
        return _flow_object(FLOW_NAMED[at.ref.name], answered_flow(answer), owner, {})

    def moved_on(
        self, at: CreateOrder | ObservedObject, sequence: int, answer: JsonObject
    ) -> ServiceError | None:
        found, flow = answered_flow(answer), FLOW_NAMED[at.ref.name]
        held = DEFAULTS[ACTION_FLOW] if isinstance(at, CreateOrder) else at.spec
        # Numbers, not names: the read may show an action under the name it had before this run.
        is_same = all(
            len(found.triggers.get(each.number, ())) == len(held[each.name])
            for each in flow.triggers
        )
        is_old = not found.triggers or found.sequence <= sequence
        return None if is_same and is_old else changed_since(at.ref)


class AnsweredFlow(NamedTuple):
    """A flow as one call answers it.

    Attributes:
        triggers: The actions of each trigger that has any, by the number of the trigger.
        sequence: That of one of its triggers; 0 where none has actions.
    """

    triggers: Mapping[str, Sequence[JsonObject]]
    sequence: int
    changed_at: str


def answered_flow(answer: JsonObject) -> AnsweredFlow:
    """Return the flow that is answered."""
    fields = answer.get("flow")
    if not isinstance(fields, dict):
        raise unsound("?", "flow is not an object")
    triggers = {}
    for each in objects_of({"triggerActions": [], **fields}, "triggerActions"):
        kind = each.get("triggerType")
        actions = objects_of({"actions": [], **each}, "actions")
        if not isinstance(kind, dict):
            raise unsound("?", "triggerType is not an object")
        if actions:
            triggers[text_of(kind, "id")] = actions
    if not triggers:
        return AnsweredFlow({}, 0, "")
    told = fields.get("details")
    details = {"sequence": "0", "changeDate": "", **(told if isinstance(told, dict) else {})}
    return AnsweredFlow(triggers, sequence_of(details), text_of(details, "changeDate"))


def _flow_object(
    flow: Flow, found: AnsweredFlow, owner: Owner, actions: Mapping[str, str]
) -> ObservedObject:
    """Return a flow that has actions, named as they are in ``actions``, by id."""
    spec: dict[str, Any] = {**DEFAULTS[ACTION_FLOW]}
    strange: list[str] = []
    for number, ran in found.triggers.items():
        # An action that was made or renamed since the list was read has the name of this answer.
        names = [actions.get(id_of(action)) or text_of(action, "name") for action in ran]
        trigger = TRIGGER_NUMBERED.get(number)
        if trigger in flow.triggers and trigger is not None:
            spec[trigger.name] = names
        else:
            strange.append(f"actions at trigger {number}")
    return ObservedObject(
        ref=ResourceRef(ACTION_FLOW, owner.name, "", flow.name),
        id=flow_id(owner.id, flow),
        sequence=found.sequence,
        spec=spec,
        organization_id=owner.id,
        changed_at=found.changed_at,
        uncarried=tuple(sorted(strange)),
    )


ROW = _Flows(
    Kind.ACTION_FLOW, reads=("GetFlow", "flow"), not_changed=("COMMAND-Nfh52", "COMMAND-DgGh3")
)
