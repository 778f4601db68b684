"""Orders as calls of operations, and the replies to these calls as results of orders.

On the wire a flow and a trigger are numbers, and the actions of a trigger are ids. No call makes a
flow: it is there as soon as one of its triggers has actions, and gone when the last one is emptied.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from reconciler.errors import ServiceError, ServiceUnavailableError
from reconciler.kinds.action_flow.flows import FLOW_NAMED, TRIGGER_NUMBERED, flow_id
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import ACTION_FLOW, Kind, fold
from reconciler.resources.secret import Secret
from reconciler.service_client.answers import id_of, sequence_of, text_of
from reconciler.service_client.port import (
    Context,
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.wire import AGAIN, Answer, Reply, WireRefusal, service_error
from reconciler.state import ObservedObject, Resource, holds, is_in_step, is_owned_by

T = TypeVar("T")
_SET_TRIGGER, _CLEAR_FLOW = "SetTriggerActions", "ClearFlow"


class _Operations(NamedTuple):
    """The operations that write one kind.

    Attributes:
        rename: Changes the name; the same as ``configure`` where one call changes both.
        id_field: Name of the object's id among the fields of all but ``create``.
        state: What the calls that switch it off and on are called after their verb.
    """

    create: str
    rename: str = ""
    configure: str = ""
    remove: str = ""
    id_field: str = ""
    state: str = ""


# Names and addresses are ZITADEL's (DESIGN 5.1), so both kinds of service are written to by these.
_OPERATIONS: Mapping[Kind, _Operations] = {
    Kind.ORGANIZATION: _Operations("AddOrg"),
    Kind.PROJECT: _Operations(
        "AddProject", "UpdateProject", "UpdateProject", id_field="id", state="Project"
    ),
    Kind.IDP_JWT_CONFIG: _Operations(
        "AddOrgJWTIDP", "UpdateOrgIDP", "UpdateOrgIDPJWTConfig", "RemoveOrgIDP", "idpId", "OrgIDP"
    ),
    Kind.OIDC_APPLICATION: _Operations(
        "AddOIDCApp", "UpdateApp", "UpdateOIDCAppConfig", "RemoveApp", "appId", "App"
    ),
    Kind.ACTION: _Operations(
        "CreateAction", "UpdateAction", "UpdateAction", "DeleteAction", "id", "Action"
    ),
    Kind.ACTION_FLOW: _Operations("", configure=_SET_TRIGGER, remove=_CLEAR_FLOW),
}

# Calls that write the audience. The source's calls do not know it, and leave it as it is: they are
# used for everything else.
_ADD_WITH_AUDIENCE, _UPDATE_WITH_AUDIENCE = "AddJWTProvider", "UpdateJWTProvider"
_AUDIENCE = "audience"


def calls_of(order: Order, context: Context, run: str = "") -> Sequence[Call]:
    """Return the calls that carry out an order, one after the other.

    A secret that a call makes is kept by the service for this run until it is acknowledged.
    Each but the first expects the sequence that the one before it answered.
    """
    # A reason is kept with what is written, like the tree and the plan.
    if order.reason:
        context = {**context, "reason": order.reason}
    match order:
        case CreateOrder() if order.ref.kind is ACTION_FLOW:
            return [_new_flow(order, context, fields) for fields in _trigger_fields(order)]
        case CreateOrder():
            return [_create(order, context, run)]
        case UpdateOrder():
            changes = in_turn(_rewrites(order), switch_of(order), active=order.resource.active)
            # Where nothing but marks changes, these are recorded.
            made = [*changes] or [("RecordContext", {"id": order.held.id})]
            marks = _context_text(context, order.resource)
            return [_held_call(order, operation, fields, marks) for operation, fields in made]
        case DeleteOrder():
            remove = _OPERATIONS[order.ref.kind].remove
            return [_held_call(order, remove, _target(order.held), json.dumps(context))]
        case SecretOrder():
            return [_new_secret(order, context, run)]


def _new_secret(order: SecretOrder, context: Context, run: str) -> Call:
    return Call(
        "RegenerateOIDCClientSecret",
        {"projectId": order.project_id, "appId": order.id},
        organization=order.organization_id,
        context=json.dumps(context),
        custody=run,
    )


def _create(order: CreateOrder, context: Context, run: str) -> Call:
    fields: dict[str, object] = {"name": order.ref.name, **order.spec}
    operation = _OPERATIONS[order.ref.kind].create
    if order.ref.kind is Kind.OIDC_APPLICATION:
        fields["projectId"] = order.project_id
    if order.ref.kind is Kind.IDP_JWT_CONFIG:
        if fields.get(_AUDIENCE):
            operation = _ADD_WITH_AUDIENCE
        else:
            fields.pop(_AUDIENCE, None)
    return Call(
        operation,
        fields,
        organization=order.organization_id,
        idempotency_key=order.key,
        context=_context_text(context, order),
        custody=run,
    )


def _new_flow(order: CreateOrder, context: Context, fields: JsonObject) -> Call:
    return Call(
        _SET_TRIGGER,
        fields,
        organization=order.organization_id,
        expected_sequence=0,  # the flow must still be without actions
        context=_context_text(context, order),
    )


def _trigger_fields(order: CreateOrder | UpdateOrder) -> Iterator[JsonObject]:
    """Yield the fields of one call for each trigger whose actions change."""
    if isinstance(order, CreateOrder):
        before, wanted = DEFAULTS[ACTION_FLOW], order.spec
    else:
        before, wanted = order.held.spec, order.resource.spec
    flow = FLOW_NAMED[order.ref.name]
    # Triggers are emptied last, so that a flow is not without actions on the way.
    for trigger in sorted(flow.triggers, key=lambda each: not wanted[each.name]):
        names = wanted[trigger.name]
        if names != before[trigger.name]:
            ids = [order.actions[fold(name)] for name in names]
            yield {"flowType": flow.number, "triggerType": trigger.number, "actionIds": ids}


_DEACTIVATE, _REACTIVATE = "Deactivate", "Reactivate"


def switch_of(order: UpdateOrder) -> tuple[str, JsonObject] | None:
    """Return operation and fields of the call that changes the state; None if it stays."""
    held, active = order.held, order.resource.active
    if active in {None, held.active}:
        return None
    verb = _REACTIVATE if active else _DEACTIVATE
    return f"{verb}{_OPERATIONS[held.ref.kind].state}", _target(held)


def in_turn(changes: Iterable[T], switch: T | None, *, active: bool | None) -> Iterator[T]:
    """Yield the changes of an object with that of its state: deactivated first, reactivated last.

    So a configuration that is being changed is never in use on the way, and a wrong one is not
    switched on.
    """
    if switch is not None and not active:
        yield switch
    yield from changes
    if switch is not None and active:
        yield switch


def _rewrites(order: UpdateOrder) -> Iterator[tuple[str, JsonObject]]:
    """Yield operation and fields of each call for name and spec; none if they stay."""
    held, wanted = order.held, order.resource
    operations, name = _OPERATIONS[wanted.ref.kind], {"name": wanted.ref.name}
    if order.ref.kind is ACTION_FLOW:
        yield from ((_SET_TRIGGER, fields) for fields in _trigger_fields(order))
        return
    is_renamed, is_changed = held.ref.name != wanted.ref.name, not holds(held, wanted.spec)
    if not operations.configure:  # organizations have nothing that changes
        return
    # This one call changes name, fields and audience together.
    if held.spec.get(_AUDIENCE) != wanted.spec.get(_AUDIENCE):
        yield _UPDATE_WITH_AUDIENCE, {"id": held.id, **name, **_sent(order)}
        return
    # Actions and projects have one call for name and fields; applications and providers have two.
    if operations.rename == operations.configure:
        if is_renamed or is_changed:
            yield operations.configure, {**_target(held), **name, **_sent(order)}
        return
    if is_renamed:
        yield operations.rename, {**_target(held), **name}
    if is_changed:
        fields = {**_target(held), **_sent(order)}
        fields.pop(_AUDIENCE, None)
        yield operations.configure, fields


def _target(held: ObservedObject) -> JsonObject:
    if held.ref.kind is ACTION_FLOW:
        return {"type": FLOW_NAMED[held.ref.name].number}
    project = {"projectId": held.project_id} if held.ref.kind is Kind.OIDC_APPLICATION else {}
    return {**project, _OPERATIONS[held.ref.kind].id_field: held.id}


def _sent(order: UpdateOrder) -> dict[str, object]:
    # A full update: what this version does not know goes back as it came. The OIDC version is fixed
    # when an application is made.
    fields = {**order.held.carried, **order.resource.spec}
    fields.pop("version", None)
    return fields


def _held_call(
    order: UpdateOrder | DeleteOrder, operation: str, fields: JsonObject, context: str
) -> Call:
    return Call(
        operation,
        fields,
        organization=order.organization_id,
        expected_sequence=None if order.is_moved else order.held.sequence,
        context=context,
    )


def _context_text(context: Context, wanted: CreateOrder | Resource) -> str:
    marks = {"preventDelete": wanted.prevent_delete, "critical": wanted.critical}
    return json.dumps({**context, **marks})


def unchanged(order: Order) -> Written:
    """Return the result of an order before any of its calls: what is known of the object."""
    match order:
        case CreateOrder() if order.ref.kind is ACTION_FLOW:  # its id is known before
            return Written(flow_id(order.organization_id, FLOW_NAMED[order.ref.name]), 0)
        case CreateOrder():
            return Written("", 0)
        case SecretOrder():
            return Written(order.id, 0, order.client_id)
        case _:
            return Written(order.held.id, order.held.sequence, order.held.client_id)


# The words of a service of ours about a call that it does not have, in a batch and alone.
_UNKNOWN_CALLS = (
    "operation: must be a write that may be part of a batch",
    "there is nothing at this address",
    "this address has no such verb",
)
_UPGRADE = "The service is older than this tool and lacks a call that the plan needs: upgrade it."


def result_of(order: Order, reply: Reply) -> Written | ServiceError:
    """Return the result of a call of an order."""
    if not isinstance(reply, WireRefusal):
        return written(order, reply)
    if reply.message.endswith(_UNKNOWN_CALLS) and not reply.remedy:
        reply = replace(reply, remedy=_UPGRADE)
    return service_error(reply)


def written(order: Order, answer: Answer) -> Written | ServiceError:
    """Return what a write answered; an error says to run the command again."""
    # The write was carried out, even if its answer cannot be read. What it leaves out is known:
    # an update answers no id, and a new secret no client id.
    known, fields = unchanged(order), answer.fields
    made = next((fields[name] for name in ("id", "appId", "idpId") if name in fields), known.id)
    secret, details = fields.get("clientSecret"), fields.get("details")
    problems = fields.get("complianceProblems", ())
    client_id = fields.get("clientId", known.client_id)
    try:
        return Written(
            id=id_of({"id": made}),
            sequence=sequence_of(details) if isinstance(details, dict) else known.sequence,
            client_id=text_of({"id": made, "clientId": client_id}, "clientId"),
            client_secret=Secret(secret) if isinstance(secret, str) and secret else None,
            problems=tuple(str(each.get("key")) for each in problems if isinstance(each, dict)),
        )
    except ServiceError as failure:
        return ServiceUnavailableError(failure.problem, remedy=AGAIN)


def confirmed_result(order: Order, call: Call, now: Mapping[str, ObservedObject]) -> Written | None:
    """Return what the call gave, if the service now (objects by id) holds what it asked for."""
    before = unchanged(order)
    held = now.get(before.id)
    match order:
        case DeleteOrder():
            return None if held else before
        case CreateOrder() | UpdateOrder() if call.operation == _SET_TRIGGER:
            # The flow is gone once no trigger has actions.
            if not _runs_as_asked(order.actions, call, held):
                return None
            if held is None:
                return replace(before, sequence=0)
            return replace(before, sequence=held.sequence) if _is_ours(call, held) else None
        case UpdateOrder() if held is not None and _is_as_asked(order, call, held):
            return Written(held.id, held.sequence, held.client_id)
        case _:
            return None


def _runs_as_asked(ids: Mapping[str, str], call: Call, held: ObservedObject | None) -> bool:
    """Return whether a flow has the actions (ids by folded name) that a call sets at a trigger."""
    trigger = TRIGGER_NUMBERED[str(call.fields["triggerType"])]
    names: Iterable[str] = held.spec[trigger.name] if held else ()
    return bool([ids.get(fold(name)) for name in names] == call.fields["actionIds"])


def _is_as_asked(order: UpdateOrder, call: Call, held: ObservedObject) -> bool:
    wanted = order.resource
    operations = _OPERATIONS[wanted.ref.kind]
    if call.operation == operations.rename != operations.configure:
        # The first of the update's two calls: the fields are not sent yet.
        wanted = replace(wanted, spec=order.held.spec)
    # The calls of an update are confirmed one by one: deactivated first, reactivated last.
    if call.operation.startswith(_DEACTIVATE):
        wanted = replace(wanted, spec=order.held.spec, ref=order.held.ref)
    elif wanted.active and not call.operation.startswith(_REACTIVATE):
        wanted = replace(wanted, active=None)
    return is_in_step(wanted, held) and _is_ours(call, held)


def _is_ours(call: Call, held: ObservedObject) -> bool:
    """Return whether the tree that a call was made for owns an object."""
    tree = json.loads(call.context).get("tree") if call.context else None
    return tree is None or is_owned_by(held, tree)
