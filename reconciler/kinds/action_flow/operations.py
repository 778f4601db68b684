"""The operations on flows, whose triggers name actions. This service runs no action.

A flow exists as long as one of its triggers has actions. Its id is known before it exists, and its
sequence goes on where it ended when the flow comes back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reconciler.kinds.action_flow.events import ActionDropped, TriggerSet, change_flow
from reconciler.kinds.action_flow.flows import (
    FLOW_NUMBERED,
    FLOWS,
    MAX_TRIGGER_ACTIONS,
    TRIGGER_NAMED,
    TRIGGER_NUMBERED,
    Flow,
    Trigger,
    flow_id,
)
from reconciler.resources.fields import texts
from reconciler.resources.kinds import MAX_NAME
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import Removed
from reconciler.service.domain.refusal import actions_unknown, invalid
from reconciler.service.eventstore.rows import ObjectRow, StreamAt
from reconciler.service.operations.answers import Answer, details_at, details_read, flat_view
from reconciler.service.operations.form import Asked, Form, name_field
from reconciler.service.operations.operation import Effect, operation
from reconciler.service.operations.session import Reading, Writing

# Words of the API before it had numbers, which its clients may still send.
_OLD_FLOWS: Mapping[str, str] = {"FLOW_TYPE_EXTERNAL_AUTHENTICATION": "1"}
_OLD_TRIGGERS: Mapping[str, str] = {
    "TRIGGER_TYPE_POST_AUTHENTICATION": "1",
    "TRIGGER_TYPE_PRE_CREATION": "2",
    "TRIGGER_TYPE_POST_CREATION": "3",
}

_FLOW = Form(None, (name_field("type"),))
_TRIGGER = Form(
    None,
    (
        name_field("flowType"),
        name_field("triggerType"),
        texts(
            "actionIds", "Ids of actions of the organization, each once, in the order to run them."
        )._replace(shortest=1, longest=MAX_NAME, most=MAX_TRIGGER_ACTIONS, examples=()),
    ),
)


class _Held(NamedTuple):
    """A flow as it is held.

    Attributes:
        stream: Its stream with all its events.
        row: None while no trigger has actions.
        sequence: Of its last event; 0 where there is none.
    """

    stream: StreamAt
    row: ObjectRow | None
    sequence: int


def get_flow(call: Reading, asked: Asked) -> Answer:
    """Answer a flow of the organization of the call: each trigger that has actions, with them."""
    flow = _flow("type", asked["type"])
    held = _held(call, call.organization().id, flow)
    triggers: Mapping[str, Sequence[str]] = json.loads(held.row.spec) if held.row else {}
    ids = {action for actions in triggers.values() for action in actions}
    # Among writes, the second look may see that another writer just removed an action.
    actions = {row.id: flat_view(row, "ACTION_STATE") for row in call.view.get_objects(ids)}
    details = details_read(held.row) if held.row else _details(held.stream, held.sequence)
    return {
        "flow": {
            "type": _type_view(flow, "Action.Flow.Type"),
            "details": details,
            "state": "FLOW_STATE_ACTIVE",
            "triggerActions": [
                {
                    "triggerType": _type_view(TRIGGER_NAMED[name], "Action.TriggerType"),
                    "actions": [actions[action] for action in triggers[name] if action in actions],
                }
                for name in TRIGGER_NAMED
                if name in triggers
            ],
        }
    }


def set_trigger_actions(call: Writing, asked: Asked) -> Answer:
    """Set the actions of one trigger of a flow of the organization of the call."""
    flow = _flow("flowType", asked["flowType"])
    trigger = _trigger(flow, asked["triggerType"])
    held = _expected(call, flow)
    sequence = _change(
        call, held, TriggerSet(Kind.ACTION_FLOW, flow.name, trigger.name, asked["actionIds"])
    )
    # After the write, which has locked the organization: no action can be removed meanwhile.
    _check_actions(call, held.stream.organization, asked["actionIds"])
    return {"details": _details(held.stream, sequence)}


def clear_flow(call: Writing, asked: Asked) -> Answer:
    """Empty every trigger of a flow of the organization of the call."""
    held = _expected(call, _flow("type", asked["type"]))
    sequence = (
        call.remove(held.row, Removed(Kind.ACTION_FLOW)).sequence if held.row else held.sequence
    )
    return {"details": _details(held.stream, sequence)}


def drop_from_flows(call: Writing, action: ObjectRow) -> None:
    """Take an action that was removed out of every trigger."""
    for flow in FLOWS:
        row = call.view.get_object(flow_id(action.organization, flow))
        if row is not None:
            _change(call, _as_held(row), ActionDropped(Kind.ACTION_FLOW, action.id))


def _flow(field: str, number: str) -> Flow:
    flow = FLOW_NUMBERED.get(_OLD_FLOWS.get(number, number))
    if flow is None:
        raise invalid(field, f"must be the number of a flow: {_numbers(FLOWS)}")
    return flow


def _trigger(flow: Flow, number: str) -> Trigger:
    trigger = TRIGGER_NUMBERED.get(_OLD_TRIGGERS.get(number, number))
    if trigger not in flow.triggers:
        rule = f"must be the number of a trigger of this flow: {_numbers(flow.triggers)}"
        raise invalid("triggerType", rule)
    return trigger


def _numbers(rows: Sequence[Flow | Trigger]) -> str:
    return ", ".join(f"{row.number} ({row.name})" for row in rows)


def _held(call: Reading, organization: str, flow: Flow) -> _Held:
    name = flow_id(organization, flow)
    row = call.view.get_object(name)
    if row is not None:
        return _as_held(row)
    version = call.view.stream_version(name)
    last = call.view.read_stream(name, after=version - 1, limit=1) if version else ()
    return _Held(StreamAt(organization, name, version), None, last[0].sequence if last else 0)


def _as_held(row: ObjectRow) -> _Held:
    return _Held(StreamAt(row.organization, row.id, row.version), row, row.sequence)


def _expected(call: Writing, flow: Flow) -> _Held:
    """Return a flow to be written, if it is at the sequence that the caller expects.

    A flow without actions is at the sequence of its last event, and at 0 as well: the caller may
    know no more of it than that it holds nothing.
    """
    held = _held(call, call.organization().id, flow)
    if held.row:
        call.expect(held.row.sequence)
    else:
        call.expect(held.sequence, 0)
    return held


def _change(call: Writing, held: _Held, event: TriggerSet | ActionDropped) -> int:
    """Write what a change of a flow means; return the sequence of the flow after it."""
    row = held.row
    events = change_flow(json.loads(row.spec) if row else {}, event)
    if not events:
        return held.sequence
    if row is None:
        return call.begin(held.stream, event).sequence
    if isinstance(events[0], Removed):
        return call.remove(row, events[0]).sequence
    return call.change(row, events).sequence


def _check_actions(call: Reading, organization: str, ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        raise actions_unknown()
    for row in map(call.view.get_object, ids):
        if row is None or (row.kind, row.organization) != (Kind.ACTION, organization):
            raise actions_unknown()


def _details(stream: StreamAt, sequence: int) -> Answer:
    """Return the details of a flow that was written; one without any event has no time."""
    if sequence:
        return details_at(stream.organization, sequence)
    return {"sequence": "0", "resourceOwner": stream.organization}


def _type_view(row: Flow | Trigger, prefix: str) -> Answer:
    words = row.name.replace("_", " ").capitalize().replace("saml", "SAML")
    return {"id": row.number, "name": {"key": f"{prefix}.{row.key}", "localizedMessage": words}}


ROWS = (
    operation("GetFlow", "org.flow.read", Effect.READS, get_flow, _FLOW),
    operation("SetTriggerActions", "org.flow.write", Effect.CHANGES, set_trigger_actions, _TRIGGER),
    # A flow that was cleared goes on, so that its sequence can still be expected.
    operation("ClearFlow", "org.flow.delete", Effect.CHANGES, clear_flow, _FLOW),
)
