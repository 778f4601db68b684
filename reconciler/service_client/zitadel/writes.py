"""Writing to a ZITADEL, step by step, each order for itself.

It knows no expected sequences. So an object is read just before it is written to, which narrows
the gap in which somebody else can write and does not close it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial

from reconciler.errors import ServiceError
from reconciler.kinds.action_flow.flows import FLOW_NAMED
from reconciler.resources.call import Call, Code, JsonObject
from reconciler.resources.capabilities import BEYOND
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import ACTION_FLOW, Kind
from reconciler.service_client.answers import sequence_of
from reconciler.service_client.orders import calls_of, unchanged, written
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.wire import (
    AGAIN,
    Answer,
    Reply,
    WireRefusal,
    error_id,
    service_error,
)
from reconciler.service_client.zitadel.creates import create, create_provider, observed_item
from reconciler.service_client.zitadel.objects import answered_flow
from reconciler.service_client.zitadel.providers import ProviderCalls
from reconciler.service_client.zitadel.steps import (
    Step,
    Steps,
    changed_since,
    despite_conflicts,
    unknown_result,
)
from reconciler.state import ObservedObject, is_in_step

# Ids of refusals that say that an update changes nothing: a success for us.
NOT_CHANGED = frozenset(
    {
        "Org-2k9fs",
        "INSTANCE-3n9gg",
        "Org-jf9w",
        "COMMAND-2m8vx",
        "COMMAND-1m88i",
        "COMMAND-2M0fs",
        "ACTION-dg4t2",
        "ORG-4VSdf",
        # The object is in that state already.
        *("COMMAND-dsh35", "COMMAND-1n8cM", "COMMAND-Dgj92", "COMMAND-J53zh"),
        *("COMMAND-mki55", "COMMAND-5M9bs", "Org-BBmd0", "Org-5Mo0d"),
    }
)
# Of a write that finds the flow as it should be.
_FLOW_NOT_CHANGED = frozenset({"COMMAND-Nfh52", "COMMAND-DgGh3"})
# Operation and name of the answered object of the call that reads one, by its id alone.
_READS = {
    Kind.ACTION: ("GetAction", "action"),
    Kind.PROJECT: ("GetProjectByID", "project"),
}


def steps_of(order: Order, providers: ProviderCalls) -> Steps:
    """Return the steps that carry out an order, and give what came of it."""
    match order:
        case SecretOrder():
            return _new_secret(order)
        case CreateOrder() | UpdateOrder() | DeleteOrder() if order.ref.kind is ACTION_FLOW:
            return _write_flow(order)
        case CreateOrder() if order.ref.kind is Kind.IDP_JWT_CONFIG:
            return create_provider(order, providers)
        case CreateOrder():
            (call,) = _calls_of(order)
            return create(order, call, providers)
        case UpdateOrder():
            return _update(order, providers)
        case DeleteOrder():
            return _delete(order, providers)


def serial_key_of(order: Order, number: int) -> str:
    """Return what an order shares with those it must not be under way with.

    ZITADEL counts the events of a project and of an organization; two writers of one conflict.
    """
    match order:
        case SecretOrder():
            return order.project_id
        case CreateOrder() if order.ref.kind is Kind.OIDC_APPLICATION:
            return order.project_id
        case CreateOrder() if order.ref.kind in {Kind.IDP_JWT_CONFIG, ACTION_FLOW}:
            return order.organization_id
        case CreateOrder():
            return f"new {number}"
        case UpdateOrder() | DeleteOrder():
            held = order.held
            if held.ref.kind in {Kind.ACTION, Kind.PROJECT}:
                return held.id
            return held.project_id or held.organization_id


def _calls_of(order: Order) -> Sequence[Call]:
    """Return the calls of an order without what this service does not know, such as a context.

    Fields beyond the source that are not set mean the same when they are left out, and a server
    may be too old for them.
    """
    beyond = BEYOND[Kind.OIDC_APPLICATION]
    return [
        Call(
            call.operation,
            {name: value for name, value in call.fields.items() if value or name not in beyond},
            call.organization,
        )
        for call in calls_of(order, {})
        if call.operation != "RecordContext"
    ]


def _new_secret(order: SecretOrder) -> Steps:
    """Make a secret; where its answer is lost, make another, which ends the lost one."""
    (call,) = _calls_of(order)
    reply = yield from despite_conflicts(call)
    if isinstance(reply, ServiceError):
        return reply
    if isinstance(reply, WireRefusal):
        return service_error(reply)
    result = written(order, reply)
    if isinstance(result, Written) and result.client_secret is None:
        return unknown_result("the service answered without the secret")
    return result


def _update(order: UpdateOrder, providers: ProviderCalls) -> Steps:
    held = order.held
    calls = providers.update(order) if order.ref.kind is Kind.IDP_JWT_CONFIG else _calls_of(order)
    result: Written | ServiceError = unchanged(order)
    if calls and not order.is_new:
        moved = yield from _moved_on(held, providers)
        if moved is not None:
            return moved
    # Each call moves the sequence on; the next one is checked against the new one.
    for call in calls:
        reply = yield from _sent(call, order, held, providers)
        if isinstance(reply, ServiceError):
            return reply
        if reply is not None and not providers.is_unseen(call):
            result = written(order, reply)
            if isinstance(result, Written):
                held = replace(held, sequence=result.sequence)
    return result


def _sent(
    call: Call, order: UpdateOrder, held: ObservedObject, providers: ProviderCalls
) -> Generator[Step, Reply, Answer | ServiceError | None]:
    """Make one call of an update; None where it changes nothing: an error there, none here."""
    # The reads of what was made a moment ago lag, so that it would look as if it were missing.
    check = None if order.is_new else partial(_moved_on, held, providers)
    reply = yield from despite_conflicts(call, check)
    if not isinstance(reply, WireRefusal):
        return reply
    is_done = yield from _changes_nothing(reply, order, providers)
    return None if is_done else service_error(reply)


def _changes_nothing(
    refusal: WireRefusal, order: UpdateOrder, providers: ProviderCalls
) -> Generator[Step, Reply, bool]:
    """Return whether a refusal says that the object is as declared already.

    Ids tell. Newer servers may have a slug instead, which tells nothing that is known here: then
    the object itself is read.
    """
    if error_id(refusal) in NOT_CHANGED:
        return True
    if refusal.code != Code.PRECONDITION_FAILED or "slug" not in refusal.details:
        return False
    reply = yield from _read(order.held, providers)
    if not isinstance(reply, dict):
        return False
    return is_in_step(order.resource, observed_item(order.held, reply, providers))


def _delete(order: DeleteOrder, providers: ProviderCalls) -> Steps:
    held = order.held
    moved = yield from _moved_on(held, providers)
    if moved is not None:
        return moved
    (call,) = [providers.delete(held)] if held.ref.kind is Kind.IDP_JWT_CONFIG else _calls_of(order)
    reply = yield from despite_conflicts(call, partial(_moved_on, held, providers))
    if isinstance(reply, ServiceError):
        return reply
    # Not found after a lost answer: that try has removed it.
    if isinstance(reply, WireRefusal) and not (reply.unsure and reply.code == Code.NOT_FOUND):
        return service_error(reply)
    return unchanged(order)


def _moved_on(
    held: ObservedObject, providers: ProviderCalls
) -> Generator[Step, Reply, ServiceError | None]:
    """Read an object just before it is written to; return why that must not be."""
    found = yield from _read(held, providers)
    if isinstance(found, WireRefusal):
        return service_error(found)
    details = found.get("details") if isinstance(found, dict) else None
    if not isinstance(details, dict):
        return ServiceError("the service answered without details", remedy=AGAIN)
    # Another writer may still come between this read and the write: there is no If-Match.
    return changed_since(held.ref) if sequence_of(details) > held.sequence else None


def _read(
    held: ObservedObject, providers: ProviderCalls
) -> Generator[Step, Reply, JsonObject | WireRefusal | None]:
    """Read an object; return its fields, or None where the answer has none."""
    if held.ref.kind is Kind.IDP_JWT_CONFIG:
        call, name = providers.get(held.id, held.organization_id), "idp"
    elif held.ref.kind is Kind.OIDC_APPLICATION:
        fields = {"projectId": held.project_id, "appId": held.id}
        call, name = Call("GetAppByID", fields, held.organization_id), "app"
    else:
        operation, name = _READS[held.ref.kind]
        call = Call(operation, {"id": held.id}, held.organization_id)
    reply = yield call
    return reply if isinstance(reply, WireRefusal) else reply.fields.get(name)


def _write_flow(order: CreateOrder | UpdateOrder | DeleteOrder) -> Steps:
    """Set each trigger that changes, or clear the flow; read it first.

    To set a trigger again gives the same, so a lost answer is asked for again.
    """
    result: Written | ServiceError = unchanged(order)
    calls = _calls_of(order)
    is_moved = not isinstance(order, CreateOrder) and order.is_moved
    if calls and not is_moved:
        moved = yield from _flow_moved_on(order)
        if moved is not None:
            return moved
    for number, call in enumerate(calls):
        # The flow has changed by what this order, or an earlier one of this run, wrote.
        look = None if number or is_moved else partial(_flow_moved_on, order)
        reply = yield from despite_conflicts(call, look)
        if isinstance(reply, ServiceError):
            return reply
        if isinstance(reply, Answer):
            result = unchanged(order) if isinstance(order, DeleteOrder) else written(order, reply)
        elif error_id(reply) not in _FLOW_NOT_CHANGED:
            return service_error(reply)
    return result


def _flow_moved_on(
    order: CreateOrder | UpdateOrder | DeleteOrder,
) -> Generator[Step, Reply, ServiceError | None]:
    """Read a flow just before it is written to; return why that must not be."""
    flow = FLOW_NAMED[order.ref.name]
    reply = yield Call("GetFlow", {"type": flow.number}, order.organization_id)
    if isinstance(reply, WireRefusal):
        return service_error(reply)
    found = answered_flow(reply.fields)
    if isinstance(order, CreateOrder):
        held, sequence = DEFAULTS[ACTION_FLOW], 0
    else:
        held, sequence = order.held.spec, order.held.sequence
    # Numbers, not names: the read may show an action under the name it had before this run.
    is_same = all(
        len(found.triggers.get(each.number, ())) == len(held[each.name]) for each in flow.triggers
    )
    is_old = not found.triggers or found.sequence <= sequence
    return None if is_same and is_old else changed_since(order.ref)
